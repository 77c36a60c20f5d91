"""Runs that outlive their process: released, killed, resumed elsewhere; no write is made twice (B11, R1, R7)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, Gloveport, OptionError, Rule, Rules, tool
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.host.runs.past_outcome import past_outcome
from gloveport.store.database import open_database
from gloveport.store.stored_runs import StoredRuns
from gloveport.store.verification import verify
from gloveport.surfaces.record_documents import begin_cancel
from tests.durable.host import TOOLS, port, set_lock_timeout
from tests.sources.mcp.support import eventually

pytestmark = pytest.mark.integration

PARALLEL = {
    "typescript": """
console.log("begin");
const seen = await Promise.all([1, 2, 3, 4, 5].map((n) => tools.look({n})));
const order: number[] = [];
await Promise.all([30, 10, 20].map((ms) => new Promise<void>((r) => setTimeout(() => { order.push(ms); r() }, ms))));
const started = Date.now(), chance = Math.random();
const paid = [];
for (const n of seen.slice(0, 2)) paid.push(await tools.pay({n}));
return {order, paid, started, chance};
""",
    "python": """
import asyncio, random, time
print("begin")
seen = await asyncio.gather(*(tools.look(n=n) for n in (1, 2, 3, 4, 5)))
order = []
async def later(ms):
    await asyncio.sleep(ms / 1000)
    order.append(ms)
await asyncio.gather(*(later(ms) for ms in (30, 10, 20)))
started, chance = time.time(), random.random()
paid = [await tools.pay(n=n) for n in seen[:2]]
{"order": order, "paid": paid, "started": started, "chance": chance}
""",
    "monty": """
import asyncio
print("begin")
seen = await asyncio.gather(*[tools.look(n=n) for n in (1, 2, 3, 4, 5)])
paid = [await tools.pay(n=n) for n in seen[:2]]
{"order": [10, 20, 30], "paid": paid}
""",
}
PAID = [f"paid {n}" for n in (2, 4)]
CRASHES = int(os.environ.get("CRASHES", "3"))  # of each engine; `make crashes` tries more
ENGINES = (("typescript", "deno"), ("typescript", "quickjs"), ("python", "cpython"), ("python", "monty"))


def program(language: str, engine: str) -> str:
    return PARALLEL["monty" if engine == "monty" else language]


def start(store: Path, *args: str, **env: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.durable.host", str(store), os.environ["EFFECTS"], *args]
    root = Path(__file__).parent.parent.parent
    return subprocess.Popen(command, cwd=root, env={**os.environ, **env}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def run_host(store: Path, *args: str, **env: str) -> dict[str, Any] | None:
    """The outcome that a host printed; None if it was killed."""
    process = start(store, *args, **env)
    out, _ = process.communicate(timeout=120)
    assert process.returncode in (0, -9)
    return json.loads(out) if out else None


def only_run(store: Path) -> Any:
    runs = StoredRuns(store)
    try:
        found = runs.latest(limit=1)
        return found[0] if found else None
    finally:
        runs.close()


def all_runs(store: Path) -> list[Any]:
    runs = StoredRuns(store)
    try:
        return runs.latest()
    finally:
        runs.close()


def recorded_writes(store: Path) -> int:
    """Return the number of writes that the store records as sent."""
    connection = sqlite3.connect(store)
    try:
        return connection.execute("SELECT count(DISTINCT content) FROM run_steps WHERE sender = 'write'").fetchone()[0]
    finally:
        connection.close()


def waiting_requests(store: Path) -> int:
    shelf = ApprovalShelf(store)
    try:
        return len(shelf.waiting())
    finally:
        shelf.close()


def is_released(store: Path) -> bool:
    """Whether a request waits and nobody owns the run."""
    run = only_run(store)
    return run is not None and not run.owned and waiting_requests(store) == 1


def answer(store: Path, **given: Any) -> None:
    """Answer everything that waits."""
    shelf = ApprovalShelf(store)
    try:
        for one in shelf.waiting():
            shelf.answer({one.request.id: one.request.digest}, Answer(**({"approved": True, "approver": "ada"} | given)))
    finally:
        shelf.close()


# Released and resumed.


@pytest.mark.parametrize(("language", "engine"), ENGINES, ids=[engine for _, engine in ENGINES])
async def test_a_run_that_waits_is_released_and_goes_on_in_another_host(
    store: Path, effects: Any, language: Any, engine: str
) -> None:
    first = await asyncio.to_thread(run_host, store, "run", program(language, engine), language, engine, ASK="1")
    assert first is not None
    assert first["status"] == "waiting"
    looked = [["look", "ok"]] * 5
    for n in range(2):
        assert first["calls"] == [*looked, *[["pay", "ok"]] * n, ["pay", "waiting"]]
        answer(store)
        first = await asyncio.to_thread(run_host, store, "resume", first["run"], ASK="1")
        assert first is not None
    assert first["status"] == "completed", first
    assert first["value"]["paid"] == PAID
    assert first["value"]["order"] == [10, 20, 30]
    assert first["logs"] == ["begin"]
    assert effects() == ["pay 2", "pay 4"]
    assert not verify(open_database(store)).problems
    with closing(StoredRuns(store)) as runs:  # which has forgotten neither who answered nor how long it took
        paid = [call for call in past_outcome(runs, runs.find(first["run"])).calls if call.tool == "pay"]
    assert [call.approval and call.approval.approver for call in paid] == ["ada", "ada"]
    assert all(call.approval and call.seconds and 0 < call.approval.seconds <= call.seconds for call in paid)


async def test_a_released_run_goes_on_by_itself_when_a_person_answers(store: Path) -> None:
    made: list[int] = []

    @tool(writes=True)
    def pay(n: int) -> int:
        """Pay."""
        made.append(n)
        return n

    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        assert port._held is not None
        port._held._hold_seconds = 0.01
        outcome = await port.run("return await tools.pay({n: 1}) + await tools.pay({n: 2})")
        for count in (1, 2):
            await eventually(lambda: is_released(store))
            assert len(made) == count - 1
            answer(store)
            await eventually(lambda count=count: len(made) == count)
        await eventually(lambda: only_run(store).status == "completed")
        ended = await port.resume(outcome.run)
        assert ended.value == 3
    with closing(open_database(store)) as connection:
        shown = {id for (id,) in connection.execute("SELECT id FROM approvals")}
        recorded = connection.execute("SELECT json_extract(body, '$.request') FROM events WHERE kind LIKE 'call-a%'")
        assert {id for (id,) in recorded} == shown  # the record names the requests that a person saw
        assert len(shown) == 2


async def test_the_same_program_is_not_started_again_while_it_waits_in_the_store(store: Path) -> None:
    made: list[Any] = []
    async with Gloveport(tools=[paying(made)], store=store, spare=1) as port:
        assert port._held is not None
        port._held._hold_seconds = 0.01
        code = "return await tools.pay({n: input})"
        first = await port.run(code, input=1, attach=True)
        await eventually(lambda: is_released(store))
        again = await port.run(code, input=1, attach=True)
        other = await port.run(code, input=2, attach=True)
        assert (again.run, again.status, other.run == first.run) == (first.run, "waiting", False)
        await eventually(lambda: waiting_requests(store) == 2)
        answer(store)
        await eventually(lambda: sorted(made) == [1, 2])
        await eventually(lambda: all(run.is_final for run in all_runs(store)))
        assert (await port.run(code, input=1, attach=True)).run != first.run


async def test_a_run_keeps_its_process_while_the_store_cannot_take_it(store: Path) -> None:
    made: list[Any] = []
    async with Gloveport(tools=[paying(made)], store=store, spare=1) as port:
        assert port._held is not None
        outcome = await port.run("return await tools.pay({n: 1})")
        held = port._held.find(outcome.run, "default")
        assert held is not None
        await eventually(lambda: waiting_requests(store) == 1)
        set_lock_timeout(port, 50)
        locked = sqlite3.connect(store, isolation_level=None)
        locked.execute("BEGIN IMMEDIATE")
        assert not await held.release()
        locked.execute("ROLLBACK")
        locked.close()
        set_lock_timeout(port, 60_000)
        assert held.is_waiting
        assert await held.release()
        await eventually(lambda: is_released(store))


# Killed.


@pytest.mark.parametrize(("language", "engine"), ENGINES, ids=[engine for _, engine in ENGINES])
async def test_no_write_is_made_twice_whenever_the_host_is_killed(
    store: Path, effects: Any, language: str, engine: str
) -> None:
    chance = random.Random(f"{language} {engine}")
    points = [chance.randrange(1, 12) for _ in range(CRASHES)]
    for number, point in enumerate(points):
        own = store.with_name(f"{number}.sqlite")
        before = len(effects())
        told = await asyncio.to_thread(
            run_host, own, "run", program(language, engine), language, engine, KILL_AT=str(point)
        )
        found = only_run(own)
        if found is None:  # it died before anything was recorded
            assert told is None
            assert len(effects()) == before
            continue
        while told is None or told["status"] == "waiting":
            assert not only_run(own).owned
            answer(own, happened=True, value="it happened")
            told = await asyncio.to_thread(run_host, own, "resume", found.id)
        if told["status"] == "failed":  # it died before it began
            assert told["error"] == "not-resumable"
            assert len(effects()) == before
            continue
        assert told["status"] == "completed", (point, told)
        assert all(left in (right, "it happened") for left, right in zip(told["value"]["paid"], PAID, strict=True))
        arrived = effects()[before:]
        assert sorted(arrived) == sorted(set(arrived))
        assert len(arrived) <= recorded_writes(own)


async def test_a_write_that_was_interrupted_is_put_to_a_person(store: Path, effects: Any) -> None:
    code = "try { return [await tools.slow_pay({n: 1}), 'went on'] } catch (e) { return [e.code, e.message] }"
    answers: list[tuple[dict[str, Any], list[str], list[Any]]] = [
        ({"happened": True, "value": "paid by hand"}, ["pay 1"], ["paid by hand", "went on"]),
        ({"approved": False, "reason": "not in the books"}, ["pay 1"], ["outcome-unknown"]),
    ]
    for number, (given, made, value) in enumerate(answers):
        own, before = store.with_name(f"{number}.sqlite"), len(effects())
        process = start(own, "run", code, "typescript", "deno")
        await eventually(lambda before=before: effects()[before:] == ["pay 1"])
        process.kill()
        process.communicate()
        run = only_run(own)
        assert (run.status, run.owned) == ("running", False)
        with closing(StoredRuns(own)) as runs:
            (call,) = past_outcome(runs, runs.find(run.id)).calls
        assert (call.status, call.error) == ("unknown", "outcome-unknown: nobody knows whether `tools.slow_pay` was made")
        async with port(own) as opened:
            outcome = await opened.resume(run.id)
            assert outcome.status == "waiting"
            (request,) = opened.approvals.waiting
            assert request.is_unknown
            assert "nobody knows" in request.reason
            answer(own, **given)
            outcome = await opened.resume(run.id)
        assert outcome.value[: len(value)] == value
        assert effects()[before:] == made


async def test_a_write_that_was_interrupted_is_made_again_if_a_person_says_so(store: Path, effects: Any) -> None:
    """It is made as it was made before: with the arguments that a person has changed."""
    code = "return await tools.slow_pay({n: 1})"
    asked = await asyncio.to_thread(run_host, store, "run", code, "typescript", "deno", ASK="1")
    for made in (1, 2):
        assert asked is not None
        assert asked["status"] == "waiting"
        answer(store, **({"args": {"n": 5}} if made == 1 else {}))
        process = start(store, "resume", asked["run"], ASK="1")
        await eventually(lambda made=made: effects() == ["pay 5"] * made)
        process.kill()
        process.communicate()
        asked = await asyncio.to_thread(run_host, store, "resume", asked["run"], ASK="1")
    with closing(StoredRuns(store)) as runs:
        assert begin_cancel(runs, runs.find(only_run(store).id), "ada")
    assert (only_run(store).status, only_run(store).calls) == ("cancelled", 1)


async def test_a_write_that_was_interrupted_is_unknown_too_where_its_tool_is_gone_or_has_changed(
    store: Path, effects: Any
) -> None:
    process = start(store, "run", "return await tools.slow_pay({n: 1}).catch((e) => e.code)", "typescript", "deno")
    await eventually(lambda: effects() == ["pay 1"])
    process.kill()
    process.communicate()
    run = only_run(store).id

    @tool(writes=True)
    def slow_pay(sum: int) -> int:
        """Pay."""
        return sum

    changed = store.with_name("changed.sqlite")
    shutil.copy(store, changed)
    for own, tools in ((store, []), (changed, [slow_pay])):
        async with Gloveport(tools=tools, store=own, spare=1) as opened:
            assert (await opened.resume(run)).value == "outcome-unknown"


# Two owners.


async def test_only_one_of_two_hosts_goes_on_with_a_run(store: Path, effects: Any) -> None:
    first = await asyncio.to_thread(run_host, store, "run", PARALLEL["typescript"], "typescript", "deno", ASK="1")
    assert first is not None
    answer(store)
    both = [start(store, "resume", first["run"], ASK="1") for _ in range(2)]
    told = [process.communicate(timeout=60)[0] for process in both]
    assert any(told)
    assert effects() == ["pay 2"]


def stop_outside_a_transaction(process: subprocess.Popen[bytes], store: Path) -> None:
    """Stop a host at any moment at which it does not hold the lock of the store."""
    while True:
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid, os.WSTOPPED)  # until then, another thread of the host may take the lock
        try:
            lock_and_unlock(store, timeout=0.2)
            return
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
            lock_and_unlock(store, timeout=60)  # so that the host has gone on


def lock_and_unlock(store: Path, timeout: float) -> None:
    with closing(sqlite3.connect(store, timeout=timeout, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")


def recorded(store: Path) -> list[Any]:
    """All runs and steps in the store."""
    with closing(sqlite3.connect(store)) as connection:
        runs = connection.execute("SELECT id, status, fence, calls FROM runs").fetchall()
        return [*runs, *connection.execute("SELECT * FROM run_steps ORDER BY number")]


@pytest.mark.parametrize("taken_over", ["to the end", "and cancelled"])
async def test_a_host_that_was_stopped_while_another_took_over_records_and_writes_nothing_more(
    store: Path, effects: Any, taken_over: str
) -> None:
    code = (
        "for (let n = 1; n <= 40; n++) { await tools.pay({n}); await new Promise((r) => setTimeout(r, 20)); } return 'end'"
    )
    process = start(store, "run", code, "typescript", "deno")
    try:
        await eventually(lambda: len(effects()) >= 3)
        await asyncio.to_thread(stop_outside_a_transaction, process, store)
        with closing(
            sqlite3.connect(store, isolation_level=None)
        ) as connection:  # as a host in another container would see it
            connection.execute("UPDATE hosts SET process = 'elsewhere 1 1', seen = 0")
        run = only_run(store)
        assert (run.status, run.owned) == ("running", False)
        if taken_over == "to the end":
            async with port(store) as opened:
                outcome = await opened.resume(run.id)
                while outcome.status == "waiting":  # a write may have been on its way
                    answer(store, happened=True, value="it happened")
                    outcome = await opened.resume(run.id)
            assert outcome.value == "end", outcome.error
        else:
            with closing(StoredRuns(store)) as runs:
                assert runs.cancel(runs.find(run.id))
        before = recorded(store)
        process.send_signal(signal.SIGCONT)
        out, _ = await asyncio.to_thread(process.communicate, timeout=60)
    finally:
        process.kill()
        process.wait()
    assert json.loads(out)["status"] == "failed"
    assert recorded(store) == before
    assert len(effects()) == len(set(effects())) <= recorded_writes(store)
    assert len(effects()) == 40 or taken_over == "and cancelled"


async def test_a_host_that_lost_its_run_makes_no_more_writes(store: Path) -> None:
    made: list[int] = []
    looked = asyncio.Event()
    go = asyncio.Event()

    async def look() -> int:
        """Wait."""
        looked.set()
        await go.wait()
        return 1

    @tool(writes=True)
    def pay(n: int) -> int:
        """Pay."""
        made.append(n)
        return n

    async with Gloveport(tools=[look, pay], store=store, rules=[Rule("*", "allow")], spare=1) as port:
        running = asyncio.ensure_future(port.run("await tools.look(); return await tools.pay({n: 1})"))
        await looked.wait()
        await eventually(lambda: only_run(store) is not None)
        runs = StoredRuns(store)
        assert runs.take(only_run(store), "another") == 2
        runs.close()
        go.set()
        outcome = await running
    assert outcome.error is not None
    assert "another process has taken over this run" in outcome.error.message
    assert (outcome.error.code, outcome.error.hint) == ("run-taken-over", "Ask for its outcome with resume.")
    assert made == []


# What has changed meanwhile.


async def paused(store: Path, made: list[Any], **options: Any) -> str:
    """A run that waits in the store for an answer to `pay`."""
    async with Gloveport(tools=[paying(made)], store=store, spare=1, **options) as port:
        return (await port.run("return await tools.pay({n: 1}).catch((e) => e.code + ': ' + e.message)")).run


def paying(made: list[Any], description: str = "Pay.") -> Any:
    @tool(writes=True)
    def pay(n: int) -> int:
        made.append(n)
        return n

    pay.__doc__ = description
    return pay


async def test_a_rule_that_changed_applies_to_the_call_that_waits(store: Path) -> None:
    made: list[Any] = []
    run = await paused(store, made)
    answer(store)
    denied = Rules([Rule("*", "deny", reason="closed")])
    async with Gloveport(tools=[paying(made)], store=store, rules=denied, spare=1) as port:
        outcome = await port.resume(run)
    assert "closed" in outcome.value
    assert made == []


async def test_an_approval_is_void_when_the_definition_has_changed(store: Path) -> None:
    made: list[Any] = []
    run = await paused(store, made)
    answer(store)
    async with Gloveport(tools=[paying(made, "Pay twice.")], store=store, spare=1) as port:
        outcome = await port.resume(run)
        assert outcome.status == "waiting"
        assert made == []
        answer(store)
        assert (await port.resume(run)).value == 1
    assert made == [1]


@pytest.mark.parametrize("wrong", [{"args": {"n": "many"}}, {"args": {"n": 5}, "scope": "always"}, {"happened": True}])
async def test_an_answer_that_can_not_be_followed_lets_a_released_call_wait_on(store: Path, wrong: dict[str, Any]) -> None:
    """The same as for a call that is held: the next answer counts, and the approver is told why the first did not."""
    made: list[Any] = []
    run = await paused(store, made)
    answer(store, **wrong)
    async with Gloveport(tools=[paying(made)], store=store, spare=1) as port:
        assert (await port.resume(run)).status == "waiting"
        with closing(ApprovalShelf(store)) as shelf:
            await eventually(lambda: bool(shelf.waiting()))
            (one,) = shelf.waiting()
            assert one.problem
            assert shelf.standing() == []
        assert made == []
        answer(store, args={"n": 7})
        assert (await port.resume(run)).value == 7
    assert made == [7]


async def test_an_agent_that_is_gone_makes_no_call_any_more(store: Path) -> None:
    made: list[Any] = []
    settings = store.parent / "gloveport.toml"
    settings.write_text("[agents.bot]\n")
    async with Gloveport(tools=[paying(made)], store=store, config=settings, spare=1) as port:
        run = (await port.run("return await tools.pay({n: 1})", agent="bot")).run
    answer(store)
    settings.write_text("")
    async with Gloveport(tools=[paying(made)], store=store, config=settings, spare=1) as port:
        outcome = await port.resume(run, agent="bot")
    assert outcome.error is not None
    assert "there is no agent 'bot'" in outcome.error.message
    assert (made, only_run(store).is_final) == ([], False)  # it stays as it was


async def test_a_tool_that_is_gone_fails_the_call_and_not_the_run(store: Path) -> None:
    made: list[Any] = []
    run = await paused(store, made)
    answer(store)
    async with Gloveport(store=store, spare=1) as port:
        outcome = await port.resume(run)
    assert outcome.value.startswith("unknown-tool")


async def test_a_run_belongs_to_its_agent_in_the_store_too(store: Path) -> None:
    run = await paused(store, [])
    (store.parent / "gloveport.toml").write_text("[agents.other]\n")
    async with Gloveport(tools=TOOLS, store=store, config=store.parent / "gloveport.toml", spare=1) as port:
        for known in (run, run[:1]):
            with pytest.raises(OptionError, match="there is no run"):
                await port.resume(known, agent="other")


async def test_a_run_that_diverges_stays_as_it_was(store: Path) -> None:
    made: list[Any] = []
    run = await paused(store, made)
    connection = sqlite3.connect(store)
    changed = "CAST(replace(CAST(content AS TEXT), '\"n\":1', '\"n\":2') AS BLOB)"
    connection.execute(f"UPDATE run_steps SET content = {changed} WHERE sender = 'guest'")
    connection.commit()
    connection.close()
    before = only_run(store)
    async with Gloveport(tools=[paying(made)], store=store, spare=1) as port:
        outcome = await port.resume(run)
    assert outcome.error is not None
    assert outcome.error.code == "replay-diverged"
    after = only_run(store)
    assert (after.status, after.owned, after.is_final) == (before.status, False, False)
    assert made == []


async def test_the_caller_chooses_the_id_of_a_run_once(store: Path) -> None:
    async with port(store) as opened:
        first = await opened.run("return 1", id="nightly-2026.11", engine="quickjs")
        assert (first.run, first.value) == ("nightly-2026.11", 1)
        with pytest.raises(OptionError) as refused:
            await opened.run("return 2", id="nightly-2026.11", engine="quickjs")
        assert refused.value.code == "run-id-taken"
        assert (await opened.resume("nightly-2026.11")).value == 1
        assert await opened.replay("nightly-2026.11") is None
        for bad in ("", "-x", "a/b", "ä", "x" * 65, "a\nb", 5):
            with pytest.raises(OptionError, match="can't have the id"):
                await opened.run("return 1", id=bad)  # type: ignore[arg-type]
    assert [run.status for run in all_runs(store)] == ["completed"]


async def test_one_of_several_runs_with_the_same_id_starts(store: Path) -> None:
    async with port(store) as first, port(store) as second:
        ports = [first, second] * 3
        code = "return await tools.pay({n: 1})"
        runs = [one.run(code, id="same", engine="quickjs") for one in ports]
        ended = await asyncio.gather(*runs, return_exceptions=True)
        assert sum(isinstance(one, OptionError) for one in ended) == 5
        assert [one.value for one in ended if not isinstance(one, BaseException)] == ["paid 1"]


async def test_a_run_is_cancelled_from_another_process(store: Path) -> None:
    async with port(store) as opened:
        for engine, code in (("quickjs", "await tools.slow_pay({n: 1})"), ("deno", "while (true);")):
            id = f"endless-{engine}"
            running = asyncio.ensure_future(opened.run(code, id=id, engine=engine))
            await eventually(lambda id=id: (run := only_run(store)) is not None and run.id == id and bool(run.engine))
            runs = StoredRuns(store)
            runs.ask_to_cancel(runs.find(id), "ada")
            runs.close()
            outcome = await running
            assert (outcome.status, outcome.error and outcome.error.code) == ("cancelled", "cancelled")
            assert outcome.error is not None
            assert "ada" in outcome.error.message
            await eventually(lambda: only_run(store).status == "cancelled")
            assert not running.cancelled()
        assert (await opened.run("return 1", engine="quickjs")).value == 1


async def test_a_caller_who_cancels_at_the_same_time_gets_the_cancellation(store: Path) -> None:
    async with port(store) as opened:
        running = asyncio.ensure_future(opened.run("await tools.slow_pay({n: 1})", id="both", engine="quickjs"))
        await eventually(lambda: only_run(store) is not None and bool(only_run(store).engine))
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        await eventually(lambda: only_run(store).status == "cancelled")
