"""A process of its own that replays recordings: another clock, time zone, locale and hash seed than where they were made.

Recordings come in as lines of JSON and the answer to each goes out as one: the first difference, or null.
"""

import asyncio
import base64
import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import gloveport

YEARS = 7 * 365 * 86400
ELSEWHERE = {"TZ": "Pacific/Kiritimati", "LANG": "tr_TR.UTF-8", "LC_ALL": "tr_TR.UTF-8", "PYTHONHASHSEED": "4711"}


def to_line(recording: Any) -> bytes:
    """A recording as a line of JSON."""
    fields = asdict(recording)
    fields["steps"] = [(sender, base64.b64encode(content).decode()) for sender, content in fields["steps"]]
    return json.dumps(fields).encode() + b"\n"


def from_line(line: bytes) -> Any:
    """The recording of a line."""
    fields = json.loads(line)
    fields["steps"] = tuple((sender, base64.b64decode(content)) for sender, content in fields["steps"])
    return gloveport.types.Recording(**fields)


class Elsewhere:
    """The process, seen from the tests."""

    def __init__(self) -> None:
        root = Path(__file__).parent.parent
        paths = os.pathsep.join([str(Path(gloveport.__file__).parent.parent), str(root)])
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.replaying"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": paths, **ELSEWHERE},
        )

    async def replay(self, recording: Any) -> str | None:
        """The first difference, in words; None when there is none."""
        return await asyncio.to_thread(self._ask, to_line(recording))

    def _ask(self, line: bytes) -> str | None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(line)
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(30)
        self._process.stdout.close()


def shift_clocks() -> None:
    """Let this process live years later."""
    for name, unit in (("time", 1), ("monotonic", 1), ("time_ns", 10**9), ("monotonic_ns", 10**9)):
        setattr(time, name, _ahead(getattr(time, name), YEARS * unit))


def _ahead(real: Any, by: int) -> Any:
    return lambda: real() + by


async def serve() -> None:
    """Answer until there is nothing more to read."""
    async with gloveport.Gloveport(spare=1) as port:
        while line := await asyncio.to_thread(sys.stdin.buffer.readline):
            found = await port.replay(from_line(line))
            print(json.dumps(None if found is None else str(found)), flush=True)


if __name__ == "__main__":
    shift_clocks()
    asyncio.run(serve())
