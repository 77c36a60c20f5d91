"""Serves the built pages: one document for every view, and its assets. Nothing here needs a sign-in, and nothing is secret.

Only the files that were found when the first was asked for are there: no path of a request becomes a path on the disk.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from starlette.types import Receive, Scope, Send

from gloveport.surfaces.web.views import is_view

FOLDER = Path(__file__).with_name("static")
ASSETS_PATH = "/assets/"
OTHER_PATHS = ("/v1/", "/mcp", "/metrics", "/.well-known/")
DOCUMENT = "index.html"
NONCE = b"__NONCE__"  # in the built document, where it stands for one that each answer has of its own
ENCODINGS = {"br": ".br", "gzip": ".gz"}  # the best first; the build writes them beside each file
MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
    ".ico": "image/x-icon",
    ".woff2": "font/woff2",
    ".json": "application/json",
}
COMMON_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Frame-Options": "DENY",
}
NOT_BUILT = b"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Gloveport</title>
<h1>The pages are not built</h1>
<p>This Gloveport was installed from its sources without them. In the checkout, run <code>make setup</code>, and start
<code>gloveport serve</code> again. MCP at <code>/mcp</code> and the API at <code>/v1</code> work without the pages.</p>
"""


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A built file: its type, and its content as it is and in each encoding."""

    media: str
    content: bytes
    encoded: dict[str, bytes]


class Pages:
    """An ASGI application that answers with the pages."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._files: dict[str, StaticFile] | None = None

    def serves(self, path: str) -> bool:
        """Return whether a path is that of a page or of one of its assets."""
        return is_view(path) or path.startswith(ASSETS_PATH) or path in ("/favicon.ico", "/favicon.svg")

    def answers_stray(self, scope: Scope) -> bool:
        """Return whether a browser asks for an address that is none: its page says so, and keeps the navigation."""
        path, accepted = scope["path"], _header(scope, b"accept")
        is_other = path.startswith(OTHER_PATHS) or path.endswith(".json")
        return scope["method"] == "GET" and "text/html" in accepted and not is_other

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if self._files is None:
            self._files = await asyncio.to_thread(_read, self._folder)
        path = scope["path"]
        if scope["method"] not in ("GET", "HEAD"):
            await _reply(scope, send, 405, {"Allow": "GET, HEAD", **COMMON_HEADERS}, b"")
        elif (address := _numeric(scope)) is not None:
            await _reply(scope, send, 307, {"Location": address, "Cache-Control": "no-store", **COMMON_HEADERS}, b"")
        elif is_view(path) or not self.serves(path):
            await self._document(scope, send, self._files.get(DOCUMENT), 200 if is_view(path) else 404)
        elif (found := self._files.get(path.removeprefix("/"))) is None:
            await _reply(scope, send, 404, {**COMMON_HEADERS, "Cache-Control": "no-store"}, b"")
        else:
            accepted = _header(scope, b"accept-encoding")
            name = next((one for one in ENCODINGS if one in found.encoded and one in accepted), None)
            content = found.content if name is None else found.encoded[name]
            # The name of an asset has the hash of its content.
            age = "public, max-age=31536000, immutable" if path.startswith(ASSETS_PATH) else "no-cache"
            headers = {"Content-Type": found.media, "Cache-Control": age, "Vary": "Accept-Encoding", **COMMON_HEADERS}
            await _reply(scope, send, 200, headers | ({"Content-Encoding": name} if name else {}), content)

    async def _document(self, scope: Scope, send: Send, found: StaticFile | None, status: int) -> None:
        nonce = secrets.token_urlsafe(16)
        content = NOT_BUILT if found is None else found.content.replace(NONCE, nonce.encode())
        headers = {"Content-Type": "text/html; charset=utf-8", "Cache-Control": "no-store", **COMMON_HEADERS}
        headers["Content-Security-Policy"] = content_security_policy(nonce)
        await _reply(scope, send, 503 if found is None else status, headers, content)


def content_security_policy(nonce: str) -> str:
    """Return the policy of a page: its own scripts, styles and requests alone, and no markup made from text (M14).

    The nonce is for the styles of the code editor, which it adds itself.
    """
    return (
        f"default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; img-src 'self' data:; "
        "font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; "
        "require-trusted-types-for 'script'"
    )


def _numeric(scope: Scope) -> str | None:
    """Return the same address with a number for `localhost`; None if it has one, or another name.

    `localhost` is 127.0.0.1 and ::1. Another user can listen at the one that this server leaves free, and would then get
    what browsers keep for the name: the cookie, and the key of the session.
    """
    name, _, port = _header(scope, b"host").lower().partition(":")
    if name != "localhost":
        return None
    server = str((scope.get("server") or ("",))[0])
    host = "[::1]" if server == "::1" else "127.0.0.1"
    query = scope["query_string"].decode("latin-1")
    return f"{scope['scheme']}://{host}{':' if port else ''}{port}{quote(scope['path'])}{'?' if query else ''}{query}"


def _read(folder: Path) -> dict[str, StaticFile]:
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    found: dict[str, StaticFile] = {}
    for name, path in files.items():
        if path.suffix not in ENCODINGS.values():
            encoded = {code: files[name + end].read_bytes() for code, end in ENCODINGS.items() if name + end in files}
            media = MEDIA_TYPES.get(path.suffix, "application/octet-stream")
            found[name] = StaticFile(media, path.read_bytes(), encoded)
    return found


def _header(scope: Scope, wanted: bytes) -> str:
    return next((value.decode("latin-1") for name, value in scope["headers"] if name == wanted), "")


async def _reply(scope: Scope, send: Send, status: int, headers: dict[str, str], content: bytes) -> None:
    raw = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
    raw.append((b"content-length", str(len(content)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else content})
