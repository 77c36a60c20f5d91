"""`step(name, fn)`: the calls that a program makes in a step have its label, in every engine, also in parallel."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport import Event, Gloveport
from gloveport.errors import WireError
from gloveport.sandbox.history import RepeatedFrames, RunHistory
from gloveport.sandbox.wire import label_of
from gloveport.store.reading import events as stored_events
from gloveport.store.reading import open_for_reading
from gloveport.types import Recording
from tests.engines import ENGINES, Engine, Per, said

BOTH = pytest.mark.parametrize("engine", ENGINES, ids=str)


async def slow(n: int, where: str = "") -> int:
    """Take a random moment."""
    await asyncio.sleep(random.random() * 0.01)
    return n


async def fail() -> None:
    """Fail."""
    raise ValueError("no")


@pytest.fixture
async def port(tmp_path: Path) -> AsyncIterator[Gloveport]:
    async with Gloveport(tools=[slow, fail], store=tmp_path / "store.db", rules="open") as made:
        yield made


# In each program, a call's argument `where` says which label it must have.
PROGRAMS = {
    "one after the other": Per(
        """await tools.slow({n: 1, where: ""});
        await step("a", async () => { await tools.slow({n: 2, where: "a"}); await tools.slow({n: 3, where: "a"}); });
        await tools.slow({n: 4, where: ""});
        return await step("b", () => tools.slow({n: 5, where: "b"}))""",
        """
async def a():
    await tools.slow(n=2, where="a")
    await tools.slow(n=3, where="a")
await tools.slow(n=1, where="")
await step("a", a)
await tools.slow(n=4, where="")
async def b(): return await tools.slow(n=5, where="b")
await step("b", b)
""",
    ),
    "nested": Per(
        """await step("a", async () => {
            await tools.slow({n: 1, where: "a"});
            await step("b", async () => {
                await tools.slow({n: 1, where: "a/b"});
                await step("c", async () => { await tools.slow({n: 1, where: "a/b/c"}) });
                await tools.slow({n: 1, where: "a/b"});
            });
            await tools.slow({n: 1, where: "a"});
        }); return 5""",
        """
async def c(): await tools.slow(n=1, where="a/b/c")
async def b():
    await tools.slow(n=1, where="a/b")
    await step("c", c)
    await tools.slow(n=1, where="a/b")
async def a():
    await tools.slow(n=1, where="a")
    await step("b", b)
    await tools.slow(n=1, where="a")
await step("a", a)
5
""",
    ),
    "parallel": Per(
        """const work = (name) => async () => {
            for (let n = 0; n < 5; n++) {
                await tools.slow({n, where: name});
                await Promise.all([1, 2].map((m) => step(`${m}`, async () => {
                    await tools.slow({n, where: `${name}/${m}`});
                    await new Promise((done) => setTimeout(done, m));
                    await tools.slow({n, where: `${name}/${m}`});
                })));
            }
        };
        const other = async () => { for (let n = 0; n < 9; n++) await tools.slow({n, where: ""}) };
        await Promise.all([step("a", work("a")), other(), step("b", work("b")), step("c", work("c")), other()]);
        await tools.slow({n: 1, where: ""});
        return 5""",
        """
import asyncio
async def inner(name, m, n):
    await tools.slow(n=n, where=f"{name}/{m}")
    await asyncio.sleep(m / 1000)
    await tools.slow(n=n, where=f"{name}/{m}")
async def work(name):
    for n in range(5):
        await tools.slow(n=n, where=name)
        await asyncio.gather(*[step(f"{m}", inner, name, m, n) for m in (1, 2)])
async def other():
    for n in range(9):
        await tools.slow(n=n, where="")
await asyncio.gather(step("a", work, "a"), other(), step("b", work, "b"), step("c", work, "c"), other())
await tools.slow(n=1, where="")
5
""",
    ),
    "an error leaves the step": Per(
        """try { await step("a", async () => { await tools.slow({n: 1, where: "a"}); throw new Error("x") }) } catch {}
        try { await step("b", () => { throw new Error("x") }) } catch {}
        return await tools.slow({n: 5, where: ""})""",
        """
async def a():
    await tools.slow(n=1, where="a")
    raise ValueError("x")
def b(): raise ValueError("x")
for fn in (a, b):
    try:
        await step("a", fn)
    except ValueError:
        pass
await tools.slow(n=5, where="")
""",
    ),
}


@pytest.mark.integration
@BOTH
@pytest.mark.parametrize("name", PROGRAMS)
async def test_each_call_has_the_label_of_its_steps(port: Gloveport, engine: Engine, name: str) -> None:
    events = list[Event]()
    code = said(PROGRAMS[name], engine)
    outcome = await port.run(code, language=engine.language, engine=engine.name, on_event=events.append)
    assert outcome.value == 5, outcome.error
    assert [(call.args["where"] or None) for call in outcome.calls] == [call.step for call in outcome.calls]
    assert all((event.call.args["where"] or None) == event.call.step for event in events if event.call)
    assert await port.replay(outcome.run) is None


# What only an engine with a context for each task labels right: a promise that two steps wait for.
SHARED = Per(
    """const shared = tools.slow({n: 1, where: ""});
    const work = (name) => async () => { await null; await shared; await tools.slow({n: 2, where: name}) };
    await Promise.all([step("a", work("a")), step("b", work("b"))])""",
    """
import asyncio
shared = asyncio.ensure_future(tools.slow(n=1, where=""))
async def work(name):
    await asyncio.sleep(0)
    await shared
    await tools.slow(n=2, where=name)
await asyncio.gather(step("a", work, "a"), step("b", work, "b"))
async with step("c"):
    await tools.slow(n=3, where="c")
    with step("d"):
        await tools.slow(n=3, where="c/d")
await asyncio.create_task(step("e", lambda: tools.slow(n=3, where="e")))
""",
)


@pytest.mark.integration
@pytest.mark.parametrize("engine", [engine for engine in ENGINES if engine.name in ("deno", "cpython")], ids=str)
async def test_steps_that_wait_for_the_same_call_keep_their_labels(port: Gloveport, engine: Engine) -> None:
    outcome = await port.run(said(SHARED, engine), language=engine.language, engine=engine.name)
    assert outcome.ok, outcome.error
    assert [(call.args["where"] or None) for call in outcome.calls] == [call.step for call in outcome.calls]


@pytest.mark.integration
@BOTH
async def test_a_label_is_hostile_text_of_a_bounded_length(port: Gloveport, engine: Engine, tmp_path: Path) -> None:
    code = Per(
        "await step('\\u001b[31m' + 'x'.repeat(100000), () => step('y', () => tools.slow({n: 1})))",
        "def inner(): return tools.slow(n=1)\ndef outer(): return step('y', inner)\nawait step('\\x1b[31m' + 'x' * 100000, outer)",
    )
    outcome = await port.run(said(code, engine), language=engine.language, engine=engine.name)
    assert outcome.ok, outcome.error
    [call] = outcome.calls
    assert call.step is not None and len(call.step) == 200 and call.step.startswith("\x1b[31mxxx")
    await port.close()
    with closing(open_for_reading(tmp_path / "store.db")) as connection:
        recorded = [event for event in stored_events(connection) if event.kind == "call-started"]
    assert [event.body["step"] for event in recorded] == [call.step]


@pytest.mark.integration
@BOTH
async def test_a_step_without_a_name_is_refused(port: Gloveport, engine: Engine) -> None:
    code = Per("await step(() => 1)", "await step(lambda: 1, None)")
    outcome = await port.run(said(code, engine), language=engine.language, engine=engine.name)
    assert outcome.error is not None and "step takes a name and a function" in outcome.error.message


def _frames(*labels: str | None) -> Recording:
    def frame(label: str | None) -> bytes:
        return b'["call",1,"slow",[{"n":1}]' + (b"]" if label is None else b',"%b"]' % label.encode())

    return Recording("r", "deno", 1, tuple(("guest", frame(label)) for label in labels))


@pytest.mark.parametrize(("recorded", "repeated"), [("a", "b"), (None, "a"), ("a", None)])
def test_a_label_has_no_meaning_for_a_replay(recorded: str | None, repeated: str | None) -> None:
    frames = RepeatedFrames(_frames(recorded))
    assert frames.take(_frames(repeated).frames[0]) is None
    assert frames.difference is not None and not frames.difference.fatal


def test_a_recorded_call_has_its_label() -> None:
    assert [past.call.step for past in RunHistory.of(_frames("a/b")).calls] == ["a/b"]


@pytest.mark.parametrize("label", [1, None, ["a"], {"a": 1}])
def test_a_label_that_is_no_text_is_refused(label: Any) -> None:
    with pytest.raises(WireError):
        label_of(["call", 1, "slow", [], label])
