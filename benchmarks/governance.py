"""What rules and the record cost: decisions by 500 rules, and runs with a store beside the same runs without one."""

from __future__ import annotations

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.programs import unread
from benchmarks.sampling import Row, interleaved, median
from gloveport import Answer, ApprovalRequest, Gloveport, Rule, Rules, tool
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.store.event_log import EventLog
from gloveport.types import CallRequest, Tool

MANY_READS = "let n = 0; for (let i = 0; i < 200; i++) n += await tools.read({n: i}); return n"
READS = "let n = 0; for (let i = 0; i < 3; i++) n += await tools.read({n: i}); return n"
WRITES = "let n = 0; for (let i = 0; i < 20; i++) n += await tools.write({n: i}); return n"
EVENTS = 20_000


async def read(n: int) -> int:
    """Read."""
    return n


@tool(writes=True)
async def write(n: int) -> int:
    """Write."""
    return n


async def rows(rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        allowed = Rules([Rule("*", "allow")])
        async with (
            Gloveport(tools=[read, write], rules=allowed) as bare,
            Gloveport(tools=[read, write], rules=allowed, store=path) as recorded,
        ):
            found = [decisions()]
            found.append(await beside(recorded, bare, "trivial run with the record on", "1", rounds=rounds))
            found.append(await beside(recorded, bare, "three read calls with the record on", READS, rounds=rounds))
            found.append(
                await beside(
                    recorded, bare, "200 read calls in a row with the record on", MANY_READS, rounds=rounds, bar=1.1
                )
            )
            found.append(await writes(recorded, bare, rounds))
        return [*found, await events(Path(folder) / "events.sqlite"), await continuing(Path(folder) / "answers.sqlite")]


def many_rules() -> Rules:
    """Return 500 rules, of which the last one allows everything."""
    return Rules(
        [Rule(f"source{n}.part{n % 7}.*", "ask", when=f"args.amount > {n}") for n in range(499)] + [Rule("*", "allow")]
    )


def decisions() -> Row:
    rules = many_rules()
    requests = [
        CallRequest(Tool(f"source{n % 499}.part{n % 499 % 7}.create", "", {}, kind="openapi"), {"amount": n})
        for n in range(1000)
    ]
    samples = []
    for _ in range(5):
        for request in requests:
            began = time.perf_counter()
            rules.decide(request)
            samples.append(time.perf_counter() - began)
    taken = median(samples) * 1000
    return ("a decision by 500 rules", f"{taken:.4f} ms", "", "", "≤ 0.010 ms")


async def beside(recorded: Gloveport, bare: Gloveport, name: str, code: str, *, rounds: int, bar: float = 1.05) -> Row:
    async def run(port: Gloveport) -> float:
        await asyncio.sleep(0.2)  # the record of the run before is written meanwhile, and the next worker started
        text = unread(code, "javascript")
        began = time.perf_counter()
        outcome = await port.run(text, language="javascript")
        assert outcome.ok, outcome.error
        return time.perf_counter() - began

    ours, floor = await interleaved(rounds, lambda: run(recorded), lambda: run(bare))
    ratio = median(ours) / median(floor)
    return (name, f"{median(ours) * 1000:.2f} ms", f"{median(floor) * 1000:.2f} ms", f"{ratio:.2f} ×", f"≤ {bar:.2f} ×")


async def writes(recorded: Gloveport, bare: Gloveport, rounds: int) -> Row:
    async def run(port: Gloveport) -> float:
        await asyncio.sleep(0.2)
        began = time.perf_counter()
        outcome = await port.run(WRITES, language="javascript")
        assert outcome.ok, outcome.error
        return (time.perf_counter() - began) / 20

    ours, floor = await interleaved(rounds, lambda: run(recorded), lambda: run(bare))
    added = (median(ours) - median(floor)) * 1000
    return ("a call that writes, with the record on", f"{median(ours) * 1000:.2f} ms", f"{median(floor) * 1000:.2f} ms",
            f"adds {added:.2f} ms", "≤ 1 ms")  # fmt: skip


async def events(path: Path) -> Row:
    log = EventLog(path)
    began = time.perf_counter()
    for number in range(EVENTS):
        log.append("event", {"number": number, "run": "0" * 32}, {"args": b'{"text": "%d"}' % number})
    await log.close()
    rate = EVENTS / (time.perf_counter() - began)
    return ("events recorded in a second", f"{rate:,.0f}", "", "", "≥ 5,000 events/s")


async def continuing(path: Path) -> Row:
    """The time from an answer in another process to the end of the call."""
    samples = []
    async with Gloveport(tools=[write], store=path) as port:
        for _ in range(10):
            outcome = await port.run("return await tools.write({n: 1})")
            (request,) = port.approvals.waiting
            seconds = await asyncio.to_thread(_answer, path, request)
            began = time.perf_counter() - seconds
            assert (await port.resume(outcome.run)).ok
            samples.append(time.perf_counter() - began)
    return ("from an answer elsewhere to the end of the call, p50", f"{median(samples):.2f} s", "", "", "≤ 1 s")


def _answer(path: Path, request: ApprovalRequest) -> float:
    shelf = ApprovalShelf(path)
    try:
        while not any(one.request.id == request.id for one in shelf.waiting()):
            time.sleep(0.01)
        began = time.perf_counter()
        shelf.answer({request.id: request.digest}, Answer(True, "ada"))
        return time.perf_counter() - began
    finally:
        shelf.close()


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 30)):
        print(" | ".join(row))
