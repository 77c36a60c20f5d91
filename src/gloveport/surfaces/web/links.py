"""Links that sign a person in, and the socket over which `gloveport open` asks a running server for one.

The socket is in a folder that only this user can enter, and answers nobody else. An agent's token is worth nothing there.
"""

from __future__ import annotations

import asyncio
import contextlib
import getpass
import ipaddress
import os
import socket
import struct
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import orjson

from gloveport.errors import GloveportError, OptionError
from gloveport.folders import data_folder
from gloveport.store.tokens import ROLES, Role
from gloveport.surfaces.documents import problem_document
from gloveport.surfaces.http.token import Caller
from gloveport.surfaces.web.sessions import WebSessions
from gloveport.types import DEFAULT_AGENT

SIGN_IN_PATH = "/sign-in"
LINK_SECONDS = 300.0
REQUEST_SECONDS = 5.0
MAX_REQUEST_LINE = 4096
SUFFIX = ".socket"
_PEER = struct.Struct("3i")  # pid, uid, gid


def servers_folder() -> Path:
    """Return the folder with a socket for each server of this user, by its port."""
    return data_folder() / "servers"


def person(role: Role = "admin", agent: str = DEFAULT_AGENT) -> Caller:
    """Return whom a link signs in: this user, or one of the agents."""
    return Caller(agent if role == "agent" else getpass.getuser(), role)


def page_url(host: str, port: int) -> str:
    """Return the URL at which a browser of this machine finds a server."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if address.is_unspecified:
        host = "::1" if address.version == 6 else "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def link(url: str, code: str) -> str:
    """Return the link with a code. Browsers send what stands behind the `#` nowhere: no log and no referrer has it."""
    return f"{url}{SIGN_IN_PATH}#{code}"


class LinkServer:
    """Answers `gloveport open` for one server."""

    def __init__(self, url: str, port: int, sessions: WebSessions) -> None:
        self._url = url
        self._name = f"{port}{SUFFIX}"
        self._sessions = sessions

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        """Answer while the block runs."""
        folder = servers_folder()
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.chmod(0o700)
        path = folder / self._name
        path.unlink(missing_ok=True)  # of a server that was killed: this one has the port
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _short(path) as short:
            listening.bind(short)
        path.chmod(0o600)
        server = await asyncio.start_unix_server(self._answer, sock=listening, limit=MAX_REQUEST_LINE)
        try:
            yield
        finally:
            server.close()
            path.unlink(missing_ok=True)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, TimeoutError, ValueError, asyncio.IncompleteReadError):
            credentials = writer.get_extra_info("socket").getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
            if _PEER.unpack(credentials)[1] == os.geteuid():
                asked = orjson.loads(await asyncio.wait_for(reader.readline(), REQUEST_SECONDS))
                match asked:
                    case {"role": str(role), "agent": str(agent)} if role in ROLES:
                        await self._give(person(role, agent), reader, writer)
                    case _:
                        pass  # not asked by `gloveport open`
        writer.close()

    async def _give(self, caller: Caller, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Send a link, and later that it was used. It stays valid when nobody waits for that any more."""
        try:
            code, made = self._sessions.new_code(caller, LINK_SECONDS)
        except GloveportError as error:
            writer.write(orjson.dumps(problem_document(error)) + b"\n")
            return
        writer.write(orjson.dumps({"ok": True, "url": link(self._url, code), "server": self._url}) + b"\n")
        await writer.drain()
        used, gone = asyncio.ensure_future(made.used.wait()), asyncio.ensure_future(reader.read())
        await asyncio.wait((used, gone), timeout=LINK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if made.used.is_set():
            writer.write(b'{"used":true}\n')
        used.cancel()
        gone.cancel()


@contextlib.contextmanager
def asked_link(role: Role, agent: str, port: int | None) -> Iterator[tuple[dict[str, Any], socket.socket]]:
    """Yield the answer of a running server: a link; and the connection, which says later that the link was used.

    Raise OptionError when no server of this user runs.
    """
    for path in _sockets(port):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(REQUEST_SECONDS)
        with connection:
            try:
                with _short(path) as short:
                    connection.connect(short)
            except ConnectionRefusedError:
                path.unlink(missing_ok=True)  # its server was killed
                continue
            except OSError:
                continue
            connection.sendall(orjson.dumps({"role": role, "agent": agent}) + b"\n")
            answer = orjson.loads(connection.makefile("rb").readline() or b"{}")
            if not answer.get("ok"):
                wrong = answer.get("error", {})
                raise OptionError(wrong.get("message", "the server gave no link"), hint=wrong.get("hint"))
            yield answer, connection
            return
    where = "" if port is None else f" at port {port}"
    raise OptionError(f"no server of yours runs{where}", hint="start one with `gloveport serve`")


def _sockets(port: int | None) -> list[Path]:
    """Return the sockets of the servers, the one that started last first."""
    found: list[tuple[float, Path]] = []
    for path in servers_folder().glob("*" if port is None else f"{port}{SUFFIX}"):
        with contextlib.suppress(OSError):
            about = path.lstat()
            if about.st_uid == os.geteuid():
                found.append((about.st_mtime, path))
    return [path for _, path in sorted(found, reverse=True)]


@contextlib.contextmanager
def _short(path: Path) -> Iterator[str]:
    """Yield another name of a path: the address of a socket has at most 107 bytes."""
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)
