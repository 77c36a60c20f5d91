"""The floor for QuickJS. It replaces our guest package: forked in advance in the same jail, it reads the body of a program from
its socket and sends the result. It has no checks, no clock, no randomness and no values beyond JSON.
"""

from __future__ import annotations

import _socket
import os
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from typing import Any

PRELUDE = """
const pending = new Map();
let last = 0;
globalThis.finished = false;
globalThis.tools = {
  echo: (args) => new Promise((resolve) => {
    pending.set(++last, resolve);
    $send(JSON.stringify(["call", last, "echo", [args]]));
  }),
};
globalThis.settle = (text) => {
  const [, number, value] = JSON.parse(text);
  pending.get(number)(value);
  pending.delete(number);
};
globalThis.finish = (value) => {
  globalThis.finished = true;
  $send(JSON.stringify(["done", value]));
};
"""
_context: Any = None
_settle: Any = None
_out: list[bytes] = []


def preload() -> None:
    """Before the fork: load the engine and rehearse a call."""
    global _context, _settle
    path = os.environ["GLOVEPORT_QUICKJS"]
    loader = ExtensionFileLoader("_quickjs", path)
    binding = loader.create_module(ModuleSpec("_quickjs", loader, origin=path))
    loader.exec_module(binding)
    _context = binding.Context()
    _context.add_callable("$send", _send)
    _context.eval(PRELUDE)
    _settle = _context.get("settle")
    rehearse()


def rehearse() -> None:
    """Rehearse a run, also in a trial fork that records the memory it touches."""
    _begin("return await tools.echo({value: 1})")
    _settle('["reply",1,1]')
    _drain()
    _out.clear()
    _context.eval("finished = false; last = 0")


def main() -> None:
    """In the fork: send ready and run one program."""
    receive = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, 0).recv

    def read() -> str:
        size = int.from_bytes(receive(4, _socket.MSG_WAITALL), "big")
        return receive(size, _socket.MSG_WAITALL).decode()

    _send('["ready"]')
    _flush()
    _begin(read())
    while not _context.get("finished"):
        _flush()
        _settle(read())
        _drain()
    _flush()
    read()


def _begin(body: str) -> None:
    _context.eval(f"(async () => {{{body}\n}})().then(finish)")
    _drain()


def _drain() -> None:
    while _context.execute_pending_job():
        pass


def _send(text: str) -> None:
    payload = text.encode()
    _out.append(len(payload).to_bytes(4, "big") + payload)


def _flush() -> None:
    os.write(1, b"".join(_out))
    _out.clear()
