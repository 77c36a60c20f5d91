"""A reply of a GraphQL endpoint → the root field's value, or a ToolError that has the partial data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport import bounded_json
from gloveport.errors import ToolError
from gloveport.policy.egress import Reply
from gloveport.sources.texts import clean

MAX_ERRORS = 10
MAX_ERRORS_IN_MESSAGE = 3
MAX_MESSAGE_CHARS = 500
MAX_BODY_CHARS = 4000
MAX_PATH_STEPS = 32
RETRYABLE_STATUSES = frozenset({429, 502, 503, 504})
RATE_LIMIT_CODES = frozenset({"RATE_LIMITED", "RATE_LIMIT", "THROTTLED", "TOO_MANY_REQUESTS"})


def read_body(reply: Reply, limits: bounded_json.JsonLimits = bounded_json.DEFAULT_LIMITS) -> Mapping[str, Any] | None:
    """Return the body of a GraphQL reply, None when it is something else; raise ToolError `reply-too-large`."""
    try:
        body = bounded_json.read(reply.body, limits)
    except bounded_json.JsonLimitError as problem:
        message = f"the endpoint's answer is too much JSON: it {problem}"
        raise ToolError(message, code="reply-too-large", hint="select less, or a page at a time") from None
    except ValueError:
        return None
    if not isinstance(body, dict) or not (isinstance(body.get("data"), dict) or body.get("errors")):
        return None
    return body


def value_of(reply: Reply, field: str) -> Any:
    """Return the value of the root field; raise ToolError `graphql-error`, `http-error` or `reply-too-large`."""
    body = read_body(reply)
    if body is None or (not 200 <= reply.status < 300 and not body.get("errors")):
        raise _http_error(reply)
    data = body.get("data") or {}
    if body.get("errors"):
        raise _graphql_error(reply, body["errors"], data.get(field))
    if field not in data:
        raise ToolError(f"the answer has no `{field}` in its data", code="graphql-error", status=reply.status)
    return data[field]


def error_rows(errors: Any) -> list[dict[str, Any]]:
    """Return message, path and code of the first errors.

    Extensions are left out because they hold stack traces, locations because they refer to a document nobody wrote.
    """
    found = []
    for error in (errors if isinstance(errors, list) else [errors])[:MAX_ERRORS]:
        given: dict[str, Any] = error if isinstance(error, dict) else {"message": f"{error}"}
        extensions = given.get("extensions")
        code = extensions.get("code") if isinstance(extensions, dict) else given.get("type")
        row: dict[str, Any] = {"message": clean(f"{given.get('message') or 'no message'}", max_chars=MAX_MESSAGE_CHARS)}
        if isinstance(path := given.get("path"), list):
            row["path"] = [
                step if isinstance(step, int) else clean(f"{step}", max_chars=100) for step in path[:MAX_PATH_STEPS]
            ]
        if isinstance(code, str):
            row["code"] = clean(code, max_chars=100)
        found.append(row)
    return found


def _graphql_error(reply: Reply, errors: Any, value: Any) -> ToolError:
    rows = error_rows(errors)
    texts = [
        f"{_path(row['path'])}: {row['message']}" if row.get("path") else row["message"]
        for row in rows[:MAX_ERRORS_IN_MESSAGE]
    ]
    more = (len(errors) if isinstance(errors, list) else 1) - len(texts)
    hint = None
    if value is not None:
        hint = "the fields that did come are in the error's data.data; `select` can leave the failing ones out"
    return ToolError(
        "; ".join(texts) + (f"; and {more} more" if more > 0 else ""),
        code="graphql-error",
        origin="tool",
        status=reply.status,
        data={"errors": rows, "data": value},
        retryable=reply.status in RETRYABLE_STATUSES or any(row.get("code") in RATE_LIMIT_CODES for row in rows),
        hint=hint,
    )


def _http_error(reply: Reply) -> ToolError:
    if 200 <= reply.status < 300:
        message = f"the endpoint answered {reply.status} with something that is not GraphQL"
    else:
        message = f"the endpoint answered {reply.status}"
    body = clean(reply.body[:MAX_BODY_CHARS].decode("utf-8", "replace"), max_chars=MAX_BODY_CHARS)
    about = {"status": reply.status, "data": body or None, "retryable": reply.status in RETRYABLE_STATUSES}
    return ToolError(message, code="http-error", origin="tool", **about)


def _path(steps: list[Any]) -> str:
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in steps).removeprefix(".")
