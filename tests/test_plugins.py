"""The hooks of plugins, in real sandboxes: what they add and deny, what they can't change, and that a failure is theirs."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, Gloveport, Rule, tool
from gloveport.plugins import Additions, AllowedCall, StartingRun, hook
from gloveport.types import LogLine, Outcome
from tests.plugin_support import write_plugin
from tests.policy.servers import ok, serving
from tests.surfaces.command import gloveport

pytestmark = pytest.mark.integration

CALL = "await tools.send({to: 'ada', text: 'hi'})"


class Sent:
    """A tool that keeps what it got."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str]] = []

    async def send(self, to: str, text: str = "") -> str:
        """Send a message."""
        self.all.append((to, text))
        return f"sent to {to}"


def port_with(*plugins: Any, sent: Sent | None = None, **options: Any) -> Gloveport:
    return Gloveport(tools=[(sent or Sent()).send], plugins=plugins, spare=0, **options)


class DeniesMallory:
    @hook
    async def on_call(self, call: AllowedCall) -> str | None:
        return "nobody writes to mallory" if call.args.get("to") == "mallory" else None


async def test_on_call_denies_with_a_reason_and_lets_the_rest_through() -> None:
    sent = Sent()
    async with port_with(DeniesMallory(), sent=sent) as port:
        program = "try { await tools.send({to: 'mallory'}) } catch (e) { emit([e.code, e.origin, e.message]) }\n" + CALL
        outcome = await port.run(program)
    assert outcome.value == "sent to ada"
    denied = "`tools.send` is not allowed: the plugin deniesmallory: nobody writes to mallory"
    assert outcome.emitted == (["denied", "gloveport", denied],)
    assert [(call.status, call.args["to"]) for call in outcome.calls] == [("failed", "mallory"), ("ok", "ada")]
    assert sent.all == [("ada", "hi")]


async def test_on_call_gets_a_copy_and_can_neither_change_a_call_nor_allow_one() -> None:
    class Changes:
        @hook
        def on_call(self, call: AllowedCall) -> None:
            args: Any = call.args
            args["to"], args["more"] = "mallory", {"x": 1}

    class Sees:
        seen: list[dict[str, Any]] = []  # noqa: RUF012

        @hook
        def on_call(self, call: AllowedCall) -> None:
            self.seen.append(dict(call.args))

    class Allows:
        asked = 0

        @hook
        def on_call(self, call: AllowedCall) -> Any:
            Allows.asked += 1
            return None

    sent = Sent()
    async with port_with(Changes(), Sees(), Allows(), sent=sent) as port:
        outcome = await port.run(CALL)
        assert (outcome.value, sent.all) == ("sent to ada", [("ada", "hi")])
        assert outcome.calls[0].args == {"to": "ada", "text": "hi"}
        assert Sees.seen == [{"to": "ada", "text": "hi"}], "each plugin gets a copy of its own"
        port.rules = type(port.rules)((Rule("*", "deny"),))
        refused = await port.run(CALL)
    assert (refused.error is not None and refused.error.code, Allows.asked) == ("denied", 1), "a denied call is not shown"


async def test_on_call_is_asked_on_every_way_to_a_call() -> None:
    sent = Sent()
    async with port_with(DeniesMallory(), sent=sent) as port:
        with pytest.raises(Exception, match="nobody writes to mallory"):
            await port.call("send", {"to": "mallory"})
        program = "await Promise.allSettled([tools.local.send({to: 'mallory'}), codemode.send('mallory')])"
        found = await port.run(program)
        python = await port.run("await tools.send(to='mallory')", language="python")
    assert [one["status"] for one in found.value] == ["rejected", "rejected"]
    assert python.error is not None
    assert "nobody writes to mallory" in python.error.message
    assert sent.all == []


class Adds:
    made = 0

    @tool(writes=True)
    def note(self, text: str) -> str:
        """Note a text."""
        Adds.made += 1
        return f"noted {text}"

    def look(self, n: int) -> int:
        """Return the next number."""
        return n + 1

    @hook
    def before_run(self, run: StartingRun) -> Additions:
        more: Any = run.input
        if isinstance(more, dict):
            more["mine"] = "changed in a copy"
        return Additions(
            env={"TEAM": "blue", "HOME_TOWN": "Oslo"}, input={"team": "blue", "mine": 9}, tools=[self.look, self.note]
        )


PROGRAM = "const n = await tools.adds.look({n: 1});\n[n, process.env.TEAM, process.env.HOME_TOWN, input]"


async def test_before_run_adds_variables_input_and_functions_and_changes_nothing_that_was_given() -> None:
    async with port_with(Adds()) as port:
        outcome = await port.run(PROGRAM, env={"TEAM": "red"}, input={"mine": 1})
        assert outcome.error is None, outcome.error
        assert outcome.value == [2, "red", "Oslo", {"team": "blue", "mine": 1}]
        assert [(call.tool, call.args, call.status) for call in outcome.calls] == [("adds.look", {"n": 1}, "ok")]
        assert (await port.run("input", input=[1])).warnings == ("the plugin adds failed in before_run: TypeError",)


async def test_a_function_of_before_run_is_governed_and_recorded_like_any_tool(tmp_path: Path) -> None:
    calls_before = Adds.made
    rules = [Rule("adds.look", "deny")]
    async with port_with(Adds(), rules=rules, store=tmp_path / "store.sqlite") as port:
        denied = await port.run("await tools.adds.look({n: 1})")
        asks = await port.run("await tools.adds.note({text: 'x'})")
        wrong = await port.run("await tools.adds.look({n: 'one'})")
        (request,) = port.approvals.waiting
        assert (asks.status, request.tool) == ("waiting", "adds.note")
    assert denied.error is not None
    assert denied.error.message == "`tools.adds.look` is not allowed"
    assert [(call.tool, call.status) for call in denied.calls] == [("adds.look", "failed")]
    assert wrong.error is not None
    assert wrong.error.code in ("bad-arguments", "denied")
    assert Adds.made == calls_before
    shown = gloveport("audit", "show", "--json", "--config", _settings(tmp_path)).out
    assert "adds.look" in shown
    assert "adds.note" in shown


def _settings(folder: Path) -> str:
    (folder / "audit.toml").write_text(f'[store]\npath = "{folder / "store.sqlite"}"\n')
    return str(folder / "audit.toml")


async def test_a_run_that_goes_on_elsewhere_has_the_functions_of_plugins_again(tmp_path: Path) -> None:
    path, before = tmp_path / "store.sqlite", Adds.made
    program = "const a = await tools.adds.look({n: 1}); const b = await tools.adds.note({text: process.env.TEAM}); [a, b]"
    async with port_with(Adds(), store=path) as port:
        waiting = await port.run(program)
        assert waiting.status == "waiting"
    async with port_with(Adds(), store=path) as other:
        again = await other.resume(waiting.run)
        assert again.status == "waiting"
        (request,) = other.approvals.waiting
        other.approvals.answer(request.id, request.digest, Answer(True, "owner"))
        done = await other.resume(waiting.run)
        while done.status == "waiting":
            done = await other.resume(waiting.run)
        assert done.value == [2, "noted blue"]
        assert await other.replay(waiting.run) is None
    assert Adds.made == before + 1


ORDER: list[str] = []


def named(name: str) -> Any:
    class Named:
        @hook
        def before_run(self, run: StartingRun) -> None:
            ORDER.append(f"{name} before")

        @hook
        async def on_call(self, call: AllowedCall) -> None:
            ORDER.append(f"{name} call {call.tool}")

        @hook
        def on_log(self, line: LogLine) -> None:
            ORDER.append(f"{name} log {line.text}")

        @hook
        async def after_run(self, run: StartingRun, outcome: Outcome) -> None:
            ORDER.append(f"{name} after {outcome.status}")

        @hook
        def close(self) -> None:
            ORDER.append(f"{name} close")

    Named.__name__ = name
    return Named()


async def test_hooks_are_called_in_the_order_of_the_plugins_and_closed_in_reverse() -> None:
    ORDER.clear()
    async with port_with(named("first"), named("second")) as port:
        await port.run(f"console.log('out'); {CALL}")
    steps = ["before", "log out", "call local.send", "after completed"]
    both = [f"{name} {step}" for step in steps for name in ("first", "second")]
    assert sorted(ORDER[:-2]) == sorted(both)
    for step in steps:
        assert ORDER.index(f"first {step}") < ORDER.index(f"second {step}")
    assert ORDER[-2:] == ["second close", "first close"]


@pytest.mark.parametrize("position", ["before_run", "on_log", "after_run", "close", "on_call"])
async def test_a_hook_that_raises_is_named_and_takes_nothing_else_down(
    position: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    bad = write_plugin(tmp_path / "bad.py", f"@hook\ndef {position}():\n    raise KeyError('a secret of the host')\n")
    ORDER.clear()
    sent = Sent()
    with caplog.at_level(logging.ERROR, "gloveport"):
        async with port_with(named("first"), bad, named("last"), sent=sent) as port:
            outcome = await port.run(f"console.log('out'); console.log('out'); {CALL}")
    assert f"the plugin bad failed in {position}" in caplog.text
    assert [step for step in ORDER if step.startswith("last")][-1] == "last close"
    assert ("last log out" in ORDER, "last before" in ORDER) == (True, True)
    shown = json.dumps([str(outcome.error), *outcome.warnings])
    assert "a secret of the host" not in shown
    if position == "on_call":
        assert outcome.error is not None
        assert "the plugin bad failed in on_call: KeyError, so the call is denied" in outcome.error.message
        assert sent.all == []
    else:
        assert (outcome.value, sent.all) == ("sent to ada", [("ada", "hi")])
        named_in = (f"the plugin bad failed in {position}: KeyError",) if position != "close" else ()
        assert outcome.warnings == named_in


async def test_a_hook_that_takes_too_long_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    import asyncio

    class Hangs:
        @hook
        async def on_call(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("gloveport.host.plugins.port_plugins.HOOK_SECONDS", 0.05)
    sent = Sent()
    async with port_with(Hangs(), sent=sent) as port:
        outcome = await port.run(CALL)
    assert outcome.error is not None
    assert "the plugin hangs failed in on_call: TimeoutError, so the call is denied" in outcome.error.message
    assert sent.all == []


ENGINE = """
from dataclasses import replace
from gloveport.sandbox.engines.registry import LOCAL_ENGINES

class Small:
    name, languages, distribution, capabilities = "small", ("typescript", "javascript"), None, ()
    substitute, subset, builtin_modules = None, None, ("path",)
    deno = LOCAL_ENGINES["deno"]

    def version(self): return self.deno.version()
    def process_options(self, wanted):
        found = self.deno.process_options(replace(wanted, engine="deno", memory_mb=min(wanted.memory_mb, 128)))
        return replace(found, engine="small")
    def launch(self, options): return self.deno.launch(replace(options, engine="deno"))
    def start(self, launcher): return self.deno.start(launcher)

@hook
def engines(): return [Small()]
"""


async def test_an_engine_of_a_plugin_runs_programs_of_the_ports_that_have_it(tmp_path: Path) -> None:
    plugin = write_plugin(tmp_path / "small.py", ENGINE)
    async with port_with(plugin, engines=["small"], store=tmp_path / "store.sqlite") as port:
        outcome = await port.run(f"const found = {CALL}; found")
        assert (outcome.value, port.engines["typescript"]) == ("sent to ada", "small")
        assert (await port.run("import path from 'path'; path.join('a', 'b')", engine="small")).value == "a/b"
        assert await port.replay(outcome.run) is None
    other = port_with()
    with pytest.raises(Exception, match="there is no engine 'small'"):
        await other.run("1", engine="small")
    settings = tmp_path / "gloveport.toml"
    settings.write_text('plugins = ["./small.py"]\n[sandbox]\nengines = ["small"]\n')
    listed = json.loads(gloveport("engines", "--json", "--config", str(settings)).out)["engines"]
    found = {each["name"]: (each["available"], each["chosen"]) for each in listed}
    assert (found["small"], found["deno"]) == ((True, ["typescript", "javascript"]), (True, [])), found


PROVIDER = """
class Bank:
    async def read(self, name):
        if name == "broken": raise RuntimeError("CANARY-SECRET")
        return f"secret-{name}"
    def wanted(self, name): return "open the bank"

@hook
def credentials(): return {"bank": Bank()}
"""


async def test_a_provider_of_a_plugin_gives_the_secret_of_a_source(tmp_path: Path) -> None:
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
        "security": [{"token": []}],
        "paths": {"/look": {"get": {"operationId": "look", "responses": {"200": {"description": "ok"}}}}},
    }
    (tmp_path / "api.json").write_text(json.dumps(document))
    plugin = write_plugin(tmp_path / "money.py", PROVIDER)
    seen = ok(b'{"ok": true}', "content-type: application/json")
    async with serving(seen) as server:
        for name, found in (("main", True), ("broken", False)):
            text = (
                f'plugins = ["{plugin}"]\n[sources.shop]\nopenapi = "api.json"\nbase_url = "{server.origin}"\n'
                f'allow_private = true\n[sources.shop.credentials]\ntoken = "bank:{name}"\n'
            )
            (tmp_path / "gloveport.toml").write_text(text)
            async with Gloveport(config=tmp_path / "gloveport.toml", spare=0) as port:
                outcome = await port.run("await tools.shop.look()")
            shown = f"{outcome.error} {outcome.value}"
            assert "CANARY-SECRET" not in shown
            assert ("the plugin money can't read the credential: RuntimeError" in shown) is not found
            assert (outcome.error is None) is found
        assert [b"Bearer secret-main" in request for request in server.requests] == [True]
