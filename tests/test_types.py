"""Programs are checked against the declarations of the tools that they mention, by real checkers in the jail."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import nullcontext, suppress
from typing import Any, TypedDict

import pytest

from gloveport import Gloveport, ToolError
from gloveport.config import AgentConfig, Config, GovernanceConfig
from gloveport.errors import SandboxError
from gloveport.host import type_check
from gloveport.sandbox.launcher import Launch
from gloveport.sandbox.type_checkers import (
    MAX_CHECKERS,
    MAX_MESSAGE_BYTES,
    TypeChecker,
    TypeCheckers,
    _LanguageServer,
    _pack,
    python_launch,
)
from gloveport.sources.caller import CallerSource, CallerTool, CallerTools
from gloveport.types import DEFAULT_AGENT
from tests.sources.heartbeat import assert_no_stall

pytestmark = pytest.mark.integration


class Weather(TypedDict):
    """The weather."""

    temp: float
    city: str


def get_weather(city: str, days: int = 1) -> Weather:
    """The weather of a city."""
    assert isinstance(city, str)
    return {"temp": 20.0 + days, "city": city}


def fail(code: str) -> dict:
    """Fail."""
    raise ToolError("no", code=code)


def now() -> dict:
    """The time."""
    return {"hour": 12}


@pytest.fixture(scope="module")
async def port() -> AsyncIterator[Gloveport]:
    agents = GovernanceConfig(agents={name: AgentConfig(name) for name in ("hostile", "other")})
    async with Gloveport(tools=[get_weather, fail, now], check_types=True, config=Config(governance=agents)) as port:
        yield port


STOPPED = {
    "an inferred type": (
        "typescript",
        "const n = [1, 2].length;\nreturn await tools.get_weather({city: n})",
        (2, 33, "Type 'number' is not assignable to type 'string'."),
    ),
    "a field of another answer": (
        "typescript",
        "const w = await tools.get_weather({city: 'Oslo'});\nreturn tools.get_weather({city: w.temp})",
        (2, 27, "Type 'number' is not assignable to type 'string'."),
    ),
    "inside a fence, after a character outside the BMP": (
        "typescript",
        "Here:\n```ts\nconst n = 1; /* 😀 */ await tools.get_weather({city: n});\n```",
        (3, 47, "Type 'number' is not assignable to type 'string'."),
    ),
    "python, an inferred type": (
        "python",
        "n = len([1, 2])\nawait tools.get_weather(city=n)",
        (2, 25, "Argument to function `tools.get_weather` is incorrect: Expected `str | dict[str, Any]`, found `int`"),
    ),
    "python, a field of another answer": (
        "python",
        "w = await tools.get_weather(city='Oslo')\nawait tools.get_weather(city=w['temp'])",
        (2, 25, "Argument to function `tools.get_weather` is incorrect: Expected `str | dict[str, Any]`, found `float`"),
    ),
}


@pytest.mark.parametrize("name", STOPPED)
async def test_a_call_that_cannot_succeed_is_stopped_before_anything_is_called(port: Gloveport, name: str) -> None:
    language, code, told = STOPPED[name]
    outcome = await port.run(code, language=language)  # pyright: ignore[reportArgumentType]
    error = outcome.error
    assert error is not None
    assert (error.code, error.line, error.column, error.message) == ("type-error", *told)
    assert "^" in (error.frame or "")
    assert outcome.calls == ()


WORKS = {
    "a union that happens to fit": (
        "typescript",
        "const v = (Math.abs(1) ? 'Oslo' : 5) as string | number; return (await tools.get_weather({city: v})).city",
    ),
    "loops and conditions": (
        "typescript",
        "const found: string[] = []; for (const c of ['Oslo', 'Rome']) { const w = await tools.get_weather({city: c, days: 3}); if (w.temp > 10) { found.push(w.city) } } return found[0]",
    ),
    "an any": ("typescript", "const v: any = 'Oslo'; return (await tools.get_weather({city: v})).city"),
    "a cast that lies": (
        "typescript",
        "return (await tools.get_weather({city: 'Oslo' as unknown as number as any})).city",
    ),
    "an undefined that is none": (
        "typescript",
        "const m = new Map([['a', 'Oslo']]); return (await tools.get_weather({city: m.get('a')})).city",
    ),
    "input and the other globals": (
        "typescript",
        "emit(1); state.x = 1; await step('a', async () => 1); return (await local.get_weather({city: input})).city",
    ),
    "a failure that the program handles": (
        "typescript",
        "try { await tools.get_weather({city: [1].length as any as string}) } catch (e) {} return 'Oslo'",
    ),
    "javascript": ("javascript", "let v; v = 'Oslo'; return (await codemode.get_weather({city: v})).city"),
    "python, a union": (
        "python",
        "import random\nv = 'Oslo' if random.random() < 2 else 5\n(await tools.get_weather(city=v))['city']",
    ),
    "python, globals": ("python", "emit(1)\nstate['x'] = 1\nw = await local.get_weather({'city': input})\nw['city']"),
    "python, a return in the middle": (
        "python",
        "import asyncio\na, b = await asyncio.gather(*(tools.get_weather(city=c) for c in ('Oslo', 'Rome')))\nif a:\n    return a['city']",
    ),
}


@pytest.mark.parametrize("name", WORKS)
async def test_a_program_that_works_is_never_stopped(port: Gloveport, name: str) -> None:
    language, code = WORKS[name]
    outcome = await port.run(code, language=language, input="Oslo")  # pyright: ignore[reportArgumentType]
    assert outcome.value == "Oslo", outcome.error


# Forms that the reference documents, and what programs that work do with results and errors.
DOCUMENTED = {
    "one object": ("typescript", "(await tools.get_weather({city: input})).city"),
    "positional": ("typescript", "(await tools.get_weather(input)).city"),
    "positional, with an optional one": ("typescript", "(await tools.get_weather('Oslo', 2)).city"),
    "an empty object": ("typescript", "(await tools.now({})).hour && 'Oslo'"),
    "a result without a type": ("typescript", "const n = await tools.now(); n.hour - 11 === 1 ? 'Oslo' : ''"),
    "a result with a type of the program's": (
        "typescript",
        "const n: {hour: number} = await tools.now(); n.hour && 'Oslo'",
    ),
    "a caught error": ("typescript", "try { await tools.fail('Oslo') } catch (e) { return e.code }"),
    "a caught ToolError": (
        "typescript",
        "try { await tools.fail({code: 'Oslo'}) } catch (e) { if (e instanceof ToolError && e.origin === 'tool') return e.code }",
    ),
    "a settled call": (
        "typescript",
        "const [r] = await Promise.allSettled([tools.fail('Oslo')]); return r.status === 'rejected' && r.reason.code",
    ),
    "something found": ("typescript", "[await tools.get_weather('Oslo')].find((w) => w.temp > 1).city"),
    "nothing at first": (
        "typescript",
        "let best = null; for (const c of ['Oslo']) { const w = await tools.get_weather(c); if (!best || w.temp > best.temp) best = w } best.city",
    ),
    "python, keywords": ("python", "(await tools.get_weather(city=input, days=2))['city']"),
    "python, one dict": ("python", "(await tools.get_weather({'city': 'Oslo', 'days': 2}))['city']"),
    "python, positional": ("python", "(await tools.get_weather('Oslo', 2))['city']"),
    "python, positional and by keyword": ("python", "(await tools.get_weather('Oslo', days=2))['city']"),
    "python, a variable and by keyword": ("python", "(await tools.get_weather(input, days=2))['city']"),
    "python, nothing": ("python", "'Oslo' if (await tools.now())['hour'] + 1 else ''"),
    "python, an empty dict": ("python", "'Oslo' if (await tools.now({}))['hour'] + 1 else ''"),
    "python, a caught ToolError": (
        "python",
        "try:\n    await tools.fail('Oslo')\nexcept ToolError as e:\n    r = e.code if e.origin == 'tool' and not e.hint else ''\nr",
    ),
    "python, a caught Exception": (
        "python",
        "try:\n    await tools.fail('Oslo')\nexcept Exception as e:\n    r = e.code\nr",
    ),
    "python, gathered exceptions": (
        "python",
        "import asyncio\nrs = await asyncio.gather(tools.fail('Oslo'), tools.now(), return_exceptions=True)\n"
        "[r.code if isinstance(r, Exception) else len(r) for r in rs][0]",
    ),
    "python, nothing at first": (
        "python",
        "best = None\nfor c in ['Oslo']:\n    w = await tools.get_weather(c)\n"
        "    if best is None or w['temp'] > best['temp']:\n        best = w\nbest['city']",
    ),
}


@pytest.mark.parametrize("name", DOCUMENTED)
async def test_a_documented_form_is_neither_refused_nor_warned_about(port: Gloveport, name: str) -> None:
    language, code = DOCUMENTED[name]
    outcome = await port.run(code, language=language, input="Oslo")  # pyright: ignore[reportArgumentType]
    assert (outcome.value, outcome.warnings) == ("Oslo", ()), outcome.error


@pytest.mark.parametrize(
    ("language", "code", "value"),
    [
        # README's first example, with tools that state no result
        (
            "typescript",
            "const [a, b] = await Promise.all([tools.measure({city: 'Oslo'}), tools.measure({city: 'Lisbon'})]);\nb.celsius - a.celsius",
            2,
        ),
        (
            "typescript",
            "const w = await tools.measure({city: 'Oslo'}); const n: number = w.celsius; w.days.map((d) => d + n)",
            [8, 9],
        ),
        ("typescript", "for (const d of (await tools.measure({city: 'Oslo'})).days) { emit(d); }", None),
        # `unknown` in the declarations would be found here: findings about the uses above are dropped
        ("typescript", "const w: {celsius: number} = await tools.measure({city: 'Oslo'}); w.celsius", 7),
        ("python", "w = await tools.measure(city='Oslo')\nw['celsius'] + sum(w['days'])", 10),
    ],
)
async def test_the_result_of_a_tool_that_states_none_is_used_without_a_warning(
    language: Any, code: str, value: Any
) -> None:
    def measure(city: str):
        """Measure in a city."""
        return {"celsius": 7 if city == "Oslo" else 9, "days": [1, 2]}

    async with Gloveport(tools=[measure], check_types=True) as port:
        outcome = await port.run(code, language=language)
        assert (outcome.status, outcome.value, outcome.warnings) == ("completed", value, ()), outcome


async def test_a_positional_value_of_a_wrong_type_is_still_found(port: Gloveport) -> None:
    for language, code in (
        ("typescript", "const n = [1].length; await tools.get_weather(n)"),
        ("python", "n = len([1])\nawait tools.get_weather(n)"),
    ):
        outcome = await port.run(code, language=language)  # pyright: ignore[reportArgumentType]
        assert outcome.error is not None
        assert (outcome.error.code, outcome.calls) == ("type-error", ())


@pytest.mark.parametrize(
    ("language", "code", "told"),
    [
        (
            "typescript",
            "const w = await tools.get_weather({city: 'Oslo'}); return w.tmp",
            "line 1, column 61: Property 'tmp' does not exist",
        ),
        (
            "python",
            "w = await tools.get_weather(city='Oslo')\ntry:\n    w['tmp']\nexcept KeyError:\n    pass",
            "line 3, column",
        ),
    ],
)
async def test_other_findings_are_advice(port: Gloveport, language: Any, code: str, told: str) -> None:
    outcome = await port.run(code, language=language)
    assert outcome.ok
    assert any(told in warning for warning in outcome.warnings), outcome.warnings


@pytest.mark.parametrize("language", ["typescript", "python"])
async def test_a_finding_belongs_to_its_own_program_alone(port: Gloveport, language: Any) -> None:
    right, wrong = {
        "typescript": (
            "const n = 'a'; await tools.get_weather({city: n})",
            "const n = 1; await tools.get_weather({city: n})",
        ),
        "python": ("n = 'a'\nawait tools.get_weather(city=n)", "n = 1\nawait tools.get_weather(city=n)"),
    }[language]
    for code, stopped in ((wrong, True), (right, False), (wrong, True), (wrong, True), (right, False), (right, False)) * 3:
        outcome = await port.run(code, language=language)
        assert (outcome.error is not None and outcome.error.code == "type-error") == stopped, outcome.error


@pytest.mark.parametrize("language", ["typescript", "python"])
async def test_a_text_is_checked_once_by_each_server(port: Gloveport, language: Any) -> None:
    code = {
        "typescript": "const once = 1; await tools.get_weather({city: once})",
        "python": "once = 1\nawait tools.get_weather(city=once)",
    }[language]
    assert port._types is not None

    async def checks(code: str) -> int:
        outcome = await port.run(code, language=language)
        assert outcome.error is not None
        assert outcome.error.code == "type-error"
        assert port._types is not None
        return (await port._types._checkers[language]._checkers[DEFAULT_AGENT]._server()).checks

    first = await checks(code)
    assert await checks(code) == first
    assert await checks(code.replace("1", "2")) == first + 1
    server = await port._types._checkers[language]._checkers[DEFAULT_AGENT]._server()
    server._guest.kill()
    await server._guest.wait()
    await replaced(port._types._checkers[language]._checkers[DEFAULT_AGENT])
    after = await port._types._checkers[language]._checkers[DEFAULT_AGENT]._server()
    assert after.checks == 1
    await checks(code)
    assert after.checks == 2


async def test_javascript_and_typescript_have_the_same_checker(port: Gloveport) -> None:
    for language in ("typescript", "javascript"):
        outcome = await port.run("const n = 1; await tools.get_weather({city: n})", language=language)  # pyright: ignore[reportArgumentType]
        assert outcome.error is not None
        assert outcome.error.code == "type-error"
    assert port._types is not None
    assert set(port._types._checkers) <= {"typescript", "python"}


async def test_a_checker_is_as_sealed_as_a_guest(port: Gloveport) -> None:
    outcome = await port.run("/// <reference path='/etc/passwd' />\nconst n = 1; await tools.get_weather({city: n})")
    assert outcome.error is not None
    assert outcome.error.code == "type-error"
    assert not any("root:" in warning for warning in outcome.warnings)


async def test_a_checker_that_is_not_installed_is_named_once_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def missing() -> Launch:
        raise SandboxError("the checker `ty` is not installed", hint="pip install 'gloveport[types]'")

    monkeypatch.setattr(type_check, "python_launch", missing)
    async with Gloveport(tools=[now], check_types=True) as port:
        for number in (1, 2):
            assert (await port.run(f"{number}", language="python")).value == number
        assert (await port.run("const n: number = 1; await tools.fail(n)")).error is not None
    assert [record.getMessage() for record in caplog.records if "check" in record.getMessage()] == [
        "types of programs in python are not checked: the checker `ty` is not installed; "
        "`pip install 'gloveport[types]'` installs it"
    ]


def checker_of(port: Gloveport, agent: str) -> TypeChecker:
    assert port._types is not None
    return port._types._checkers["typescript"]._checkers[agent]


async def replaced(checker: TypeChecker) -> None:
    """Wait until a checker has another server, for which no check waits longer than 3 s."""
    with suppress(TimeoutError):
        await checker._server()
    assert checker._starting is not None
    assert (await checker._starting).alive


async def test_a_checker_that_was_killed_is_replaced(port: Gloveport) -> None:
    checker = checker_of(port, DEFAULT_AGENT)
    server = await checker._server()
    server._guest.kill()
    await server._guest.wait()
    await replaced(checker)
    outcome = await port.run("const n = 1; await tools.get_weather({city: n})")
    assert outcome.error is not None
    assert outcome.error.code == "type-error"


ENDLESS_TYPE = """
type Permutations<T, K = T> = [T] extends [never] ? [] : K extends K ? [K, ...Permutations<Exclude<T, K>>] : never;
const n: Permutations<"a" | "b" | "c" | "d" | "e" | "f" | "g" | "h"> = ["q"];
n
"""


async def test_a_text_that_keeps_the_checker_busy_costs_other_runs_no_more_than_their_check(
    port: Gloveport, caplog: pytest.LogCaptureFixture
) -> None:
    checker = checker_of(port, DEFAULT_AGENT)
    server = await checker._server()
    outcome = await port.run(ENDLESS_TYPE)
    assert outcome.ok, outcome.error
    assert "the type check was skipped" in caplog.text
    assert not server.alive
    assert (await port.run("1 + 1")).value == 2  # its check may be skipped: a replacement is starting
    await replaced(checker)
    outcome = await port.run("const n = 1; await tools.get_weather({city: n})")
    assert outcome.error is not None
    assert outcome.error.code == "type-error"


WRONG = "const n = 1; await tools.get_weather({city: n})"


async def test_a_text_that_keeps_the_checker_of_its_agent_busy_costs_other_agents_nothing(port: Gloveport) -> None:
    for agent in ("hostile", "other"):
        await port.run("1", agent=agent)
    server = await checker_of(port, "other")._server()
    attacks = [asyncio.create_task(port.run(ENDLESS_TYPE, agent="hostile")) for _ in range(3)]
    checked = 0
    while not attacks[0].done():
        outcome = await port.run(WRONG, agent="other")
        assert outcome.error is not None
        assert outcome.error.code == "type-error"  # and not skipped
        checked += 1
    assert checked > 1
    assert await checker_of(port, "other")._server() is server
    assert all(outcome.ok for outcome in await asyncio.gather(*attacks))


async def test_no_checker_sees_texts_of_two_agents(port: Gloveport) -> None:
    # Names of a file without imports and exports are global to every file of a TypeScript project.
    for language, said, asked in (
        ("typescript", "const secretly = 1; secretly", "const n = 1; await tools.get_weather({city: secretly ? n : n})"),
        ("python", "secretly = 1\nsecretly", "n = len([1])\nawait tools.get_weather(city=n if secretly else n)"),
    ):
        await port.run(said, language=language, agent="other")  # pyright: ignore[reportArgumentType]
        outcome = await port.run(asked, language=language, agent=DEFAULT_AGENT)  # pyright: ignore[reportArgumentType]
        assert outcome.error is not None
        assert outcome.error.code == "type-error"
        assert (await port.run("secretly", language=language, agent=DEFAULT_AGENT)).status == "failed"  # pyright: ignore[reportArgumentType]
    assert port._types is not None
    for language in ("typescript", "python"):
        checkers = port._types._checkers[language]._checkers
        servers = [await checkers[agent]._server() for agent in ("other", DEFAULT_AGENT)]
        assert servers[0]._guest.pid != servers[1]._guest.pid


async def test_the_least_recently_used_checker_makes_room_for_another_agent() -> None:
    checkers = TypeCheckers(python_launch(), language="python", minimum="kernel")
    try:
        names = [str(number) for number in range(MAX_CHECKERS + 2)]
        for name in names:
            await checkers.check(names[0], "")
            await checkers.check(name, "")
        assert [*checkers._checkers] == [*names[-MAX_CHECKERS + 1 : -1], names[0], names[-1]]
        for name in names:
            assert len(await checkers.check(name, "x: str = 1")) == 1
        assert len(checkers._checkers) == MAX_CHECKERS
    finally:
        await checkers.close()


@pytest.mark.parametrize(
    "sent",
    [
        b"a: b\r\n" * 500_000,
        _pack({}) * 100_000,
        _pack({"id": 1, "method": "x"}) * 50_000,
        _pack({"id": 1, "method": "workspace/configuration", "params": {"items": [1] * 400_000}}),
        b"x" * 3_000_000,
    ],
    ids=["headers", "messages", "requests", "items", "line"],
)
async def test_a_checker_that_was_taken_over_does_not_stop_the_loop(sent: bytes) -> None:
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_MESSAGE_BYTES)
    nothing: Any = None
    server = _LanguageServer(nothing, nothing, reader, writer)
    theirs.setblocking(False)
    sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(theirs, sent))
    async with assert_no_stall():
        await asyncio.wait([server._listening])
    sending.cancel()
    writer.close()
    theirs.close()


@pytest.mark.parametrize("line", [1.5, -1, 2**64 - 1, "1", True, None])
async def test_a_finding_at_a_place_that_no_text_has_breaks_the_protocol(
    line: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = {"line": 0, "character": 0}
    finding = {"range": {"start": {**place, "line": line}, "end": place}, "message": "m"}
    ours, theirs = socket.socketpair()
    reader, writer = await asyncio.open_connection(sock=ours, limit=MAX_MESSAGE_BYTES)
    nothing: Any = None
    server = _LanguageServer(nothing, nothing, reader, writer)
    monkeypatch.setattr(server, "limited", lambda max_cpu_seconds: nullcontext())
    checker = TypeChecker(python_launch(), language="python", minimum="kernel")
    theirs.sendall(_pack({"id": 1, "result": {"items": [finding]}}))
    with pytest.raises(SandboxError, match="broke the protocol"):
        await checker._check(server, "")
    server._listening.cancel()
    writer.close()
    theirs.close()


async def test_tools_of_the_caller_without_types_are_not_checked(port: Gloveport) -> None:
    typed = CallerTool("typed", input_schema={"type": "object", "properties": {"city": {"type": "string"}}})
    tools = CallerTools(CallerSource([CallerTool("plain", positional=True), typed]))
    advised = "const n: number = 'one'; typeof tools."
    assert (await port.run(f"{advised}plain", tools=tools)).warnings == ()
    assert "not assignable" in (await port.run(f"{advised}typed", tools=tools)).warnings[0]
