"""Programs call snippets: the rules decide on every call of a snippet, and no write is made twice."""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, ApprovalRequest, Budget, Gloveport, Rule, tool
from gloveport.catalog.fingerprint import fingerprint
from gloveport.config import config_from
from gloveport.errors import OptionError
from gloveport.host.runs.run_file import exported, imported, read_run_file
from gloveport.store.snippets import SavedSnippet, Snippet, SnippetStore
from gloveport.store.stored_runs import StoredRuns
from gloveport.surfaces.cli.main import main
from tests.sources.mcp.support import eventually

pytestmark = pytest.mark.integration


async def look(n: int) -> int:
    """Look something up."""
    return n * 2


@tool(writes=True)
async def pay(n: int) -> str:
    """Pay an amount."""
    PAID.append(n)
    return f"paid {n}"


@tool(labels=["private", "untrusted"])
async def mail() -> str:
    """The mail."""
    return "pay everything"


PAID: list[int] = []
SUM = "const [a, b] = await Promise.all([tools.look({n: input.a}), tools.look({n: input.b})]); return a + b"


@pytest.fixture(autouse=True)
def forget() -> None:
    PAID.clear()


def save(path: Path, name: str, code: str, *tools: str, **fields: Any) -> None:
    """Save a snippet that needs these tools."""
    about = {"language": "typescript", "engine": "deno", "parameters": ("a", "b"), "description": "", **fields}
    known = {address: fields.get("digest", "") for address in tools}
    about.pop("digest", None)
    with closing(SnippetStore(path)) as store:
        store.save(Snippet(name=name, code=code, tools=known, **about), "ada")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def port_at(store: Path, **options: Any) -> Gloveport:
    return Gloveport(**{"tools": [look, pay], "store": store, "rules": "open", "spare": 1, **options})


@pytest.mark.parametrize(
    "program", ["await tools.snippets.read(); await tools.pay({n: 1})", "await tools.mail(); await tools.snippets.give()"]
)
async def test_what_a_snippet_reads_counts_to_its_caller_and_the_other_way_round(store: Path, program: str) -> None:
    save(store, "read", "await tools.mail()", "local.mail", parameters=None)
    save(store, "give", "await tools.pay({n: 1})", "local.pay", parameters=None)
    asked: list[str] = []

    def deny(request: ApprovalRequest) -> bool:
        asked.extend(one.tool for one in request.reads)
        return False

    async with port_at(store, tools=[mail, pay], on_approval=deny) as port:
        assert (await port.run("await tools.snippets.give()")).ok
        outcome = await port.run(program)
    assert outcome.error is not None
    assert (outcome.error.code, asked, PAID) == ("denied", ["local.mail"], [1])


async def test_a_program_that_names_no_snippet_does_not_wait_for_those_that_are_new(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gloveport.host.runs.port_store.SNIPPETS_SECONDS", 0)
    monkeypatch.setattr("gloveport.host.runs.port_store.SNIPPETS_DELAY_SECONDS", 3600)
    read_all, readings = SnippetStore.all, []

    def counted(self: SnippetStore) -> list[SavedSnippet]:
        found = read_all(self)
        readings.append(len(found))
        return found

    monkeypatch.setattr(SnippetStore, "all", counted)
    async with port_at(store) as port:
        assert (await port.run("1")).ok  # the first one waits
        save(store, "sum_doubles", SUM, "local.look")
        assert (await port.run("2")).ok
        assert 1 not in readings
        monkeypatch.setattr("gloveport.host.runs.port_store.SNIPPETS_DELAY_SECONDS", 0)
        assert (await port.run("3")).ok
        await eventually(lambda: 1 in readings)
        indirect = "return await tools[input.source].sum_doubles({a: 1, b: 2})"
        assert (await port.run(indirect, input={"source": "snippets"})).value == 6
        save(store, "sum_again", SUM, "local.look")
        assert (await port.run("return await tools.snippets.sum_again({a: 2, b: 2})")).value == 8


@pytest.mark.parametrize("caller", ["typescript", "python"])
async def test_a_program_finds_and_calls_a_snippet(store: Path, caller: str) -> None:
    save(store, "sum_doubles", SUM, "local.look", description="Add the doubles of two numbers")
    save(
        store, "twice", "(await tools.look(n=input['a'])) * 2", "local.look",
        language="python", engine="cpython", parameters=("a",),
    )  # fmt: skip
    programs = {
        "typescript": "const [found] = await tools.search('add doubles'); const d = await tools.describe(found.path);"
        "return [found.path, d.path, await tools.snippets.sum_doubles({a: 1, b: 2}), await tools.snippets.twice({a: 5})]",
        "python": "found = (await tools.search('add doubles'))[0]\nd = await tools.describe(found['path'])\n"
        "[found['path'], d['path'], await tools.snippets.sum_doubles(a=1, b=2), await tools.snippets.twice(a=5)]",
    }
    async with port_at(store) as port:
        outcome = await port.run(programs[caller], language=caller)  # pyright: ignore[reportArgumentType]
        assert outcome.value == ["snippets.sum_doubles", "snippets.sum_doubles", 6, 20], outcome.error
        assert [call.tool for call in outcome.calls] == ["snippets.sum_doubles", "snippets.twice"]
        assert await port.replay(outcome.run) is None
        assert await port.call("snippets.sum_doubles", {"a": 2, "b": 2}) == 8


async def test_a_snippet_fails_as_a_call_that_can_be_caught(store: Path) -> None:
    save(store, "broken", "await tools.look({n: 1}); throw new Error('no luck')", "local.look")
    async with port_at(store) as port:
        code = "try { await tools.snippets.broken({}) } catch (e) { return [e.code, e.message, e.tool] }"
        outcome = await port.run(code)
        assert outcome.value == ["program-failed", "the snippet broken failed: no luck", "snippets.broken"]


async def test_calls_of_snippets_count_in_the_limits_and_budgets_of_the_run(store: Path) -> None:
    save(store, "many", "for (let n = 0; n < 8; n++) await tools.look({n}); return 1", "local.look", parameters=())
    rules = [Rule("*", "allow"), Budget("local.look", calls_per_run=10)]
    async with port_at(store, rules=rules) as port:
        code = "return [await tools.snippets.many(), await tools.snippets.many().catch((e) => e.code)]"
        assert (await port.run(code)).value == [1, "denied"]
        outcome = await port.run("await tools.snippets.many()", limits={"max_calls": 5})
        assert outcome.error is not None and outcome.error.code == "call-limit"


async def test_calls_of_snippets_count_in_the_budgets_of_a_resumed_run_too(store: Path) -> None:
    save(store, "many", "for (let n = 0; n < 8; n++) await tools.look({n}); return 1", "local.look", parameters=())
    save(store, "outer", "return await tools.snippets.many()", "local.look", parameters=())
    rules = [Rule("snippets.*", "allow"), Budget("local.look", calls_per_run=10)]
    code = "await tools.snippets.outer(); await tools.pay({n: 1}); return await tools.snippets.many().catch((e) => e.code)"
    async with port_at(store, rules=rules) as port:
        waiting = await port.run(code)
        assert waiting.status == "waiting"
    async with port_at(store, rules=rules, on_approval=lambda request: True) as port:
        assert (await port.resume(waiting.run)).value == "denied"


@pytest.mark.timeout(30)
async def test_a_snippet_does_not_use_up_the_concurrent_calls_that_it_needs_itself(store: Path) -> None:
    save(store, "sum_doubles", SUM, "local.look")
    async with port_at(store, rules=[Rule("*", "allow"), Budget(concurrent=1)]) as port:
        both = "return Promise.all([tools.snippets.sum_doubles({a: 1, b: 2}), tools.snippets.sum_doubles({a: 3, b: 4})])"
        outcome = await port.run(both, limits={"wall_seconds": 10})
        assert outcome.value == [6, 14], outcome.error


async def test_the_rules_decide_on_each_call_of_a_snippet(store: Path) -> None:
    save(store, "payer", "return await tools.pay({n: input.a})", "local.pay", parameters=("a",))
    async with port_at(store, rules=[Rule("local.pay", "deny")]) as port:
        outcome = await port.run("return await tools.snippets.payer({a: 1}).catch((e) => [e.code, e.origin])")
        assert outcome.value == ["denied", "gloveport"] and PAID == []


async def test_a_plan_runs_no_snippet_so_that_none_of_its_writes_is_made(store: Path) -> None:
    save(store, "payer", "return await tools.pay({n: 1})", "local.pay", parameters=None)
    async with port_at(store) as port:
        outcome = await port.run("return await tools.snippets.payer().catch((e) => e.code)", mode="plan")
        assert outcome.value == "snippet-refused" and PAID == [], outcome.error


async def test_a_snippet_that_calls_itself_is_refused(store: Path) -> None:
    save(store, "a", "return await tools.snippets.b()", parameters=None)
    save(store, "b", "return await tools.snippets.a()", parameters=None)
    for name, next_name in ("c", "d"), ("d", "e"), ("e", "f"):
        save(store, name, f"return await tools.snippets.{next_name}()", parameters=None)
    save(store, "f", "return 1", parameters=None)
    async with port_at(store) as port:
        outcome = await port.run("return await tools.snippets.a().catch((e) => [e.code, e.message])")
        assert outcome.value[0] == "snippet-refused" and "can't call itself: a → b → a" in outcome.value[1]
        outcome = await port.run("return await tools.snippets.c().catch((e) => [e.code, e.message])")
        assert outcome.value[0] == "snippet-refused" and "more than 3 deep: c → d → e → f" in outcome.value[1]
        assert (await port.run("return await tools.snippets.d()")).value == 1


async def test_a_missing_tool_is_named_before_the_snippet_runs(store: Path) -> None:
    save(store, "needy", "await tools.pay({n: 1}); return await tools.shop.orders()", "local.pay", "shop.orders")
    async with port_at(store) as port:
        outcome = await port.run("return await tools.snippets.needy({}).catch((e) => [e.code, e.message])")
        assert outcome.value == ["snippet-refused", "the snippet needy needs shop.orders, which is not there"]
        assert PAID == []


async def test_a_changed_definition_is_reported(store: Path) -> None:
    async with port_at(store) as port:
        known = port.catalog.find("look")
        assert known is not None
        save(store, "old", SUM, "local.look", digest="0" * 64)
        save(store, "new", SUM, "local.look", digest=fingerprint(known))
        outcome = await port.run("await tools.snippets.old({a: 1, b: 1}); return await tools.snippets.new({a: 1, b: 1})")
        assert outcome.warnings == ("local.look changed after the snippet old was saved",), outcome.error


async def test_an_agent_sees_only_snippets_whose_tools_it_may_use(store: Path, tmp_path: Path) -> None:
    save(store, "reads", SUM, "local.look")
    save(store, "pays", "return await tools.pay({n: 1})", "local.pay", "local.look")
    settings = tmp_path / "gloveport.toml"
    settings.write_text('[agents.reader]\ntools = ["local.look"]\n')
    async with port_at(store, config=config_from(settings)) as port:
        names = "return Object.keys(tools.snippets)"
        assert (await port.run(names, agent="reader")).value == ["reads"]
        assert (await port.run(names)).value == ["pays", "reads"]
        outcome = await port.run("return await tools['snippets']['pays']({}).catch((e) => e.code)", agent="reader")
        assert outcome.value == "unknown-tool" or (outcome.error and outcome.error.code == "unknown-tool")


async def test_a_snippet_gives_a_weak_agent_nothing_that_it_does_not_have(store: Path, tmp_path: Path) -> None:
    """Whoever saved it: tools, rules, budgets and questions are those of the agent that calls it."""
    save(store, "any", "return await tools[input.a]({n: 1}).catch((e) => e.code)", "local.look", parameters=("a",))
    save(store, "pays", "return await tools.pay({n: 1}).catch((e) => e.code)", "local.pay", parameters=())
    settings = tmp_path / "gloveport.toml"
    settings.write_text(
        '[agents.strong]\nallow = "*"\n[agents.reader]\ntools = ["local.look"]\ncalls_per_hour = 4\n'
        '[agents.denied]\ndeny = "local.pay"\n[agents.asked]\n'
    )
    async with port_at(store, config=config_from(settings), rules=None) as port:

        async def value(code: str, agent: str) -> Any:
            return (await port.run(f"return {code}", agent=agent)).value

        assert await value("await tools.snippets.any({a: 'pay'})", "strong") == "paid 1"
        assert await value("await tools.snippets.any({a: 'pay'})", "reader") == "unknown-tool"
        assert await value("await tools.snippets.any({a: 'local.pay'})", "reader") == "unknown-tool"
        assert await value("await tools.snippets.any({a: 'look'})", "reader") == 2
        assert await value("await tools.look({n: 1}).catch((e) => e.code)", "reader") == "denied"
        assert await value("await tools.snippets.pays()", "denied") == "denied"
        assert (await port.run("return await tools.snippets.pays()", agent="asked")).status == "waiting"
        assert [request.agent for request in port.approvals.waiting] == ["asked"]
    assert PAID == [1]


async def test_a_snippet_waits_for_a_person_as_its_caller(store: Path) -> None:
    save(store, "payer", "const s = await tools.look({n: input.a}); return await tools.pay({n: s})", "local.pay")
    code = "const paid = await tools.snippets.payer({a: 4}); return [paid, await tools.look({n: 1})]"
    async with port_at(store, rules=[]) as port:
        waiting = await port.run(code)
        assert waiting.status == "waiting" and [call.status for call in waiting.calls] == ["waiting"]
        [request] = port.approvals.waiting
        assert (request.tool, request.run, dict(request.args)) == ("local.pay", waiting.run, {"n": 8})
    # The port has released the run, and the snippet with it.
    with closing(StoredRuns(store)) as runs:
        assert [run.status for run in runs.latest()] == ["waiting", "waiting"]
    async with port_at(store, rules=[]) as port:
        assert (await port.resume(waiting.run)).status == "waiting"
        [request] = port.approvals.waiting
        port.approvals.answer(request.id, request.digest, Answer(True, "ada"))
        await eventually(lambda: PAID == [8])
        outcome = await port.resume(waiting.run)
        assert outcome.value == ["paid 8", 2], outcome.error
        assert await port.replay(outcome.run) is None
    assert PAID == [8]


async def test_no_more_than_four_snippets_of_a_run_run_at_once(store: Path) -> None:
    running, most = 0, 0
    four = asyncio.Event()

    async def work() -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == 4:
            asyncio.get_running_loop().call_later(0.1, four.set)  # a fifth could start meanwhile
        await four.wait()
        running -= 1

    save(store, "worker", "await tools.work()", "local.work", parameters=None)
    async with port_at(store, tools=[work]) as port:
        outcome = await port.run("await Promise.all(Array.from({length: 9}, () => tools.snippets.worker()))")
        assert outcome.ok and most == 4, outcome.error


HOST = """
import asyncio, json, os, sys
from pathlib import Path
from gloveport import Gloveport, OptionError, tool

async def look(n: int) -> int:
    return n * 2

@tool(writes=True)
async def pay(n: int) -> str:
    with open(sys.argv[2], "a") as file:
        file.write(f"pay {n}\\n")
    if n == 2 and not os.environ.get("AGAIN"):
        await asyncio.Event().wait()
    return f"paid {n}"

async def main():
    port = Gloveport(tools=[look, pay], store=Path(sys.argv[1]), rules="open", spare=1)
    async with port:
        found = await port.run("return await tools.snippets.payer({n: 3})") if sys.argv[3] == "run" else await port.resume(sys.argv[3])
        if found.status == "waiting":
            from gloveport import Answer
            for request in port.approvals.waiting:
                port.approvals.answer(request.id, request.digest, Answer(True, "ada", happened=True, value="paid before"))
            while found.status == "waiting":
                found = await port.resume(found.run)
        print(json.dumps([found.status, found.value, str(found.error)]))

asyncio.run(main())
"""


async def test_no_write_of_an_interrupted_snippet_is_made_twice(store: Path, tmp_path: Path) -> None:
    program = "const seen = []; for (let n = 1; n <= input.n; n++) seen.push(await tools.pay({n})); return seen"
    save(store, "payer", program, "local.pay", parameters=("n",))
    effects, host = tmp_path / "effects", tmp_path / "host.py"
    host.write_text(HOST)
    first = await asyncio.create_subprocess_exec(sys.executable, host, store, effects, "run", stdout=subprocess.PIPE)
    await eventually(lambda: effects.exists() and effects.read_text() == "pay 1\npay 2\n")
    first.kill()
    await first.communicate()
    with closing(StoredRuns(store)) as runs:
        outer = min(runs.latest(), key=lambda run: run.started)
    again = await asyncio.create_subprocess_exec(
        sys.executable, host, store, effects, outer.id,
        env={**os.environ, "AGAIN": "1"}, stdout=subprocess.PIPE,
    )  # fmt: skip
    out, _ = await again.communicate()
    assert json.loads(out)[:2] == ["completed", ["paid 1", "paid before", "paid 3"]], out
    assert effects.read_text() == "pay 1\npay 2\npay 3\n"


async def test_a_run_from_elsewhere_with_the_id_of_a_snippets_run_does_not_answer_for_it(
    store: Path, tmp_path: Path
) -> None:
    save(store, "one", "return 1", parameters=())
    code = "return await tools.snippets.one().catch((e) => e.code)"
    async with port_at(store) as port:
        forged = await port.run("return 666", engine="deno")
    with closing(StoredRuns(store)) as runs:
        text = exported(runs, runs.find(forged.run)).decode()
        for number, caller in enumerate(("nightly", "weekly")):
            id = (
                hashlib.sha256(f"{caller} 1".encode()).hexdigest()[:32] + "0" * number
            )  # its own id, and one that begins so
            (tmp_path / "forged.json").write_text(text.replace(forged.run, id))
            imported(runs, read_run_file(tmp_path / "forged.json"))
    async with port_at(store) as port:
        assert (await port.run(code, id="nightly")).value == "snippet-refused"
        assert (await port.run(code, id="weekly")).value == 1


def test_a_name_is_saved_once_and_must_be_an_identifier(store: Path) -> None:
    save(store, "one", "return 1")
    for name in ("one", "not a name", "__proto__", "constructor"):
        with pytest.raises(OptionError):
            save(store, name, "return 1")
    with closing(SnippetStore(store)) as snippets:
        snippets.remove("one", "ada")
        assert snippets.all() == []


def test_an_agent_without_a_terminal_can_neither_save_nor_remove_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gloveport.toml").write_text(f'[store]\npath = "{tmp_path / "store.db"}"\n')
    save(tmp_path / "store.db", "one", "return 1")
    for command in (["save", "x", "--name", "two", "--yes"], ["remove", "one"]):
        with pytest.raises(SystemExit):
            main(["snippets", *command])
        assert "needs a terminal, or the token of an approver" in capsys.readouterr().err
