"""`gloveport tools` and `gloveport add` as real processes; the sources here are Python files."""

from __future__ import annotations

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.surfaces.command import gloveport

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
    bad = gloveport("tools", "call", "people.greet", '{"nam": 1}')
    assert "there is no `nam` (did you mean `name`?)" in bad.err
    failed = gloveport("tools", "call", "people.fail", "--json")
    assert (failed.code, failed.document["error"]["message"]) == (7, "ValueError: no luck")
    assert "the text of the arguments is not JSON" in gloveport("tools", "call", "people.greet", "{").err
    assert failed.document["error"]["origin"] == "tool"
    assert failed.document["error"]["data"] is None
    assert "did you mean `people`?" in gloveport("tools", "list", "peple").err
    assert "is neither an OpenAPI document" in gloveport("add", "gloveport.toml", "--yes").err
    assert "there is no file nothing.json" in gloveport("add", "nothing.json").err


def test_a_projects_file_is_not_imported_before_it_is_trusted(project: Path) -> None:
    (project / "evil.py").write_text("open('canary', 'w').close()\ndef hi(): pass\n")
    (project / "gloveport.toml").write_text('[sources.evil]\nfunctions = "evil.py"\n')
    listed = gloveport("tools", "list")
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
    refused = gloveport("tools", "list")
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
    assert (told.code, "the source gone" in told.err) == (7, True)
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
        assert "the source silent is still being opened" in called.err
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
