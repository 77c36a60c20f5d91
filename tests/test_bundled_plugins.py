"""The plugins that come with Gloveport, off until they are named: UTCP manuals as sources, and the log sink."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, OptionError, SourceError
from gloveport.host.plugins.loading import load_plugins
from gloveport.sources.openapi.compile.document.document import parse_document
from gloveport.surfaces.mcp.stdio import ServedSources
from tests.policy.servers import ok, serving

TEXT = {"type": "string"}
KEY = {"auth_type": "api_key", "api_key": "CANARY-OF-THE-MANUAL", "var_name": "X-Api-Key", "location": "header"}


def tool(name: str, url: str, *, inputs: dict[str, Any] | None = None, **call: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": inputs or {}, "required": list(inputs or {})[:1]}
    template = {"call_template_type": "http", "url": url, "http_method": "GET", **call}
    return {"name": name, "description": name, "inputs": schema, "outputs": {}, "tool_call_template": template}


def manual(*tools: dict[str, Any]) -> str:
    return json.dumps({"utcp_version": "1.2.0", "manual_version": "1.0.0", "tools": tools})


def read(text: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    document = parse_document(text.encode(), "https://h/", "the manual of the source shop", is_manual=True)
    return document.root, document.left_out


def settings(folder: Path, text: str) -> Path:
    (folder / "gloveport.toml").write_text(text)
    return folder / "gloveport.toml"


@pytest.mark.integration
async def test_the_tools_of_a_manual_are_called_through_egress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOVEPORT_SHOP_API_KEY", "the-users-own")
    inputs = {"id": TEXT, "q": TEXT, "X-User": TEXT}
    async with serving(ok(b'{"n": 1}', "content-type: application/json")) as server:
        tools = [
            tool("get_item", f"{server.origin}/items/{{id}}", inputs=inputs, header_fields=["X-User"], auth=KEY),
            tool("add_item", f"{server.origin}/items", inputs={"body": {"type": "object"}}, http_method="POST"),
            tool("shell", "", call_template_type="cli"),
        ]
        (tmp_path / "manual.json").write_text(manual(*tools))
        source = 'plugins = ["utcp"]\n[sources.shop]\nutcp = "manual.json"\nwrites = ["*"]\n'
        program = """
        const found = await tools.search("item");
        const [get, add] = ["get_item", "add_item"].map((name) => found.find((one) => one.path.endsWith(name)).path);
        const call = (path, args) => path.split(".").reduce((at, part) => at[part], tools)(args);
        [await call(get, {id: "a/b", q: "x", "X-User": "me"}), await call(add, {body: {n: 1}})]
        """
        async with Gloveport(config=settings(tmp_path, source), spare=0) as port:
            refused = await port.run(program)
            (left_out, *_) = [one.message for one in port.problems]
        async with Gloveport(config=settings(tmp_path, source + "allow_private = true\n"), spare=0) as port:
            outcome = await port.run(program)
    assert refused.error is not None
    assert refused.error.code == "egress-denied", "a manual can't open the user's network"
    assert (outcome.error, outcome.value) == (None, [{"n": 1}, {"n": 1}])
    got, added = server.requests
    assert got.startswith(b"GET /items/a%2Fb?q=x ")
    assert b"x-user: me" in got.lower()
    assert b"x-api-key: the-users-own" in got.lower()
    assert b"CANARY-OF-THE-MANUAL" not in got
    assert added.startswith(b"POST /items ")
    assert added.endswith(b'{"n":1}')
    assert left_out == "the tool shell is left out: it is called by 'cli', and only `http` is supported"


@pytest.mark.integration
async def test_a_file_of_a_plugins_kind_is_served_from_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "manual.json").write_text(manual(tool("get_item", "https://shop.example/items")))
    config = settings(tmp_path, 'plugins = ["utcp"]\n')
    serving = ServedSources((str(tmp_path / "manual.json"),), str(config), None, private=False)
    async with serving.port(serving.settings()) as port:
        await port.connect()
        assert any(each.source == "manual" for each in port.catalog.tools)
    plain = ServedSources((str(tmp_path / "manual.json"),), str(settings(tmp_path, "")), None, private=False)
    with pytest.raises(OptionError, match="manual"):
        plain.settings()


def test_keywords_that_a_schema_has_as_null_are_none() -> None:
    """PyPI's `utcp` writes every keyword that it knows into each schema."""
    empty = dict.fromkeys(("enum", "const", "default", "items", "format", "pattern", "minimum", "required", "properties"))
    given = {
        **empty,
        "type": "object",
        "properties": {"n": {**empty, "type": "integer"}, "body": {**empty, "type": "string"}},
    }
    described = {**tool("x", "https://h/x", http_method="POST"), "inputs": given, "outputs": given}
    document, _ = read(manual(described))
    (operation,) = document["paths"]["/x"].values()
    assert operation["parameters"] == [{"name": "n", "in": "query", "required": False, "schema": {"type": "integer"}}]
    assert operation["requestBody"]["content"]["application/json"]["schema"] == {"type": "string"}


REFUSED = {
    "its URL or its method": tool("x", "ftp://h/x"),
    "its URL or its method is": tool("x", "https://{host}/x"),
    "it sends the fixed header 'X-Team'": tool("x", "https://h/x", headers={"X-Team": "blue"}),
    "its inputs lack 'id'": tool("x", "https://h/{id}"),
    "its auth_type 'magic'": tool("x", "https://h/x", auth={"auth_type": "magic"}),
    "it is called by 'text'": tool("x", "", call_template_type="text"),
}


@pytest.mark.parametrize("problem", REFUSED)
def test_a_tool_that_can_not_be_called_as_it_says_is_refused_and_named(problem: str) -> None:
    document, left_out = read(manual(tool("good", "https://h/good"), REFUSED[problem]))
    assert list(document["paths"]) == ["/good"]
    assert left_out[0].startswith(f"the tool x is left out: {problem}")
    with pytest.raises(SourceError, match="has no tool that can be called"):
        read(manual(REFUSED[problem]))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"utcp_version": "1", "tools": 3}', "[" * 5000, '{"tools": []}'])
def test_what_is_no_manual_is_an_error_that_names_the_source(text: str) -> None:
    with pytest.raises(SourceError, match="the manual of the source shop"):
        read(text)


@pytest.mark.integration
async def test_the_log_sink_writes_runs_and_calls_for_its_owner_alone(tmp_path: Path) -> None:
    def add(a: int, b: int) -> int:
        return a + b

    file = tmp_path / "runs.jsonl"
    for arguments in ("false", "true"):
        options = f'plugins = [{{plugin = "log_sink", file = "{file}", arguments = {arguments}}}]\n'
        async with Gloveport(tools=[add], config=settings(tmp_path, options), spare=0) as port:
            run = (await port.run("await tools.add(1, 2); throw new Error('broken')")).run
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["kind"] for line in lines] == ["call", "run"] * 2
    assert [(line["tool"], line["status"], line.get("args")) for line in lines[::2]] == [
        ("add", "ok", None),
        ("add", "ok", {"a": 1, "b": 2}),
    ]
    assert (lines[-1]["run"], lines[-1]["status"], lines[-1]["calls"]) == (run, "failed", 1)
    assert "broken" in lines[-1]["error"]["message"]
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("options", ["", ', fil = "x"', ", file = 3", ', file = "x", arguments = 1'])
def test_wrong_options_of_the_log_sink_are_named(tmp_path: Path, options: str) -> None:
    from gloveport.config import load_config

    config = load_config(settings(tmp_path, f'plugins = [{{plugin = "log_sink"{options}}}]\n'))
    (found,) = load_plugins(config.plugins)
    assert found.state == "failed"
    assert "log_sink" in found.problem
