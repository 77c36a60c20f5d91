"""A compromised worker may send any bytes: the run ends with the right code, and the host is unharmed (S6)."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import os
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, Outcome
from gloveport.sandbox.engines.deno.engine import ENGINE as DENO
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.launcher import Launch
from tests.conftest import TOOLS
from tests.escapes.ways import HERE

pytestmark = pytest.mark.integration

MIB = 1024 * 1024
MAX_GROWTH_BYTES = 64 * MIB  # four frames
MAX_STALL_SECONDS = 1.0  # of CPU time: the bar is 0.05 s (see test_stall.py); the threads of this process count, too
LONG, SHORT = 300, 2  # for a run that ends by itself, and for one that only its time limit ends
MAX_RUN_SECONDS = 2.0 * LONG
FORGER = "/guest/forger.js"
DONE = ["done", "value", "honest", {}]
PRIME = 2**61 - 1  # the modulus of Python's hash of an int

VIOLATION, TOO_LARGE, LIMIT = "wire-violation", "frame-too-large", "time-limit"


async def big() -> str:
    """Return a megabyte for a small request."""
    return "x" * MIB


PLAIN = DENO.launch(ProcessOptions("deno"))


def _forger_launch(_options: ProcessOptions) -> Launch:
    argv = ("deno", "run", "-A", "--no-config", "--no-lock", "--no-remote", FORGER)
    files = {FORGER: (HERE / "_harness" / "forger.js").read_bytes()}
    env = {**PLAIN.env, "DENO_DIR": f"{FORGER}/none"}
    return replace(PLAIN, argv=argv, files=files, env=env, first_input=b"", idle_input=b"")


@pytest.fixture(scope="module")
async def forgers() -> AsyncIterator[Gloveport]:
    port = Gloveport(tools=[*TOOLS, big], spare=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DENO, "launch", _forger_launch)
        await port.open()
    yield port
    await port.close()


def _frame(message: Any) -> bytes:
    payload = message if isinstance(message, bytes) else json.dumps(message).encode()
    return len(payload).to_bytes(4) + payload


def _plan(
    *frames: Any, head: bytes = b"", unit: bytes = b"", times: int = 0, tail: bytes = b"", **how: Any
) -> dict[str, Any]:
    """Return the plan of the forger: `head`, `unit` repeated, `tail`; or these frames."""
    tail = b"".join(map(_frame, frames)) + tail
    parts = {"head": head, "unit": unit, "tail": tail}
    return {name: base64.b64encode(part).decode() for name, part in parts.items()} | {"times": times} | how


def _within(start: bytes, unit: bytes, times: int, end: bytes) -> dict[str, Any]:
    """Return one frame: `start`, `unit` repeated, `end`."""
    size = len(start) + len(unit) * times + len(end)
    return _plan(head=size.to_bytes(4) + start, unit=unit, times=times, tail=end)


def _colliding(count: int, kind: str) -> bytes:
    """Return a map or set whose members all have the same hash in Python."""
    keys = [json.dumps({"$": "bigint", "v": str(PRIME * (place + 1))}) for place in range(count)]
    members = [f"[{key},0]" for key in keys] if kind == "map" else keys
    return b'["done","value",{"$":"%s","v":[%s]},{}]' % (kind.encode(), ",".join(members).encode())


@contextlib.contextmanager
def _host_stays_as_it_was(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Assert that memory, the event loop and the log of this process stayed within bounds."""
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = _status("VmRSS")
    with caplog.at_level(logging.WARNING):
        yield
    assert _status("VmHWM") - before < MAX_GROWTH_BYTES, f"grew by {(_status('VmHWM') - before) / MIB:.0f} MiB"
    assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR], caplog.text


def _status(name: str) -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.split(f"{name}:")[1].split()[0]) * 1024


async def _attack(port: Gloveport, plan: dict[str, Any], **limits: Any) -> Outcome:
    """Run a worker that follows the plan; return how the run ended. Assert that the loop never stalled for long."""
    stalled = asyncio.create_task(_longest_stall())
    await asyncio.sleep(0)
    async with asyncio.timeout(MAX_RUN_SECONDS):
        outcome = await port.run("1", input=plan, limits={"wall_seconds": LONG, "cpu_seconds": LONG, **limits})
    stalled.cancel()
    stall = await stalled
    assert stall < MAX_STALL_SECONDS, f"the host stood still for {stall:.1f} s"
    return outcome


def _code(outcome: Outcome) -> str:
    return "ok" if outcome.error is None else outcome.error.code


ATTACKS: dict[str, tuple[dict[str, Any], set[str]]] = {
    # not the protocol
    "bad JSON": (_plan(b'["done",'), {VIOLATION}),
    "no array": (_plan({"done": 1}), {VIOLATION}),
    "an empty frame": (_plan(b""), {VIOLATION}),
    "an empty array": (_plan([]), {VIOLATION}),
    "a kind that is no text": (_plan([[["done"]]]), {VIOLATION}),
    "an unknown kind": (_plan(["exec", "sh"]), {VIOLATION}),
    "ready twice": (_plan(["ready", 1, "again"], DONE), {VIOLATION}),
    "a reply in place of a call": (_plan(["reply", 0, 1, True, 1], DONE), {VIOLATION}),
    "a start": (_plan(["start", 0, {"code": "1"}]), {VIOLATION}),
    "bytes that are no UTF-8": (_plan(b'["log","log","\xff\xfe"]'), {VIOLATION}),
    "a done with another run's id": (_plan(["done", "value", 1, {}, "0123456789abcdef" * 2]), {VIOLATION}),
    "a done of another kind": (_plan(["done", "maybe", 1, {}]), {VIOLATION}),
    "a log of an unknown level": (_plan(["log", "fatal", "x"]), {VIOLATION}),
    "malformed tags": (_plan(["emit", {"$": "bytes", "v": "%%"}]), {VIOLATION}),
    "a tag that is no text": (_plan(["emit", {"$": [1], "v": 1}]), {VIOLATION}),
    "a date past the end of time": (_plan(["emit", {"$": "date", "v": 1e300}]), {VIOLATION}),
    "an endless whole number": (_plan(["emit", {"$": "bigint", "v": "9" * 5000}]), {VIOLATION}),
    # ids
    "an id used twice": (_plan(["call", 1, "add", [1, 2]], ["call", 1, "add", [1, 2]], DONE), {VIOLATION}),
    "ids that go back": (_plan(["call", 5, "add", [1, 2]], ["call", 4, "add", [1, 2]], DONE), {VIOLATION}),
    "an id of zero": (_plan(["call", 0, "add", [1, 2]]), {VIOLATION}),
    "an id that is no number": (_plan(["call", "1", "add", []]), {VIOLATION}),
    "an id of 4,000 digits": (_plan(["call", {"$": "bigint", "v": "9" * 4000}, "add", [1, 2]], DONE), {VIOLATION, "ok"}),
    # sizes
    "a length of 4 GiB": (_plan(tail=b"\xff\xff\xff\xff" + b"x" * 1000), {TOO_LARGE}),
    "a result a million deep": (_within(b'["done","value",', b"[", 1_000_000, b"]" * 100), {VIOLATION, "bad-value"}),
    "a result a million deep and closed": (
        _plan(b'["done","value",' + b"[" * 1_000_000 + b"]" * 1_000_000 + b",{}]"),
        {"bad-value"},
    ),
    "sixteen MiB of empty arrays": (
        _within(b'["done","value",[[]', b",[]", 16 * MIB // 3 - 20, b"],{}]"),
        {VIOLATION, "bad-value", "result-too-large"},
    ),
    "eight MiB of empty objects in arguments": (
        _within(b'["call",1,"echo",[{"value":[{}', b",{}", 8 * MIB // 3, b"]}]]"),
        {VIOLATION, "bad-value", "ok", LIMIT},
    ),
    "brackets that are dear to count": (
        _within(b'["done","value",[0', b"," + b"[" * 120 + b"]" * 120, 16 * MIB // 242, b"],{}]"),
        {VIOLATION, "bad-value", "result-too-large"},
    ),
    "sixteen MiB of quotes": (_within(b"[" * 200, b'"', 16 * MIB - 500, b""), {VIOLATION, "bad-value"}),
    "a map whose keys collide": (_plan(_colliding(20_000, "map")), {"ok", VIOLATION, "bad-value"}),
    "a set whose members collide": (_plan(_colliding(20_000, "set")), {"ok", VIOLATION, "bad-value"}),
    "a name of fifteen MiB": (_within(b'["call",1,"', b"a", 15 * MIB, b'",[]]'), {LIMIT, VIOLATION, "ok"}),
    "an error of seven MiB": (
        _within(b'["done","error",{"message":"', b"x", 7 * MIB, b'"},{}]'),
        {"program-failed", "result-too-large", VIOLATION},
    ),
    # floods
    "100,000 calls at once": (
        _plan(*(["call", number, "add", [1, 2]] for number in range(1, 100_001)), DONE),
        {"call-limit"},
    ),
    "20,000 look-ups": (
        _plan(*(["call_sync", number, "names", [""]] for number in range(1, 20_001)), DONE),
        {"call-limit"},
    ),
    "calls to tools that are not there": (
        _plan(*(["call", number, f"no.such.tool{number}", [{}]] for number in range(1, 501)), DONE),
        {"ok"},
    ),
    "two million empty log lines": (
        _plan(unit=_frame(["log", "log", ""]), times=2_000_000, tail=_frame(DONE)),
        {"ok", VIOLATION, LIMIT},
    ),
    "300 MiB of log": (_plan(unit=_frame(["log", "log", "x" * 65000]), times=4800, tail=_frame(DONE)), {"ok"}),
    "a million values emitted": (_plan(unit=_frame(["emit", 1]), times=2_000_000, tail=_frame(DONE)), {"result-too-large"}),
    "frames without end": (_plan(unit=_frame(["log", "log", "x"]), then="flood"), {LIMIT, TOO_LARGE, VIOLATION}),
    "a million timers, and nobody reads": (
        _plan(unit=_frame(["timer", 0]), times=2_000_000, then="hang"),
        {LIMIT, VIOLATION},
    ),
    "big answers, and nobody reads": (
        _plan(*(["call", number, "big", [{}]] for number in range(1, 501)), then="hang"),
        {LIMIT, VIOLATION},
    ),
    # timers
    **{
        f"a timer at {name}": (_plan(["timer", at], then="hang"), {LIMIT, VIOLATION})
        for name, at in {
            "1e308": 1e308,
            "-1e308": -1e308,
            "NaN": {"$": "number", "v": "NaN"},
            "Infinity": {"$": "number", "v": "Infinity"},
            "-Infinity": {"$": "number", "v": "-Infinity"},
            "4,000 digits": {"$": "bigint", "v": "9" * 4000},
            "minus 4,000 digits": {"$": "bigint", "v": "-" + "9" * 3999},
            "true": True,
            "a date": {"$": "date", "v": 0},
        }.items()
    },
    # the end
    "half a frame, then the end": (_plan(tail=_frame(DONE)[:-3], then="exit"), {"sandbox-crashed"}),
    "half a frame, then nothing": (_plan(tail=_frame(DONE)[:-3], then="hang"), {LIMIT}),
    "nothing at all": (_plan(then="hang"), {LIMIT}),
    "an end without a word": (_plan(then="exit"), {"sandbox-crashed"}),
    "an honest end, byte by byte": (_plan(DONE, trickle=True), {"ok"}),
    "two ends": (_plan(DONE, ["done", "error", {"message": "second"}, {}]), {"ok"}),
    "calls after the end": (_plan(DONE, *(["call", number, "big", [{}]] for number in range(1, 2000))), {"ok"}),
    "an end with a call under way": (_plan(["call", 1, "forever", []], DONE), {"ok", LIMIT}),
    "notes of the wrong kinds": (
        _plan(["done", "value", 1, {"pending": {"a": 1}, "unhandled": [1, [2], {"type": {"x": 1}}], "dropped": -5}]),
        {"ok"},
    ),
    "notes without end": (
        _plan(["done", "value", 1, {"pending": list(range(100_000)), "unhandled": [{"message": "x" * 5000}] * 1000}]),
        {"ok"},
    ),
    "an error of the wrong kinds": (
        _plan(["done", "error", {"code": [1], "type": 5, "message": None, "line": -1, "column": 1e99, "cause": "x"}, {}]),
        {"program-failed"},
    ),
    "an error at a line past all lines": (
        _plan(["done", "error", {"message": "x", "line": 2**62, "column": 2**62}, {}]),
        {"program-failed"},
    ),
    "an error with the code of a limit": (
        _plan(["done", "error", {"message": "x", "code": "internal-error"}, {}]),
        {"program-failed"},
    ),
}


@pytest.mark.parametrize("name", ATTACKS)
async def test_a_forged_message_ends_its_run_and_touches_nothing_else(
    forgers: Gloveport, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    plan, codes = ATTACKS[name]
    with _host_stays_as_it_was(caplog):
        outcome = await _attack(forgers, plan, wall_seconds=SHORT if LIMIT in codes else LONG)
    assert _code(outcome) in codes, outcome.error
    assert len(outcome.logs) < 300_000
    honest = await _attack(forgers, _plan(DONE))
    assert honest.value == "honest"


async def test_a_call_made_after_the_end_is_never_carried_out(forgers: Gloveport) -> None:
    outcome = await _attack(forgers, _plan(DONE, ["call", 1, "add", [1, 2]]))
    assert outcome.calls == ()


async def test_answers_to_calls_of_one_forger_never_reach_another(forgers: Gloveport) -> None:
    plans = [_plan(["call", 7, "add", [place, 0]], DONE) for place in range(6)]
    outcomes = await asyncio.gather(*(forgers.run("1", input=plan, limits={"wall_seconds": LONG}) for plan in plans))
    assert [outcome.calls[0].args for outcome in outcomes] == [{"a": place, "b": 0} for place in range(6)]


STALLS = {
    "keys that collide": f"const m = new Map(); for (let i = 1n; i <= 15000n; i++) m.set(i * {PRIME}n, 0); return m",
    "deep nests, side by side": "let x: any = []; for (let i = 0; i < 100; i++) x = [x]; await tools.echo({value: Array(12000).fill(x)})",
    "many empty arrays": "const e: any[] = []; await tools.echo({value: Array(500000).fill(e)})",
}


@pytest.mark.parametrize("name", STALLS)
async def test_an_ordinary_program_can_not_make_the_host_stand_still(port: Gloveport, name: str) -> None:
    code = STALLS[name]
    stalled = asyncio.create_task(_longest_stall())
    await asyncio.sleep(0)
    outcome = await port.run(code, limits={"wall_seconds": LONG})
    stalled.cancel()
    assert _code(outcome) not in ("memory-limit", "cpu-limit"), "it must reach the host, or it shows nothing"
    assert await stalled < MAX_STALL_SECONDS


async def _longest_stall() -> float:
    """Return the longest time in which the loop did not turn, in CPU time of this process, once it is cancelled."""
    longest, last = 0.0, time.process_time()
    with contextlib.suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(0.01)
            now = time.process_time()
            longest, last = max(longest, now - last), now
    return max(longest, time.process_time() - last)


async def test_the_measures_of_these_tests_can_fail(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(AssertionError, match="grew by"), _host_stays_as_it_was(caplog):
        kept = bytearray(80 * MIB)
        kept[:: os.sysconf("SC_PAGE_SIZE")] = b"x" * len(kept[:: os.sysconf("SC_PAGE_SIZE")])
        del kept
    with pytest.raises(AssertionError), _host_stays_as_it_was(caplog):
        logging.getLogger("asyncio").error("Exception in callback")
    caplog.clear()
    stalled = asyncio.create_task(_longest_stall())
    await asyncio.sleep(0)
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    stalled.cancel()
    assert await stalled > 0.04
