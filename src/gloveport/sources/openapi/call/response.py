"""Read a reply: the value that the program gets, or the error that it can catch."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from gloveport import bounded_json
from gloveport.errors import ToolError
from gloveport.large_values import decode_text
from gloveport.policy.egress import Reply
from gloveport.sources.openapi.operation import Operation

MAX_ERROR_BYTES = 64 * 1024
MAX_DETAIL_CHARS = 300
STATUS_PHRASES = {status.value: status.phrase for status in HTTPStatus}
TRANSIENT_STATUSES = frozenset({429, 502, 503, 504})
"""Statuses after which the same call may succeed later."""

TEXT_MEDIA_TYPE = re.compile(
    r"text/.*|.*[+/-](xml|yaml|html)|application/(x-)?(ndjson|jsonl|json-?lines|json-seq|json5|javascript|ecmascript|yaml|toml"
    r"|graphql|sql|sh|pem-file|www-form-urlencoded|jwt|jose)|application/.*\+jwt|message/.*"
)
# Codecs that decode in linear time. `punycode`, for example, does not.
LINEAR_CHARSETS = re.compile(
    r"ascii|utf-(8|16|32)(-[lb]e)?|iso8859-\d+|cp(125\d|437|850|866|932|949|950)|koi8-[ru]|mac-roman|shift_jis|euc_(jp|kr)"
    r"|gb(2312|k|18030)|big5(hkscs)?|tis-620"
)
# Headers that concern only the connection between this host and the service.
CONNECTION_HEADERS = frozenset(
    {"set-cookie", "connection", "keep-alive", "transfer-encoding", "proxy-authenticate", "upgrade", "trailer"}
)


def read_value(operation: Operation, reply: Reply, tool: str) -> Any:
    """Return the value of a successful reply; raises ToolError `http-error` with status and error body for any other.

    JSON becomes a value, text a string, an empty body None, anything else bytes. The value of a HEAD is its headers.
    """
    if not 200 <= reply.status < 300:
        raise to_error(operation, reply, tool)
    if operation.method == "HEAD":
        return {name: text for name, text in reply.headers.items() if name not in CONNECTION_HEADERS}
    try:
        return _value(reply, operation)
    except bounded_json.JsonLimitError as problem:
        message = f"the reply to {operation.method} {operation.path} is too much JSON: it {problem}"
        raise ToolError(message, code="reply-too-large", tool=tool, hint="ask for less") from None


def _value(reply: Reply, operation: Operation | None = None) -> Any:
    if not reply.body:
        return None
    media_type, _, options = reply.headers.get("content-type", "").partition(";")
    media_type = media_type.strip().lower()
    if not media_type:
        return _unlabelled(reply.body, operation)
    if media_type.endswith(("/json", "+json")):
        return _json(reply.body, options)
    if TEXT_MEDIA_TYPE.fullmatch(media_type):
        return decode_text(reply.body, _charset(options))
    return reply.body


def _json(body: bytes, options: str) -> Any:
    charset = _charset(options)
    try:
        return bounded_json.read(body if charset == "utf-8" else body.decode(charset).encode())
    except ValueError:
        return decode_text(body, charset)


def _unlabelled(body: bytes, operation: Operation | None) -> Any:
    if operation and operation.produces and operation.produces[0].partition(";")[0].strip().endswith(("/json", "+json")):
        return _json(body, "")
    try:
        return body.decode()
    except UnicodeDecodeError:
        return body


def _charset(options: str) -> str:
    found = re.search(r"charset\s*=\s*[\"']?([\w.:-]+)", options, re.IGNORECASE)
    try:
        name = codecs.lookup(found[1]).name if found else "utf-8"
    except LookupError:
        return "utf-8"
    return name if LINEAR_CHARSETS.fullmatch(name) else "utf-8"


def to_error(operation: Operation, reply: Reply, tool: str, refused: str | None = None) -> ToolError:
    """Return the error of a reply; `refused` says what a person can do about a credential that the service refused."""
    data = _error_data(reply)
    message = f"{operation.method} {operation.path} answered {reply.status} {STATUS_PHRASES.get(reply.status, '')}".rstrip()
    if detail := _error_detail(data):
        message += f": {detail}"
    retryable = reply.status in TRANSIENT_STATUSES
    about = {"status": reply.status, "data": data, "retryable": retryable}
    if refused is not None:
        return ToolError(message, code="auth-required", tool=tool, setting=refused, **about)
    return ToolError(message, code="http-error", tool=tool, origin="tool", **about)


def _error_data(reply: Reply) -> Any:
    if not reply.body and "location" in reply.headers:
        return {"location": reply.headers["location"]}
    if len(reply.body) > MAX_ERROR_BYTES:
        return reply.body[:MAX_ERROR_BYTES].decode("utf-8", "replace") + f"… ({len(reply.body):,} bytes)"
    try:
        return _value(reply)
    except bounded_json.JsonLimitError:
        return reply.body.decode("utf-8", "replace")


def _error_detail(data: Any) -> str:
    """Return the one-sentence message in an error's body, from the fields where services usually put it."""
    for _ in range(3):
        if isinstance(data, list) and data:
            data = data[0]
        elif isinstance(data, Mapping):
            names = ("message", "error_description", "detail", "error", "title", "errors", "reason", "description")
            data = next((data[name] for name in names if data.get(name)), None)
    if not isinstance(data, str) or data.lstrip()[:1] == "<":
        return ""
    line = " ".join(re.sub(r"[\x00-\x1f\x7f-\x9f]", " ", data[: 4 * MAX_DETAIL_CHARS]).split())
    return line if len(line) <= MAX_DETAIL_CHARS else f"{line[:MAX_DETAIL_CHARS]}…"
