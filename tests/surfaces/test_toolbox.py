"""`gloveport tools` and `gloveport add` as real processes; the sources here are Python files."""

from __future__ import annotations

import asyncio
import json
import socket
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.sources.graphql.server import Library, serving
from tests.surfaces.command import COMMAND, environment, gloveport, terminal

pytestmark = pytest.mark.integration

TOOLS = '''
def greet(name: str, times: int = 1) -> str:
    """Greet somebody."""
    return " ".join([f"hello {name}"] * times)

def fail() -> str:
    """Always fails."""
    raise ValueError("no luck")
'''


@pytest.fixture
def project(folder: Path) -> Path:
    (folder / "people.py").write_text(TOOLS)
    (folder / "gloveport.toml").write_text("# mine\n\n[limits]\nmax_calls = 50 # enough\n")
    return folder


def test_a_source_is_shown_asked_about_and_written_without_losing_comments(project: Path) -> None:
    unasked = gloveport("add", "people.py")
    assert unasked.code == 2
    assert "2 tools: 2 read, 0 write" in unasked.err
    assert "nobody can answer" in unasked.err
    assert "sources" not in (project / "gloveport.toml").read_text()
    done = gloveport("add", "people.py", "--yes")
    assert done.code == 0, done.err
    text = (project / "gloveport.toml").read_text()
    assert text.startswith("# mine\n\n[limits]\nmax_calls = 50 # enough\n")
    assert '[sources.people]\nfunctions = "people.py"\n' in text
    again = gloveport("add", "people.py", "--yes")
    assert "already has [sources.people]" in again.err
    assert (project / "gloveport.toml").read_text() == text


def test_what_was_added_can_be_listed_found_described_called_and_used_by_a_program(project: Path) -> None:
    assert gloveport("add", "people.py", "--yes", "--json").document["source"]["tools"] == 2
    assert "people.greet  Greet somebody." in gloveport("tools", "list").out
    found = gloveport("tools", "search", "greet", "somebody", "--json").document
    assert (found["tools"][0]["path"], found["of"]) == ("people.greet", 2)
    assert "greet(args: {" in gloveport("tools", "describe", "people.greet").out
    wrong = gloveport("tools", "describe", "people.greet", "--at", "items[].spec")
    assert (wrong.code, "the result has no known parts" in wrong.err) == (2, True)
    called = gloveport("tools", "call", "people.greet", '{"name": "Ada", "times": 2}')
    assert called.out == "hello Ada hello Ada\n", called.err
    assert gloveport("run", "-e", "await tools.people.greet({name: 'Bo'})").out == "hello Bo\n"
    assert gloveport("run", "--language", "python", "-e", "await people.greet(name='Bo')").out == "hello Bo\n"


def test_mistakes_are_reported_with_a_hint(project: Path) -> None:
    gloveport("add", "people.py", "--yes")
    unknown = gloveport("tools", "call", "people.gret", "{}")
    assert (unknown.code, "did you mean `tools.people.greet`?" in unknown.err) == (1, True)
    assert "hint: `gloveport tools search WORDS` finds tools" in unknown.err
    bad = gloveport("tools", "call", "people.greet", '{"nam": 1}')
    assert "there is no `nam` (did you mean `name`?)" in bad.err
    assert "`gloveport tools describe people.greet` shows what it takes" in bad.err
    failed = gloveport("tools", "call", "people.fail", "--json")
    assert (failed.code, failed.document["error"]["message"]) == (7, "ValueError: no luck")
    assert "the text of the arguments is not JSON" in gloveport("tools", "call", "people.greet", "{").err
    assert failed.document["error"]["origin"] == "tool"
    assert failed.document["error"]["data"] is None
    assert "did you mean `people`?" in gloveport("tools", "list", "peple").err
    assert "is neither an OpenAPI document" in gloveport("add", "gloveport.toml", "--yes").err
    assert "there is no file nothing.json\n  hint: give a URL, a file" in gloveport("add", "nothing.json").err
    bare = gloveport("add", "api.example.com:8000/openapi.json")
    assert (bare.code, "write https://api.example.com:8000/openapi.json" in bare.err) == (2, True)
    scheme = gloveport("add", "ftp://example.com/openapi.json")
    assert (scheme.code, "does not begin with http:// or https://" in scheme.err) == (2, True)


def test_a_projects_file_is_not_imported_before_it_is_trusted(project: Path) -> None:
    (project / "evil.py").write_text("open('canary', 'w').close()\ndef hi(): pass\n")
    (project / "gloveport.toml").write_text('[sources.evil]\nfunctions = "evil.py"\n')
    listed = gloveport("tools", "list", "evil")
    assert "is not trusted yet" in listed.err
    assert "gloveport tools trust evil" in listed.err
    assert not (project / "canary").exists()
    assert gloveport("tools", "trust", "evil").code == 2
    assert gloveport("tools", "trust", "evil", "--yes").code == 0
    assert "evil.hi" in gloveport("tools", "list").out
    assert (project / "canary").exists()


def test_a_file_that_a_trusted_one_imports_is_trusted_with_it_and_not_without(project: Path) -> None:
    (project / "shop.py").write_text("import prices\ndef cost():\n    import late\n    return prices.COST + late.COST\n")
    (project / "prices.py").write_text("COST = 1\n")
    (project / "late.py").write_text("COST = 2\n")
    (project / "gloveport.toml").write_text('[sources.shop]\nfunctions = "shop.py"\n')
    asked = gloveport("tools", "trust", "shop", "--yes")
    assert [line.split()[-2] for line in asked.err.splitlines() if "may import" in line] == [
        str(project / name) for name in ("shop.py", "late.py", "prices.py")
    ]
    assert gloveport("tools", "call", "shop.cost").out == "3\n"
    (project / "late.py").write_text("COST = 3\n")
    called = gloveport("tools", "call", "shop.cost")
    assert (called.code, "may not import late.py: it has changed since you trusted" in called.err) == (7, True)
    (project / "prices.py").write_text("open('canary', 'w').close()\nCOST = 5\n")
    refused = gloveport("tools", "list", "shop")
    assert "may not import prices.py: it has changed since you trusted" in refused.err
    assert "`gloveport tools trust shop`" in refused.err
    assert not (project / "canary").exists()
    again = gloveport("tools", "trust", "shop", "--yes")
    assert f"may import {project / 'prices.py'}  (changed)" in again.err
    assert gloveport("tools", "call", "shop.cost").out == "8\n"
    assert "needs no trust" in gloveport("tools", "trust", "shop").err


def test_the_old_verb_still_trusts_a_source_and_hints_at_the_new_one(project: Path) -> None:
    (project / "gloveport.toml").write_text('[sources.people]\nfunctions = "people.py"\n')
    assert gloveport("sources", "--json").document["sources"][0]["state"] == "untrusted"
    old = gloveport("tools", "approve", "people", "--yes", "--json")
    assert (old.code, old.document) == (0, {"ok": True, "source": "people", "approved": True})
    assert "is now `gloveport tools trust people`" in old.err
    assert gloveport("sources", "--json").document["sources"][0]["state"] == "open"
    again = gloveport("tools", "trust", "people", "--json")
    assert (again.code, again.document, again.err) == (0, {"ok": True, "source": "people", "trusted": False}, "")
    assert "approve" not in gloveport("tools", "--help").out


def test_a_broken_source_is_reported_and_the_others_work(project: Path) -> None:
    gloveport("add", "people.py", "--yes")
    with (project / "gloveport.toml").open("a") as file:
        file.write('[sources.gone]\nopenapi = "nowhere.json"\n')
    ran = gloveport("run", "-e", "await tools.people.greet({name: 'Bo'})")
    assert (ran.code, ran.out) == (0, "hello Bo\n")
    assert "gone" in ran.err


@pytest.mark.parametrize("command", [("list",), ("search", "greet"), ("changes",)])
def test_a_command_on_all_sources_ends_with_7_if_one_is_not_open(command: tuple[str, ...], project: Path) -> None:
    gloveport("add", "people.py", "--yes")
    assert gloveport("tools", *command).code == 0
    with (project / "gloveport.toml").open("a") as file:
        file.write('[sources.gone]\nopenapi = "nowhere.json"\n')
    told = gloveport("tools", *command)
    assert (told.code, "gone" in told.err) == (7, True)
    assert ("people.greet" in told.out) == (command != ("changes",))
    document = gloveport("tools", *command, "--json").document
    assert (document["ok"], document["error"]["message"]) == (False, "not open: gone")
    named = "--source" if command[0] == "search" else "--"
    assert gloveport("tools", *command, named, "people").code == 0
    assert gloveport("tools", *command, named, "gone").code == 7
    misspelt = gloveport("tools", *command, named, "peple")
    assert (misspelt.code, "did you mean `people`?" in misspelt.err) == (2, True)


def test_a_misspelt_source_has_no_changes_that_could_be_missed(project: Path) -> None:
    assert gloveport("add", "people.py", "--yes").code == 0
    told = gloveport("tools", "changes", "peple")
    assert (told.code, "did you mean `people`?" in told.err) == (2, True)


def test_a_definition_in_a_file_may_reach_private_addresses_with_allow_private(project: Path) -> None:
    paths = {"/x": {"get": {"operationId": "x", "responses": {"200": {"description": "ok"}}}}}
    document = {"openapi": "3.1.0", "info": {"title": "T", "version": "1"}, "servers": [{"url": "http://127.0.0.1:9"}]}
    (project / "local.json").write_text(json.dumps({**document, "paths": paths}))
    shut = gloveport("add", "local.json")
    assert "its calls go to http://127.0.0.1:9, which may not be reached (loopback, 127.0.0.0/8)" in shut.err
    assert "--private" in shut.err
    (project / "nowhere.json").write_text(json.dumps({**document, "servers": [], "paths": paths}))
    assert "names no server: its definition has only '/'; give --base-url" in gloveport("add", "nowhere.json").err
    opened = gloveport("add", "local.json", "--private", "--yes")
    assert (opened.code, "may not be reached" in opened.err) == (0, False)
    assert "allow_private = true" in (project / "gloveport.toml").read_text()
    (project / "api.json").write_text((project / "local.json").read_text().replace('"T"', '"Tiny Orders API"'))
    added = gloveport("add", "./api.json", "--private", "--yes")
    assert (added.code, "next: gloveport tools list tiny_orders" in added.err) == (0, True)
    assert (
        "Promise<unknown>" in gloveport("tools", "describe", "local_.x").out + gloveport("tools", "describe", "local.x").out
    )


def test_a_source_that_hangs_does_not_keep_a_call_of_another_waiting(project: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts connections, and never answers
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/openapi.json"
        (project / "gloveport.toml").write_text(
            f'[sources.silent]\nopenapi = "{url}"\nallow_private = true\ntimeout_seconds = 600\n'
            '[sources.people]\nfunctions = "people.py"\n'
        )
        for name in ("silent", "people"):
            assert gloveport("tools", "trust", name, "--yes").code == 0
        listed = gloveport("sources", "--json")
        assert {row["name"]: row["state"] for row in listed.document["sources"]} == {"silent": "opening", "people": "open"}
        assert (listed.code, listed.document["error"]["data"]) == (7, {"sources": ["silent"]})
        ran = gloveport("run", "-e", "1 + 1")
        assert (ran.out, ran.err) == ("2\n", "")
        called = gloveport("tools", "call", "people.greet", '{"name": "Ada"}')
        assert called.out == "hello Ada\n", called.err
        assert called.err == ""
        assert gloveport("run", "-e", "await tools.people.greet({name: 'Bo'})").out == "hello Bo\n"


def test_add_downloads_a_definition_once(project: Path) -> None:
    document = {"openapi": "3.1.0", "info": {"title": "Orders", "version": "1"}, "paths": {"/orders": {"get": {}}}}
    downloads: list[str] = []

    class Definition(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            downloads.append(self.path)
            body = json.dumps(document).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Nothing is printed."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Definition) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        added = gloveport("add", f"http://127.0.0.1:{server.server_port}/openapi.json", "--private", "--yes")
        server.shutdown()
    assert (added.code, downloads) == (0, ["/openapi.json"]), added.err
    assert "tools.orders" in added.err


def test_an_edited_file_is_reported_as_changed(project: Path) -> None:
    assert gloveport("add", "people.py", "--yes").code == 0
    (project / "people.py").write_text(TOOLS.replace("hello", "hi"))
    assert "has changed since you trusted it" in gloveport("tools", "list", "people").err
    (project / "gloveport.toml").write_text((project / "gloveport.toml").read_text() + "timeout_seconds = 90\n")
    (project / "people.py").write_text(TOOLS)
    assert "has other settings than those that you trusted" in gloveport("sources").err


def test_a_function_that_can_be_no_tool_is_left_out_with_a_warning(project: Path) -> None:
    (project / "people.py").write_text(TOOLS + "\ndef log(*words: str) -> None: ...\n")
    added = gloveport("add", "people.py", "--yes")
    assert "2 tools" in added.err
    assert "left out: the function log takes *words, which a tool can't" in added.err
    ran = gloveport("run", "--tools", "people.py", "-e", "await tools.greet({name: 'Bo'})")
    assert (ran.code, ran.out) == (0, "hello Bo\n")
    assert "left out: the function log" in ran.err
    (project / "people.py").write_text("def log(*words: str) -> None: ...\n")
    assert "takes *words" in gloveport("run", "--tools", "people.py", "-e", "1").err


def test_several_sources_at_once_are_refused_with_what_to_do(project: Path) -> None:
    (project / "shop.json").write_text("{}")
    refused = gloveport("add", "people.py", "shop.json", "--yes")
    assert (refused.code, "these are 2 sources" in refused.err) == (2, True)
    assert "`gloveport add people.py`" in refused.err
    misspelt = gloveport("add", "people.jsn", "poeple.py", "shop.json")
    assert "these are" not in misspelt.err, "a word that is no source may start a command"
    misspelt = gloveport("add", "poeple.py", "shop.json")
    assert (misspelt.code, "these are 2 sources" in misspelt.err) == (2, True), "nothing is started for a wrong name"
    started = gloveport("add", "--yes", "--", sys.executable, "people.py")
    assert (started.code, "these are 2 sources" in started.err) == (7, False)  # a command, though no MCP server


MCP_SERVER = f"""#!{sys.executable}
from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations

server = MCPServer("notes")

@server.tool(annotations=ToolAnnotations(readOnlyHint=True), structured_output=False)
def read(name: str) -> str:
    "Read a note."
    return f"note {{name}}"

@server.tool(structured_output=False)
def write(name: str) -> str:
    "Write a note."
    return f"wrote {{name}}"

server.run()
"""


@pytest.fixture
def server(project: Path) -> str:
    path = project / "notes.py"
    path.write_text(MCP_SERVER)
    path.chmod(0o755)
    return str(path)


def test_a_path_is_the_command_of_a_server_when_the_kind_says_so(project: Path, server: str) -> None:
    added = gloveport("add", "--kind", "mcp", "--yes", "--", server)
    assert added.code == 0, added.err
    assert f'mcp = ["{server}"]' in (project / "gloveport.toml").read_text()
    assert "those that may write ask a person first: --writes or --trust-annotations allows them" in added.err
    assert 'if it reads data of yours, add there: labels = ["private"]' in added.err  # a command is not, by default


@pytest.mark.parametrize(("answer", "code"), [(b"y\n", 0), (b"n\n", 5)])
def test_the_annotations_of_a_server_are_shown_and_trusted_on_request(
    project: Path, server: str, answer: bytes, code: int
) -> None:
    with terminal("add", "--kind", "mcp", "--", server, NO_COLOR="1") as screen:
        screen.until(r"Start it to see what it offers\? \[y/N\] ")
        screen.press(b"y\n")
        asked = screen.until(r"Trust notes that these 1 only read\? Then they don't ask. \[y/N\] ")
        assert "the server says that 1 only read: read" in asked
        screen.press(answer)
        screen.until(r"Add it to .*\? \[y/N\] ")
        screen.press(b"y\n")
        assert screen.rest()[0] == 0
    assert ("trust_annotations = true" in (project / "gloveport.toml").read_text()) == (code == 0)
    assert gloveport("tools", "call", "notes.read", "name=a").code == code
    assert gloveport("tools", "call", "notes.write", "name=a").code == 5


def test_writes_and_annotations_are_opened_with_options(project: Path, server: str) -> None:
    assert gloveport("add", "--kind", "mcp", "--yes", "--writes", "--trust-annotations", "--", server).code == 0
    text = (project / "gloveport.toml").read_text()
    assert 'writes = "allow"' in text
    assert "trust_annotations = true" in text
    assert gloveport("tools", "call", "notes.write", '{"name": "a"}').out == "wrote a\n"


def test_trusting_annotations_suspends_no_tool(project: Path, server: str) -> None:
    assert gloveport("add", "--kind", "mcp", "--yes", "--", server).code == 0
    refused = gloveport("tools", "call", "notes.read", '{"name": "a"}')
    assert (refused.code, "trust_annotations = true" in refused.err) == (5, True)
    file = project / "gloveport.toml"
    file.write_text(file.read_text() + "trust_annotations = true\n")
    assert gloveport("tools", "trust", "notes", "--yes").code == 0
    assert gloveport("tools", "call", "notes.read", '{"name": "a"}').out == "note a\n"
    assert "trust_annotations" not in gloveport("tools", "call", "notes.write", '{"name": "a"}').err
    (project / "notes.py").write_text(
        MCP_SERVER.replace(
            "@server.tool(structured", "@server.tool(annotations=ToolAnnotations(readOnlyHint=True), structured"
        )
    )
    assert "has changed since it was accepted" in gloveport("tools", "call", "notes.write", '{"name": "a"}').err


@pytest.mark.parametrize("how", ["--writes", "section of a named file", "untrusted section"])
def test_a_server_of_a_command_line_gets_its_options(how: str, project: Path, server: str) -> None:
    section = "[sources.notes]\nwrites = 'allow'\n" if how != "--writes" else ""
    (project / "gloveport.toml").write_text(section)
    given = ["--writes"] if how == "--writes" else ["--config", "gloveport.toml"] if "named" in how else []
    answered = execute("await tools.notes.write({name: 'a'})", f"{sys.executable} {server}", *given)
    if how == "untrusted section":
        assert answered["status"] == "waiting"  # it asks, as every write does that nothing allows
        assert gloveport("config", "trust", "--yes").code == 0
        answered = execute("await tools.notes.write({name: 'a'})", f"{sys.executable} {server}")
    assert answered["value"] == "wrote a"
    listed = gloveport("tools", "list", *(given if how != "--writes" else ()))
    assert ("[sources.notes] has no kind" in listed.err) is (how != "--writes")


def execute(code: str, *args: str) -> dict[str, Any]:
    """Return the structured answer of `gloveport mcp` to one program."""

    async def ask() -> dict[str, Any]:
        start = StdioServerParameters(
            command=COMMAND[0], args=[*COMMAND[1:], "mcp", *args], env=environment(), cwd=Path.cwd()
        )
        async with Client(start) as client:
            return (await client.call_tool("execute", {"code": code})).structured_content or {}

    return asyncio.run(ask())


def test_an_open_graphql_endpoint_needs_no_token_and_a_private_one_says_how_to_allow_it(project: Path) -> None:
    with serving(Library()) as library:
        shut = gloveport("add", f"{library.url}/graphql", "--yes")
        assert (shut.code, "hint: add it with --private if it may reach your own network" in shut.err) == (7, True), (
            shut.err
        )
        added = gloveport("add", f"{library.url}/graphql", "--private", "--yes")
    assert added.code == 0, added.err
    assert "token" not in added.err
