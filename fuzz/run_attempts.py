"""Any frames to the host: the run attempt ends with a known code, and no defect of the host shows (S6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from fuzz.mutation import mutate_json
from fuzz.target import BrokenPromise, Target
from fuzz.wire import FRAMES, LEAVES
from gloveport.bridge.received_errors import ReceivedErrors
from gloveport.errors import CODES, ToolError
from gloveport.host.failures import run_failure
from gloveport.prepare import prepare
from gloveport.sandbox import wire
from gloveport.sandbox.exit_reason import exit_error
from gloveport.sandbox.guest import Exit
from gloveport.sandbox.run_attempt import RunAttempt, RunSetup
from gloveport.types import Limits, LogLine, ToolCall
from gloveport.values import to_json

PROGRAM = prepare("const x = 1;\nreturn x")
LIMITS = Limits(max_calls=100, max_log_bytes=200, max_result_bytes=2000, max_frame_bytes=64 * 1024)
SESSION = [FRAMES[1], FRAMES[2], FRAMES[3], FRAMES[5], FRAMES[6], FRAMES[7]]
SEEDS = (*(json.dumps([frame]).encode() for frame in FRAMES), json.dumps(SESSION).encode())


class _Worker:
    """A worker that sends the given bytes to its listener and then closes."""

    idle_mb = 10.0
    prepared = None
    unsent = 0

    def __init__(self, said: bytes) -> None:
        self._said = said

    def limit(self, limits: Limits, on_exceeded: Callable[[], None]) -> None: ...
    def pause(self) -> None: ...
    def resume(self) -> None: ...

    def send(self, data: bytes) -> int:
        json.loads(
            data[wire.HEADER_BYTES : wire.HEADER_BYTES + int.from_bytes(data[: wire.HEADER_BYTES])]
        )  # check the first frame as a sample
        return 0

    def listen(self, on_bytes: Callable[[bytes], None]) -> None:
        def speak() -> None:
            on_bytes(self._said)
            on_bytes(b"")

        asyncio.get_running_loop().call_soon(speak)

    def death(self, exit_: Exit, stderr: str, limits: Limits) -> dict[str, Any]:
        return exit_error(exit_, stderr, limits, self.idle_mb)

    def run_cpu_seconds(self) -> float:
        return 0.0

    peak_mb = run_cpu_seconds

    def end(self, delay: float = 0) -> asyncio.Future[tuple[Exit, str]]:
        ended = asyncio.get_running_loop().create_future()
        ended.set_result((Exit.from_status(0, 0.0, 10_000), ""))
        return ended


class _Port:
    """A port that answers every call with its arguments, and records the defects of the host."""

    def __init__(self) -> None:
        self.defects: list[BaseException] = []

    async def call(self, call: ToolCall) -> Any:
        if len(call.name) % 3 == 1:
            await asyncio.sleep(0)
        return call.args

    async def call_sync(self, name: str, args: list[Any]) -> Any:
        if not name.isascii():
            raise ToolError("no such name", code="unknown-tool")
        return args

    def log(self, line: LogLine) -> None:
        line.text.encode()

    def emit(self, value: Any) -> None:
        to_json(value)

    def stop_asking(self) -> None:
        """Ask nobody."""

    def report_defect(self, error: Exception) -> ToolError:
        self.defects.append(error)
        return ToolError("a defect", code="internal-error")


def judge(data: bytes) -> None:
    """Send frames from a JSON list, or raw bytes: the attempt must end, and a Failure must have a known code."""
    try:
        frames = json.loads(data)
        said = b"".join(wire.pack(json.dumps(frame).encode()) for frame in frames)
    except (ValueError, TypeError, RecursionError):
        said = data
    asyncio.run(_attempt(said))


async def _attempt(said: bytes) -> None:
    port = _Port()
    asyncio.get_running_loop().set_exception_handler(lambda _, context: port.defects.append(context["exception"]))
    attempt = RunAttempt(_Worker(said), port, LIMITS)  # type: ignore[arg-type] - it has the members that an attempt uses
    async with asyncio.timeout(30):
        ending = await attempt.run(PROGRAM, RunSetup(now=1_700_000_000_000_000, seed=bytes(32)))
    if port.defects:
        raise BrokenPromise("a defect of the host") from port.defects[0]
    if ending.error is None:
        to_json(ending.value)
        return
    received = ReceivedErrors()
    received.add(ToolError("x", tool="add", origin="tool"))
    told = run_failure(PROGRAM, ending, received)
    if not ending.reported_by_guest and told.code not in CODES:
        raise BrokenPromise(f"the host ended the run with {told}")


TARGETS = (
    Target(
        "run_attempt",
        judge,
        mutate_json(LEAVES),
        SEEDS,
        ("sandbox/run_attempt.py", "values.py", "sandbox/exit_reason.py", "host/failures.py"),
    ),
)
