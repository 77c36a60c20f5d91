"""Serve one contender over a pipe, so that all are measured alike: `python worker.py <module> <options as JSON>`.

It is run by an interpreter that has the peer, and needs nothing else. One line of JSON asks (`{"id", "code"}`) and one
answers (`{"id", "value"}` or `{"id", "error"}`); several programs may be under way at once.
"""

import asyncio
import importlib
import json
import logging
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol


class Peer(Protocol):
    """What `make(options)` of each module returns. `options` has `seconds` and `memory_mb`, the limits of one program."""

    async def start(self) -> None: ...

    async def run(self, code: str) -> Any: ...

    async def close(self) -> None: ...


async def serve(peer: Peer, answers: int) -> None:
    """Answer requests until the input ends."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(16))
    await peer.start()

    def send(message: dict[str, Any]) -> None:
        os.write(answers, json.dumps(message, default=str).encode() + b"\n")

    async def answer(number: int, code: str) -> None:
        try:
            send({"id": number, "value": await peer.run(code)})
        except Exception as error:  # noqa: BLE001 - an exception of a contender is its answer
            send({"id": number, "error": f"{type(error).__name__}: {error}"[:400]})

    reader = asyncio.StreamReader(limit=2**24)
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    send({"id": 0, "value": "ready"})
    under_way: set[asyncio.Task[None]] = set()
    while line := await reader.readline():
        asked = json.loads(line)
        task = asyncio.create_task(answer(asked["id"], asked["code"]))
        under_way.add(task)
        task.add_done_callback(under_way.discard)
    await peer.close()


def main() -> None:
    """Reserve the pipe for answers, because contenders print."""
    logging.disable(logging.CRITICAL)
    answers = os.dup(1)
    os.dup2(2, 1)
    module = importlib.import_module(sys.argv[1])
    asyncio.run(serve(module.make(json.loads(sys.argv[2])), answers))
    os._exit(0)  # don't wait for a program that the contender can't stop


if __name__ == "__main__":
    main()
