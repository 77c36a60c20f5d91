"""`search`, `describe` and `execute` of an agent: bounded, complete, and separate from those of others."""

from __future__ import annotations

import json
import math
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gloveport import Gloveport, OptionError, SourceConfig, ToolError
from gloveport.catalog import Catalog
from gloveport.surfaces.agents.result_store import MAX_RESULTS, ResultStore
from gloveport.surfaces.agents.tool_descriptions import INSTRUCTIONS
from gloveport.surfaces.agents.tools import AgentAnswer, AgentTools
from gloveport.surfaces.documents import failure_document
from gloveport.types import Event, Tool
from tests.packages.approved import Approved


class Many:
    """A source with many tools and long texts."""

    def __init__(self, name: str, count: int, title: str = "") -> None:
        self.name = name
        self.title = title
        schema = {"type": "object", "properties": {"id": {"type": "integer"}}}
        self._tools = [
            Tool(f"{name}.group{at % 7}.thing_{at}", f"Thing {at} of {name}. " * 20, schema) for at in range(count)
        ]

    def tools(self) -> list[Tool]:
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        return tool.address

    async def close(self) -> None:
        pass


def weight(tools: AgentTools) -> int:
    """Return the bytes that are always in an agent's context: descriptions, input schemas and instructions."""
    carried = [(tool.name, tool.title, tool.description, json.dumps(tool.input_schema)) for tool in tools.descriptions()]
    return len("".join([INSTRUCTIONS, *(part for row in carried for part in row)]).encode())


def fits(tools: AgentTools, name: str, answer: AgentAnswer) -> bool:
    schema = next(tool.output_schema for tool in tools.descriptions() if tool.name == name)
    return jsonschema_rs.validator_for(dict(schema)).is_valid(json.loads(json.dumps(answer.data)))


@pytest.mark.integration
async def test_the_data_of_an_error_is_what_the_tool_answered_or_none_wherever_it_is_seen() -> None:
    def answers(data: Any) -> None:
        raise ToolError("no", code="busy", data=data)

    def says_nothing() -> None:
        raise ToolError("no", code="busy")

    def breaks() -> None:
        raise ValueError("no")

    calls: list[tuple[str, str, Any]] = [
        ("answers({data: {after: [1, 2]}})", "answers(data={'after': [1, 2]})", {"after": [1, 2]}),
        ("answers({data: 'later'})", "answers(data='later')", "later"),
        ("says_nothing()", "says_nothing()", None),
        ("breaks()", "breaks()", None),
        ("says_nothing({wrong: 1})", "says_nothing(wrong=1)", None),
    ]
    async with Gloveport(tools=[answers, says_nothing, breaks]) as port:
        agent = AgentTools(port)
        for typescript, python, data in calls:
            caught = await port.run(f"try {{ await tools.local.{typescript} }} catch (e) {{ return [e.data] }}")
            assert caught.value == [data], typescript
            program = f"try:\n    await tools.{python}\nexcept ToolError as e:\n    found = [e.data]\nfound"
            assert (await port.run(program, language="python")).value == [data], python
            failed = await port.run(f"await tools.{typescript}")
            assert failed.error is not None
            assert failed.error.data == data, typescript
            assert failure_document(failed.error)["data"] == data
            answer = await agent.call("execute", {"code": f"await tools.{typescript}"})
            assert answer.data["error"].get("data") == data, typescript


@pytest.mark.parametrize(
    "sources",
    [
        [],
        [Many("one", 1, "The one")],
        [Many("large", 5000, "A large catalog " * 40)],
        [Many(f"source_with_a_rather_long_name_{at}", 20, "数据库和很多别的东西" * 20) for at in range(60)],
    ],
    ids=["nothing", "one", "large", "many"],
)
def test_what_an_agent_always_carries_stays_small_whatever_is_connected(sources: list[Many]) -> None:
    tools = AgentTools(Gloveport(sources=sources))
    assert weight(tools) <= 3500  # about 3.5 bytes to a token: below 1,000 tokens
    search = tools.descriptions()[0].description
    for source in sources[:2]:
        assert f"- {source.name} ({len(source.tools()):,} tool" in search
    if len(sources) > 20:
        left_out = re.search(r"- and (\d+) more", search)
        assert left_out
        assert search.count("\n- source_") + int(left_out[1]) == len(sources)


def test_an_agent_reads_what_it_may_import(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    settings = tmp_path / "gloveport.toml"
    settings.write_text(
        '[packages]\nmodules = "."\n[agents.few]\npackages = ["npm:leaf", "npm:gone"]\n[agents.none]\npackages = []\n'
    )
    approved = Approved()
    approved.add("leaf@1.0.0", {})
    approved.add("tree@1.0.0", {}, "leaf@1.0.0")
    approved.add("pypi:rows@1.0", {})

    def told(agent: str, config: Path | None = settings) -> str:
        return AgentTools(Gloveport(config=config), agent=agent).descriptions()[2].description

    assert "- Packages: npm:tree, pypi:rows. Modules of the project are below /root/skills." in told("default")
    assert "- Packages: npm:leaf. Modules" in told("few")
    assert "- No packages. Modules" in told("none")
    for number in range(60):
        approved.add(f"pypi:package-{number:02}@1.0", {})
    assert re.search(r"- Packages: npm:tree, pypi:package-00, .* and \d+ more\.$", told("default", None))
    assert weight(AgentTools(Gloveport(sources=[Many("large", 5000, "A large catalog " * 40)]))) <= 3500


async def test_a_source_that_can_not_be_opened_is_named_and_the_others_work(port: Gloveport) -> None:
    async with Gloveport(sources=["nowhere.json", Many("good", 3)], spare=1) as opened:
        tools = AgentTools(opened)
        description = tools.descriptions()[0].description
        assert "NOT connected: nowhere.json: there is no file nowhere.json" in description
        assert "- good (3 tools)" in description
        found = await tools.call("search", {"query": "thing"})
        assert found.data["total"] == 3
        assert "NOT connected: there is no file nowhere.json" in found.text
        with pytest.raises(OptionError, match="is not connected: there is no file"):
            await tools.call("search", {"query": "x", "source": "nowhere.json"})
        ran = await tools.call("execute", {"code": "await tools.good.group0.thing_0({id: 1})"})
        assert ran.data["value"] == "good.group0.thing_0"


async def test_search_says_how_many_there_are_and_what_each_does() -> None:
    tools = AgentTools(Gloveport(sources=[Many("big", 412)]))
    answer = await tools.call("search", {"query": "thing", "limit": 8})
    assert answer.text.startswith("8 of 412 (be more precise")
    assert (len(answer.data["tools"]), answer.data["total"]) == (8, 412)
    assert answer.data["tools"][0].keys() == {"path", "description", "writes", "pages"}
    assert fits(tools, "search", answer)
    nothing = await tools.call("search", {"query": "zebra"})
    assert "Nothing matches" in nothing.text
    with pytest.raises(OptionError, match="there is no source `small`") as refused:
        await tools.call("search", {"query": "x", "source": "small"})
    assert refused.value.hint == "the sources are big"  # `local` has no functions here
    with pytest.raises(OptionError) as refused:
        await tools.call("search", {"query": "x", "source": "bigg"})
    assert refused.value.hint == "did you mean `big`?"


@pytest.mark.parametrize(
    ("name", "args", "asked"),
    [
        ("search", {"query": "thing"}, "search"),
        ("describe", {"paths": ["far.group0.thing_0"]}, "find"),
        ("describe", {"paths": ["far.group0.thing"]}, "suggest"),
    ],
)
async def test_a_catalog_is_asked_away_from_the_event_loop(
    name: str, args: dict[str, Any], asked: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []
    answer = getattr(Catalog, asked)

    def recorded(*args: Any, **kwargs: Any) -> Any:
        threads.append(threading.current_thread())
        return answer(*args, **kwargs)

    monkeypatch.setattr(Catalog, asked, recorded)
    await AgentTools(Gloveport(sources=[Many("far", 3)])).call(name, args)
    assert threads
    assert threading.current_thread() not in threads


async def test_tool_descriptions_can_hide_nothing() -> None:
    source = Many("shop", 0)
    source._tools = [Tool("shop.buy", "Buy\u202e\u200b\x1b[8m now\nIGNORE", {"type": "object"}, writes=True)]
    answer = await AgentTools(Gloveport(sources=[source])).call("search", {"query": "buy"})
    assert answer.text.splitlines()[1] == "tools.shop.buy [writes] - Buy\\u{202e}\\u{200b}\\x1b[8m now"


async def test_describe_gives_types_in_the_language_asked_for_and_says_what_is_missing(port: Gloveport) -> None:
    tools = AgentTools(port)
    typescript = await tools.call("describe", {"paths": ["tools.get_weather", "add", "get_wether"]})
    assert "get_weather(args: {" in typescript.text
    assert "// no tool get_wether; did you mean `get_weather`?" in typescript.text
    assert typescript.data["missing"] == [{"path": "get_wether", "similar": ["get_weather"]}]
    assert not typescript.failed
    python = await tools.call("describe", {"paths": ["get_weather"], "language": "python"})
    assert "city: str" in python.text
    unknown = await tools.call("describe", {"paths": ["nothing_like_it"]})
    assert unknown.failed
    for answer in (typescript, python, unknown):
        assert fits(tools, "describe", answer)


async def test_describe_shows_a_part_of_a_result(port: Gloveport) -> None:
    source = Many("k8s", 0)
    text = {"type": "string"}
    pods = {"type": "object", "properties": {"items": {"type": "array", "items": {"properties": {"spec": text}}}}}
    source._tools = [Tool("k8s.pods.list", "List pods", {"type": "object"}, pods)]
    tools = AgentTools(Gloveport(sources=[source]))
    for language, shown in (("typescript", "type Part = string;"), ("python", ": str")):
        answer = await tools.call("describe", {"paths": ["k8s.pods.list"], "at": "items[].spec", "language": language})
        assert shown in answer.text and fits(tools, "describe", answer)
    with pytest.raises(OptionError, match=r"`at`: there is no `items\[\]\.spce`: `items\[\]` has spec"):
        await tools.call("describe", {"paths": ["k8s.pods.list"], "at": "items[].spce"})


async def test_execute_gives_the_value_the_logs_and_what_was_called(port: Gloveport) -> None:
    tools = AgentTools(port)
    code = "console.log('hi'); for (const n of [1, 2, 3]) await tools.add(n, n); try { await tools.fail() } catch {}; [1, null]"
    answer = await tools.call("execute", {"code": code})
    assert answer.data["value"] == [1, None]
    assert answer.data["calls"] == [{"tool": "add", "ok": 3, "failed": 0}, {"tool": "fail", "ok": 0, "failed": 1}]
    assert answer.text == "[1,null]\n--- logs ---\nhi"
    assert fits(tools, "execute", answer)
    with_input = await tools.call("execute", {"code": "input['n'] * 2", "language": "python", "input": {"n": 21}})
    assert with_input.data["value"] == 42
    nothing = await tools.call("execute", {"code": "const x = 1"})
    assert nothing.text == "(no value)"


async def test_a_failed_program_is_reported_with_line_caret_hint_and_completed_calls(port: Gloveport) -> None:
    tools = AgentTools(port)
    code = "await tools.add(1, 2);\nawait tools.fail({message: 'full', code: 'quota', data: {left: 0}});"
    answer = await tools.call("execute", {"code": code})
    assert answer.failed
    lines = answer.text.splitlines()
    assert lines[0] == "tool error quota: tools.fail: full"
    assert lines[1].startswith("line 2, column ")
    assert any(re.match(r"^\s*\|?\s*\^", line) for line in lines), answer.text
    assert 'data: {"left":0}' in lines
    assert "calls that were made before: add × 1" in lines
    assert (answer.data["error"]["line"], answer.data["error"]["data"]) == (2, {"left": 0})
    assert fits(tools, "execute", answer)
    unknown = await tools.call("execute", {"code": "await tools.get_wether({city: 'Oslo'})"})
    assert "did you mean `tools.get_weather`?" in unknown.text


async def read_on(tools: AgentTools, answer: AgentAnswer) -> str:
    """Return the whole result, read as the answer says."""
    whole = answer.data["preview"]
    while "result_id" in answer.data:
        rest = {"result_id": answer.data["result_id"], "offset": answer.data["next_offset"]}
        assert f'execute({{result_id: "{rest["result_id"]}", offset: {rest["offset"]}}})' in answer.text
        answer = await tools.call("execute", rest)
        assert fits(tools, "execute", answer)
        whole += answer.data["preview"]
    return whole


@pytest.mark.parametrize("length", [99, 100, 101, 1000, 1001])
async def test_a_long_result_is_never_cut_silently_and_can_be_read_to_its_end(port: Gloveport, length: int) -> None:
    tools = AgentTools(port, max_chars=100)
    answer = await tools.call("execute", {"code": f"'x'.repeat({length - 1}) + '!'"})
    assert fits(tools, "execute", answer)
    if length <= 100:
        assert (answer.data["value"], "result_id" in answer.data) == ("x" * (length - 1) + "!", False)
    else:
        assert "value" not in answer.data
        assert answer.data["length"] == length
        assert await read_on(tools, answer) == "x" * (length - 1) + "!"


async def test_long_logs_and_long_errors_say_where_the_rest_is(port: Gloveport) -> None:
    tools = AgentTools(port, max_chars=200)
    logs = await tools.call("execute", {"code": "for (let i = 0; i < 100; i++) console.log('line ' + i); 1"})
    found = re.search(r'result_id: "(\w+)", offset: 200', logs.data["logs"])
    assert found
    more = await tools.call("execute", {"result_id": found[1], "offset": 200})
    assert "line 30" in more.text
    failed = await tools.call("execute", {"code": "throw new Error('e'.repeat(5000) + '!')"})
    assert failed.data["error"]["code"] == "program-failed"
    assert "e" * 5000 + "!" in await read_on(tools, failed)
    assert len(failed.text) < 400


async def test_texts_with_lone_surrogates_still_arrive(port: Gloveport) -> None:
    tools = AgentTools(port)
    answer = await tools.call("execute", {"code": "console.log('\\ud800'); ({['k\\udfff']: ['a\\ud83d', '😀']})"})
    json.dumps(answer.data, ensure_ascii=False).encode()
    answer.text.encode()
    assert answer.data["value"] == {"k\ufffd": ["a\ufffd", "😀"]}


async def test_results_of_one_agent_are_not_there_for_another(port: Gloveport) -> None:
    mine, yours = AgentTools(port, max_chars=10), AgentTools(port, max_chars=10)
    answer = await mine.call("execute", {"code": "'secret '.repeat(10)"})
    result_id = answer.data["result_id"]
    assert len(bytes.fromhex(result_id)) * 8 >= 128
    with pytest.raises(OptionError, match="there is no result"):
        await yours.call("execute", {"result_id": result_id})
    assert (await mine.call("execute", {"result_id": result_id})).data["preview"] == "secret sec"


def test_the_long_results_of_200_clients_are_all_kept() -> None:
    kept = ResultStore()
    ids = [kept.put(f"{at:>80000}") for at in range(200)]
    assert [kept.get(key) for key in ids] == [f"{at:>80000}" for at in range(200)]


def test_ids_are_random_and_what_is_kept_is_bounded() -> None:
    kept = ResultStore()
    ids = [kept.put(str(at)) for at in range(MAX_RESULTS + 10)]
    assert [kept.get(key) is None for key in ids].count(True) == 10
    assert kept.get(ids[-1]) == str(MAX_RESULTS + 9)
    counts = Counter("".join(ids))
    entropy = -sum(n / sum(counts.values()) * math.log2(n / sum(counts.values())) for n in counts.values())
    assert entropy > 3.9


@pytest.mark.parametrize(
    ("name", "args", "told"),
    [
        ("search", {}, "`query` is missing"),
        ("search", {"query": "x", "limit": 1000}, "limit"),
        ("describe", {"path": ["x"]}, "there is no `path` (did you mean `paths`?)"),
        ("describe", {"paths": []}, "paths"),
        ("execute", {}, "`code` is missing"),
        ("execute", {"code": ""}, "`code` is blank"),
        ("execute", {"code": " \n\t", "language": "python"}, "`code` is blank"),
        ("execute", {"code": "1", "result_id": "x"}, "give either `code` or `result_id`"),
        ("execute", {"code": 5}, "`code` must be a string, not a number"),
        ("execute", {"code": "1", "language": "ruby"}, "language"),
        ("execute", {"result_id": "x", "offset": -1}, "offset"),
        ("execute", {"result_id": "x", "offset": 10**30}, "there is no result `x`"),
        ("approve", {}, "there is no tool `approve`"),
        ("resume", {}, "`run` is missing"),
    ],
)
async def test_arguments_that_make_no_sense_are_refused_with_what_is_wrong(
    port: Gloveport, name: str, args: dict[str, Any], told: str
) -> None:
    with pytest.raises(OptionError, match=re.escape(told)):
        await AgentTools(port).call(name, args)


async def test_events_of_a_run_are_delivered_as_they_happen(port: Gloveport) -> None:
    seen: list[Event] = []
    await AgentTools(port).call("execute", {"code": "await tools.add(1, 2); emit(3)"}, on_event=seen.append)
    assert [event.kind for event in seen] == ["call-started", "call-ended", "emit"]


@pytest.mark.integration
async def test_an_exception_keeps_its_type(port: Gloveport) -> None:
    answer = await AgentTools(port).call("execute", {"code": "{}['ttl']", "language": "python"})
    assert answer.text.splitlines()[0] == "program-failed: KeyError: 'ttl'"


@pytest.mark.integration
async def test_an_agent_is_told_to_ask_the_user_and_not_how_to_change_the_rules() -> None:
    async with Gloveport(sources=[ShutSource()]) as port:
        answer = await AgentTools(port).call("execute", {"code": "await tools.shop.pay({})"})
        assert answer.text.splitlines()[0].startswith("denied: `tools.shop.pay` needs a person's approval")
        assert "hint: Ask the user whether it may be made." in answer.text
        assert "writes =" not in f"{answer.text}{answer.data}" and "setting" not in answer.data["error"]
        error = (await port.run("await tools.shop.pay({})")).error
        assert error is not None and 'gloveport policy set allow "shop.pay"' in (error.setting or "")


@pytest.mark.integration
async def test_an_agent_gets_the_command_that_signs_in_and_no_variable() -> None:
    async with Gloveport(sources=[SourceConfig("shop", "openapi", "examples/shop.json")]) as port:
        answer = await AgentTools(port).call("execute", {"code": "await tools.shop.orders.list()"})
    assert answer.data["error"]["hint"] == "Ask the user to run `gloveport auth add shop`."
    assert "hint: Ask the user to run `gloveport auth add shop`." in answer.text
    assert "GLOVEPORT_" not in f"{answer.text}{answer.data}"


@pytest.mark.integration
async def test_a_hint_for_an_agent_names_no_option_of_the_command_line(port: Gloveport) -> None:
    async with Gloveport(limits={"wall_seconds": 0.3}) as short:
        answer = await AgentTools(short).call("execute", {"code": "for (;;);"})
    assert "hint: Do less in one run; look for a loop that never ends." in answer.text
    assert "--" not in answer.text and "wall_seconds" not in answer.text


class ShutSource:
    """A source with one tool that writes."""

    name = "shop"

    def tools(self) -> list[Tool]:
        return [Tool("shop.pay", "Pay.", {"type": "object"}, kind="openapi", writes=True)]

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        raise AssertionError("it was called")

    async def close(self) -> None:
        pass
