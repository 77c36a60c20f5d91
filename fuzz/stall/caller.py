"""A caller on a WebSocket, in a process of its own: `python caller.py PORT TOKEN FILE`.

It sends the first of the messages in the file, and the next one whenever it gets a call. When its run has ended or the
server refuses something, it writes that, and leaves.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

REPLY_SECONDS = 120.0


def main(port: str, token: str, path: str) -> None:
    """Talk to the server until the run has ended."""
    messages = iter(Path(path).read_bytes().decode().split("\x1e"))
    headers = {"Authorization": f"Bearer {token}"}
    with connect(f"ws://127.0.0.1:{port}/v1/host", additional_headers=headers, max_size=None, proxy=None) as socket:
        try:
            socket.send(next(messages))
            while True:
                text = socket.recv(timeout=REPLY_SECONDS)
                kind = json.loads(text)["type"]
                if kind == "call" and (message := next(messages, None)) is not None:
                    socket.send(message)
                elif kind in ("outcome", "refused"):
                    print(kind, text[:2000])
                    return
        except (ConnectionClosed, TimeoutError) as problem:
            print("closed", str(problem)[:2000])


if __name__ == "__main__":
    main(*sys.argv[1:])
