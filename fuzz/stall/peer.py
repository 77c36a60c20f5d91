"""The other side of the host, in processes of its own, because their CPU time is not the host's.

`python peer.py http FOLDER` is a service that answers with raw replies from files in the folder; `stdio` is an MCP server
that does the same; `send PORT FILE` is a client that sends raw bytes. Only the standard library is imported.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "peer", "version": "1"}}
REPLY_SECONDS = 30.0


def answer(folder: Path, message: dict[str, Any]) -> bytes | None:
    """Return the reply to a JSON-RPC message: `method` names the file that has the result, as text."""
    if "id" not in message:
        return None
    method = str(message.get("method"))
    if method == "initialize":
        result = json.dumps(HELLO).encode()
    else:
        path = folder / method.replace("/", ".")
        if not path.exists():
            missing = {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "no such method"}}
            return json.dumps(missing).encode()
        result = path.read_bytes()
    return b'{"jsonrpc":"2.0","id":%s,"result":%s}' % (json.dumps(message["id"]).encode(), result)


def serve_http(folder: Path) -> None:
    """Print the port, then answer each request with the file that its path names, or as an MCP server at `/mcp`.

    The service ends when its standard input does: with the host, however that ends.
    """
    threading.Thread(target=lambda: (sys.stdin.buffer.read(), os._exit(0)), daemon=True).start()
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=_serve_connection, args=(folder, connection), daemon=True).start()


def _serve_connection(folder: Path, connection: socket.socket) -> None:
    with suppress(OSError), connection, connection.makefile("rb") as file:
        while line := file.readline(65536):
            method, path, _ = line.decode("latin-1").split(" ", 2)
            size = 0
            while (header := file.readline(65536).strip()) != b"":
                name, _, value = header.partition(b":")
                size = int(value) if name.lower() == b"content-length" else size
            body = file.read(size)
            connection.sendall(_http_reply(folder, method, path, body))


def _http_reply(folder: Path, method: str, path: str, body: bytes) -> bytes:
    if path.startswith("/mcp"):
        if method != "POST":
            return b"HTTP/1.1 405 No\r\ncontent-length: 0\r\n\r\n"
        said = answer(folder, json.loads(body))
        if said is None:
            return b"HTTP/1.1 202 Ok\r\ncontent-length: 0\r\n\r\n"
        return b"HTTP/1.1 200 Ok\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(said) + said
    file = folder / os.path.basename(path.partition("?")[0])
    return file.read_bytes() if file.exists() else b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n"


def serve_stdio(folder: Path) -> None:
    """Answer each line as an MCP server."""
    for line in sys.stdin.buffer:
        if (said := answer(folder, json.loads(line))) is not None:
            sys.stdout.buffer.write(said.replace(b"\n", b" ") + b"\n")
            sys.stdout.buffer.flush()


def send(port: int, path: Path) -> None:
    """Send the bytes of a file to a port of loopback, and write what comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", port), timeout=REPLY_SECONDS) as connection:
        try:
            connection.sendall(path.read_bytes())
            while piece := connection.recv(65536):
                sys.stdout.buffer.write(piece)
        except OSError:
            return


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["http", folder]:
            serve_http(Path(folder))
        case ["stdio", folder]:
            serve_stdio(Path(folder))
        case ["send", port, path]:
            send(int(port), Path(path))
