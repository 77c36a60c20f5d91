"""A service in a process of its own, which counts what it is asked to do: it outlives every host that is killed.

    python -m tests.durable.receiver

It prints its port. `POST /LIST/pay` adds a line to a list. A payment with an idempotency key is made once: later ones with the
same key get the same reply. One with `hang` is made, and never answered. `GET /LIST` returns the list.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.request import Request, urlopen

ROOT = Path(__file__).parent.parent.parent
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}, "hang": {"type": "boolean"}}}
RECEIPT = {"type": "object", "properties": {"id": {"type": "string"}}}
KEY = {"name": "Idempotency-Key", "in": "header", "required": True, "schema": {"type": "string"}}
ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}


def _operation(name: str, *parameters: Any, body: bool = True) -> dict[str, Any]:
    replies = {"200": {"description": "Done.", "content": {"application/json": {"schema": RECEIPT}}}}
    content = {"requestBody": {"required": True, "content": {"application/json": {"schema": SCHEMA}}}} if body else {}
    return {"operationId": name, "parameters": list(parameters), "responses": replies, **content}


DEFINITION = {
    "openapi": "3.1.0",
    "info": {"title": "A bank", "version": "1"},
    "paths": {
        "/pay": {"post": _operation("pay", KEY)},
        "/charge": {"post": _operation("charge")},
        "/payments/{id}": {"delete": _operation("refund", ID, body=False)},
    },
}


class _Handler(BaseHTTPRequestHandler):
    lists: ClassVar[defaultdict[str, list[str]]] = defaultdict(list)
    replies: ClassVar[dict[tuple[str, str], bytes]] = {}
    lock: ClassVar[threading.Lock] = threading.Lock()

    def do_GET(self) -> None:
        with self.lock:
            self._reply(json.dumps(self.lists[self.path]).encode())

    def do_DELETE(self) -> None:
        where, _, id = self.path.rpartition("/payments/")
        with self.lock:
            self.lists[where].append(f"refund {id}")
        self._reply(b'{"id": ""}')

    def do_POST(self) -> None:
        where, _, what = self.path.rpartition("/")
        sent = self.rfile.read(int(self.headers["content-length"]))
        asked = json.loads(sent)
        key = self.headers.get("idempotency-key")
        with self.lock:
            lines = self.lists[where]
            reply = self.replies.get((where, key)) if key else None
            is_new = reply is None
            if reply is None:
                lines.append(asked["line"] if what == "line" else f"{what} {asked['n']}")
                reply = json.dumps({"id": f"{what}-{len(lines)}"}).encode()
                if key:
                    self.replies[where, key] = reply
        if asked.get("hang") and is_new:
            threading.Event().wait()
        self._reply(reply)

    def _reply(self, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class Receiver:
    """The service, started. `lines` returns a list as it has it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "tests.durable.receiver"]
        self._process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE)
        assert self._process.stdout is not None
        self.url = f"http://127.0.0.1:{int(self._process.stdout.readline())}"

    def lines(self, name: str) -> list[str]:
        with urlopen(f"{self.url}/{name}", timeout=10) as reply:
            return json.loads(reply.read())

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


def post_line(url: str, line: str) -> None:
    """Add a line to the list at a URL."""
    with urlopen(Request(f"{url}/line", json.dumps({"line": line}).encode(), method="POST"), timeout=30) as reply:
        reply.read()


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    print(server.server_port, flush=True)
    server.serve_forever()
