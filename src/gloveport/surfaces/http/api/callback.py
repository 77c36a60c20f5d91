"""Calls that go to the caller of a run by HTTP: each is one POST to the URL that the caller gave, with the caller's token.

The token belongs to one run: it is in no record, in no log and not in the sandbox, and is forgotten with the run.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jsonschema_rs

from gloveport import urls
from gloveport.config import ServeConfig
from gloveport.errors import OptionError, ToolError
from gloveport.large_values import is_large, off_loop_if
from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Egress, Reach, Reply, Request
from gloveport.sources.caller import caller_gone, path_of
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import json_bytes
from gloveport.surfaces.request_bounds import MAX_REQUEST_BYTES, read_host_message
from gloveport.types import Tool
from gloveport.values import to_json

MAX_TOKEN_CHARS = 4096
MAX_CALL_SECONDS = 24 * 3600.0  # the time limit of the run ends a call before
CALLBACK: schemas.Schema = {
    **schemas.record({"url": {**schemas.TEXT, "minLength": 1}, "token": {**schemas.TEXT, "minLength": 1}}),
    "description": "where the calls of the caller's tools are sent, and the token that they carry",
}
_ERROR = schemas.record({"message": schemas.TEXT}, code=schemas.TEXT, data=schemas.ANYTHING)
_ANSWER = jsonschema_rs.validator_for(
    {"oneOf": [schemas.record({"value": schemas.ANYTHING}), schemas.record({"error": _ERROR})]}
)


class Callbacks:
    """Sends calls to callers whose origins the settings name."""

    def __init__(self, settings: ServeConfig, egress: Egress | None = None) -> None:
        self._egress = egress or Egress()
        limits: dict[str, Any] = {"total_seconds": MAX_CALL_SECONDS, "max_bytes": MAX_REQUEST_BYTES, "max_redirects": 0}
        # The private ones first: an origin that is in both lists has the grant.
        self._reaches = [
            Reach(origins, allow_private, **limits)
            for origins, allow_private in ((settings.callbacks_private, True), (settings.callbacks, False))
            if origins
        ]

    def caller(self, run: str, callback: Mapping[str, str]) -> CallbackCaller:
        """Return what makes the calls of a run. Raise OptionError for a URL or a token that can't be used."""
        try:
            url = urls.parse(callback["url"])
        except ToolError as error:
            raise OptionError(f"the callback can't be used: {error.message}", code="forbidden") from None
        reach = next((one for one in self._reaches if url.origin in one.origins), None)
        if reach is None:
            hint = "ask the user to add it to callbacks of [serve], or to callbacks_private if its address is private"
            raise OptionError(f"{url.origin} is no origin that callbacks may have here", code="forbidden", hint=hint)
        token = callback["token"]
        if len(token) > MAX_TOKEN_CHARS or not token.isascii() or not token.isprintable() or " " in token:
            message = f"the token of the callback must be at most {MAX_TOKEN_CHARS:,} printable ASCII characters, no space"
            raise OptionError(message, code="bad-request")
        secret = Secret(token, "callback.token")
        bearer = Attachment("header", "Authorization", secret, frozenset({url.origin}), "Bearer {}")
        return CallbackCaller(self._egress, run, str(url), reach, bearer)

    async def close(self) -> None:
        """Close the connections."""
        await self._egress.close()


class CallbackCaller:
    """The caller of one run. A call is sent once, whatever becomes of it."""

    def __init__(self, egress: Egress, run: str, url: str, reach: Reach, bearer: Attachment) -> None:
        self._egress = egress
        self._run = run
        self._url = url
        self._reach = reach
        self._attachments = (bearer,)

    def forget(self) -> None:
        """Forget the token: the run is over."""
        self._attachments = ()

    async def call(self, tool: Tool, call: int, args: Any) -> Any:
        """Return the result that the caller answers."""
        if not self._attachments:
            raise caller_gone(path_of(tool))
        body = await off_loop_if(is_large(args), _encode, self._run, call, tool, args)
        request = Request("POST", self._url, (("Content-Type", "application/json"),), body, follow=False)
        try:
            reply = await self._egress.send(request, self._reach, self._attachments)
        except ToolError as error:
            if error.code == "egress-denied":
                raise ToolError(error.message, code=error.code, tool=path_of(tool)) from None
            was_sent = not error.retryable  # egress says so of a request that never left
            raise caller_gone(path_of(tool), sent=was_sent and tool.writes) from None
        return await _result(tool, reply)


def _encode(run: str, call: int, tool: Tool, args: Any) -> bytes:
    return json_bytes({"type": "call", "run": run, "call": call, "tool": path_of(tool), "args": to_json(args)})


async def _result(tool: Tool, reply: Reply) -> Any:
    """Return the value in a reply. Raise the ToolError that it has, or that it is for having none."""
    path = path_of(tool)
    if reply.status != 200:
        if reply.status >= 500 and tool.writes:
            raise caller_gone(path, sent=True)
        what = "redirects the call, which is not followed" if 300 <= reply.status < 400 else f"answered {reply.status}"
        raise ToolError(f"the caller of `tools.{path}` {what}", code="http-error", tool=path, status=reply.status)
    try:
        answer = await read_host_message(reply.body)
    except ValueError:
        answer = None
    if answer is None or not _ANSWER.is_valid(answer):
        if tool.writes:
            raise caller_gone(path, sent=True)
        message = f'the caller of `tools.{path}` answered neither {{"value": …}} nor {{"error": {{"message": …}}}}'
        raise ToolError(message, code="bad-value", tool=path)
    if (error := answer.get("error")) is not None and "value" not in answer:
        raise ToolError(error["message"], code=error.get("code"), data=error.get("data"), origin="tool")
    return answer["value"]
