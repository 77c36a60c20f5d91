"""A reply of a GraphQL endpoint → the root field's value, or a ToolError with what came nevertheless."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from gloveport import bounded_json
from gloveport.errors import ToolError
from gloveport.policy.egress import Reply
from gloveport.sources.texts import clean

MOST_ERRORS = 10
MOST_NAMED = 3
LONGEST_MESSAGE = 500
LONGEST_BODY = 4000
DEEPEST_PATH = 32
AGAIN = frozenset({429, 502, 503, 504})
LIMITED = frozenset({"RATE_LIMITED", "RATE_LIMIT", "THROTTLED", "TOO_MANY_REQUESTS"})


def read_body(reply: Reply, most_containers: int = bounded_json.MAX_CONTAINERS) -> Mapping[str, Any] | None:
    """The body as an answer in GraphQL's form, None when it is something else; raises ToolError `reply-too-large`."""
    try:
        bounded_json.check(reply.body, most_containers)
        body = orjson.loads(reply.body)
    except bounded_json.JsonLimitError as problem:
        message = f"the endpoint's answer is too much JSON: it {problem}"
        raise ToolError(message, code="reply-too-large", hint="select less, or a page at a time") from None
    except orjson.JSONDecodeError:
        return None
    if not isinstance(body, dict) or not (isinstance(body.get("data"), dict) or body.get("errors")):
        return None
    return body


def value_of(reply: Reply, field: str) -> Any:
    """The value of the root field; raises ToolError `graphql-error`, `http-error` or `reply-too-large`."""
    body = read_body(reply)
    if body is None or (not 200 <= reply.status < 300 and not body.get("errors")):
        raise _http_error(reply)
    data = body.get("data") or {}
    if body.get("errors"):
        raise _graphql_error(reply, body["errors"], data.get(field))
    if field not in data:
        raise ToolError(f"the answer has no `{field}` in its data", code="graphql-error", status=reply.status)
    return data[field]


def trimmed(errors: Any) -> list[dict[str, Any]]:
    """The first errors: message, path and code. Extensions hold stack traces and locations speak of text nobody wrote."""
    found = []
    for error in (errors if isinstance(errors, list) else [errors])[:MOST_ERRORS]:
        given: dict[str, Any] = error if isinstance(error, dict) else {"message": f"{error}"}
        extensions = given.get("extensions")
        code = extensions.get("code") if isinstance(extensions, dict) else given.get("type")
        row: dict[str, Any] = {"message": clean(f"{given.get('message') or 'no message'}", most=LONGEST_MESSAGE)}
        if isinstance(path := given.get("path"), list):
            row["path"] = [step if isinstance(step, int) else clean(f"{step}", most=100) for step in path[:DEEPEST_PATH]]
        if isinstance(code, str):
            row["code"] = clean(code, most=100)
        found.append(row)
    return found


def _graphql_error(reply: Reply, errors: Any, value: Any) -> ToolError:
    rows = trimmed(errors)
    said = [f"{_path(row['path'])}: {row['message']}" if row.get("path") else row["message"] for row in rows[:MOST_NAMED]]
    more = (len(errors) if isinstance(errors, list) else 1) - len(said)
    hint = None
    if value is not None:
        hint = "the fields that did come are in the error's data.data; `select` can leave the failing ones out"
    return ToolError(
        "; ".join(said) + (f"; and {more} more" if more > 0 else ""),
        code="graphql-error",
        status=reply.status,
        data={"errors": rows, "data": value},
        retryable=reply.status in AGAIN or any(row.get("code") in LIMITED for row in rows),
        hint=hint,
    )


def _http_error(reply: Reply) -> ToolError:
    if 200 <= reply.status < 300:
        message = f"the endpoint answered {reply.status} with something that is not GraphQL"
    else:
        message = f"the endpoint answered {reply.status}"
    body = clean(reply.body[:LONGEST_BODY].decode("utf-8", "replace"), most=LONGEST_BODY)
    return ToolError(message, code="http-error", status=reply.status, data=body or None, retryable=reply.status in AGAIN)


def _path(steps: list[Any]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
