"""The loopback address to which a browser brings the answer of a sign-in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType

from gloveport.policy.oauth.grants import GrantError

PATH = "/callback"
MAX_REQUEST_BYTES = 32 * 1024
REQUEST_SECONDS = 10.0
_HEADERS = (
    "Content-Security-Policy: default-src 'none'; img-src data:\r\nReferrer-Policy: no-referrer\r\nCache-Control: no-store"
)
_PAGE = '<!doctype html><title>Gloveport</title><link rel="icon" href="data:,"><p>{}</p>'  # no request for an icon follows
_DONE = "You are signed in. You can close this page."
_REFUSED = "This is not the answer to the sign-in that is under way."


class CallbackServer:
    """Listens on 127.0.0.1, on a port that the system chooses. It takes the first answer that `check` accepts.

    An answer that is not for this sign-in is refused, and the server goes on waiting: it must not be possible to end a
    sign-in, or to slip another one in, from a web page.
    """

    def __init__(self) -> None:
        self.redirect_uri = ""
        self.check: Callable[[str], str] | None = None
        self._server: asyncio.Server | None = None
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def __aenter__(self) -> CallbackServer:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MAX_REQUEST_BYTES)
        self.redirect_uri = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}{PATH}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server
        self._server.close()
        self._code.cancel()

    async def code(self, seconds: float) -> str:
        """Return the code; raise GrantError when the person refuses, and TimeoutError."""
        async with asyncio.timeout(seconds):
            return await asyncio.shield(self._code)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                accepted = self._take(head)
                text = _PAGE.format(_DONE if accepted else _REFUSED)
                status = "200 OK" if accepted else "400 Bad Request"
                more = f"Content-Type: text/html; charset=utf-8\r\n{_HEADERS}"
                about = f"HTTP/1.1 {status}\r\n{more}\r\nConnection: close\r\nContent-Length: {len(text)}\r\n\r\n"
                writer.write(about.encode() + text.encode())
                await writer.drain()
        except (TimeoutError, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, head: bytes) -> bool:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        path, _, query = rest.partition(" ")[0].partition("?")
        hosts = [line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:")]
        own = self.redirect_uri.removeprefix("http://").removesuffix(PATH)
        if method != "GET" or path != PATH or hosts != [own] or self.check is None or self._code.done():
            return False
        try:
            code = self.check(query)
        except GrantError as error:
            if error.reason not in ("invalid_state", "invalid_request"):
                self._code.set_exception(error)
            return False
        self._code.set_result(code)
        return True
