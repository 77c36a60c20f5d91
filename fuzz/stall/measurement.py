"""Measures inputs in a host process, from outside: a host that hangs is killed, and a find must repeat in fresh hosts."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzz.stall.entrance import Entrance
from fuzz.stall.heartbeat import MAX_GAP_SECONDS
from fuzz.target import BrokenPromise

MAX_CPU_SECONDS = 10.0  # of the host for one input, before it is killed: its loop may turn well meanwhile
MAX_WALL_SECONDS = 600.0  # on a busy machine: only a host that waits for something that never comes takes as long
REPEATS = 2
CERTAIN_SECONDS = 1.0  # no garbage collection and no busy machine makes a gap as long: it needs no repetition
ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The longest gap in CPU seconds, how the input was refused, the problem with that, and the stacks of the gap."""

    seconds: float
    refusal: tuple[str, str] | None = None
    problem: str = ""
    stacks: str = ""


class MeasuredHost:
    """One entrance in a host process, which is started when it is needed."""

    def __init__(self, entrance: Entrance) -> None:
        self._entrance = entrance
        self._process: subprocess.Popen[bytes] | None = None
        self._slowest = 0.0
        self.is_slower = False  # whether the last input took longer than all before it

    def judge(self, data: bytes) -> None:
        """Raise BrokenPromise if the input stops the loop for too long, each time, or is refused without a clear error."""
        try:
            document = json.loads(data)
        except ValueError:
            return
        verdict = self.confirm(document)
        self.is_slower, self._slowest = verdict.seconds > self._slowest, max(verdict.seconds, self._slowest)
        if verdict.seconds > MAX_GAP_SECONDS:
            raise BrokenPromise(f"the loop stood still for {verdict.seconds * 1000:.0f} ms of CPU time\n{verdict.stacks}")
        if verdict.problem:
            raise BrokenPromise(verdict.problem)

    def confirm(self, document: Any) -> Verdict:
        """Return the verdict on one input; if it may stop the loop for too long, the best of three, each in a fresh host."""
        verdict = self.measure(document)
        for _ in range(REPEATS):
            if not MAX_GAP_SECONDS < verdict.seconds < CERTAIN_SECONDS:
                break
            self.close()  # neither the caches of the next host nor its garbage are those of this one
            verdict = min(verdict, self.measure(document), key=lambda one: one.seconds)
        return verdict

    def measure(self, document: Any) -> Verdict:
        """Return the verdict on one input, once."""
        process = self._start()
        assert process.stdin is not None
        process.stdin.write(json.dumps(document).encode() + b"\n")
        process.stdin.flush()
        began = cpu_seconds(process.pid)
        answer = self._answer(process, began + MAX_CPU_SECONDS)
        if answer is None:
            seconds = MAX_CPU_SECONDS if process.poll() is None else 0.0
            self.close()
            return Verdict(seconds, problem="" if seconds else "the host died")
        refusal = answer.get("refusal")
        return Verdict(
            answer["seconds"], tuple(refusal) if refusal else None, answer.get("problem", ""), answer.get("stacks", "")
        )

    def close(self) -> None:
        """End the host."""
        if self._process is None:
            return
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()
        self._process = None

    def _start(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            argv = [sys.executable, "-m", "fuzz.stall.host", self._entrance.module]
            self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)
            if self._answer(self._process, None) is None:
                raise RuntimeError(f"the host of the entrance {self._entrance.name} did not start")
        return self._process

    def _answer(self, process: subprocess.Popen[bytes], max_cpu: float | None) -> dict[str, Any] | None:
        """Return the next line of the host; None when it died or used too much CPU time."""
        assert process.stdout is not None
        until, line = time.monotonic() + MAX_WALL_SECONDS, b""
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while time.monotonic() < until and not line.endswith(b"\n"):
                if selector.select(0.2):
                    piece = os.read(process.stdout.fileno(), 65536)
                    if not piece:
                        process.wait()
                        return None
                    line += piece
                elif max_cpu is not None and cpu_seconds(process.pid) > max_cpu:
                    return None
        return json.loads(line) if line.endswith(b"\n") else None


def cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
