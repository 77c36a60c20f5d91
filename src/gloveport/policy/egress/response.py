"""A response whose body is decoded and counted while it arrives."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator

import httpcore2

from gloveport.errors import ToolError
from gloveport.policy.egress.decoding import Decoder
from gloveport.policy.egress.network_errors import explain
from gloveport.policy.egress.values import Hop, Reach
from gloveport.policy.redaction import Redaction

_REDIRECTS = frozenset({301, 302, 303, 307, 308})
EVENT_END = re.compile(rb"\n\r?\n|\r\r")


class StreamedResponse:
    """The response to one request. Its body may not have arrived yet."""

    def __init__(self, response: httpcore2.Response, hop: Hop, reach: Reach) -> None:
        self._response = response
        self._method = hop.method
        self._host = hop.url.host
        self._reach = reach
        self.status = response.status

    @property
    def location(self) -> str | None:
        """The target of a redirect, with bytes beyond ASCII escaped; None when this is not a redirect."""
        return self._header(b"location") or None if self.status in _REDIRECTS else None

    @property
    def is_events(self) -> bool:
        """Whether the body is an event stream, which may never end."""
        return self._header(b"content-type").lower().startswith("text/event-stream")

    def headers(self, redaction: Redaction) -> dict[str, str]:
        """Return the headers as they apply to the decoded body. Values of one name are joined."""
        out: dict[str, str] = {}
        for raw_name, raw_value in self._response.headers:
            name, value = raw_name.decode("ascii").lower(), _text(redaction.clean(raw_value))
            out[name] = f"{out[name]}, {value}" if name in out else value
        if "content-encoding" in out and self._method != "HEAD":
            del out["content-encoding"]
            out.pop("content-length", None)
        return out

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the decoded body. Raise ToolError `reply-too-large` as soon as it, or one event of a stream, is."""
        decoder = Decoder(self._header(b"content-encoding"), self._host)
        if decoder.identity and self._method != "HEAD":
            self._count(int(self._header(b"content-length") or 0))
        size, events = 0, self.is_events
        async for chunk in self._response.aiter_stream():
            for piece in decoder.feed(chunk):
                end = _last_event_end(piece) if events else 0
                size = len(piece) - end if end else size + len(piece)
                self._count(size)
                yield piece
                if not decoder.identity:
                    await asyncio.sleep(0)  # one chunk may give a thousand pieces
        decoder.finish()

    def explain(self, error: BaseException) -> ToolError:
        """Return the ToolError for a failure while the body arrived."""
        return explain(error, self._host, self._method, self._reach)

    async def close(self) -> None:
        """Return the connection to the pool if the body was read, else close it."""
        await self._response.aclose()

    def _count(self, size: int) -> None:
        if size > self._reach.max_bytes:
            message = f"the reply of {self._host} is larger than {self._reach.max_bytes} bytes"
            setting = "raise max_response_bytes in [sources.NAME]"
            raise ToolError(message, code="reply-too-large", hint="request less", setting=setting)

    def _header(self, name: bytes) -> str:
        for key, value in self._response.headers:
            if key.lower() == name:
                return "".join(chr(byte) if byte < 128 else f"%{byte:02X}" for byte in value)
        return ""


def _last_event_end(piece: bytes) -> int:
    """Return where the last event in the piece ends, 0 when none does."""
    return max(piece.rfind(end) + len(end) if end in piece else 0 for end in (b"\n\n", b"\n\r\n", b"\r\r"))


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
