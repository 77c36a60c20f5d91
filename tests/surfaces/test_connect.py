"""`gloveport connect`: writes each client's configuration as that client documents it, and loses nothing."""

import json
import os
import re
import stat
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from gloveport.errors import OptionError
from gloveport.surfaces.cli.connect.entries import with_entry
from gloveport.surfaces.cli.connect.jsonc import parse
from gloveport.surfaces.mcp_clients import CLIENTS
from tests.surfaces.client_schemas import SCHEMAS
from tests.surfaces.command import REPOSITORY, Finished, gloveport, terminal

PROJECT_FILES = {
    "claude-code": ".mcp.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".vscode/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "zed": ".zed/settings.json",
}
USER_FILES = {
    "claude-code": ".claude.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "zed": ".config/zed/settings.json",
}
Connect = Callable[..., Finished]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


@pytest.fixture
def connect(home: Path, project: Path) -> Connect:
    return lambda *args, **env: gloveport("connect", *args, cwd=project, **{"HOME": str(home), **env})


def read(path: Path) -> Any:
    text = path.read_text()
    return tomllib.loads(text) if path.suffix == ".toml" else parse(text).root.data


def entry(path: Path, client: str) -> Any:
    return read(path)[CLIENTS[client].servers]["gloveport"]


def test_every_client_has_a_schema_and_a_file() -> None:
    assert set(CLIENTS) == set(SCHEMAS) == set(PROJECT_FILES) == set(USER_FILES)


@pytest.mark.integration
@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_written_is_what_the_client_documents(client: str, connect: Connect, home: Path, project: Path) -> None:
    schema = jsonschema_rs.validator_for(SCHEMAS[client])
    assert connect(client, "--env", "GITHUB_TOKEN").code == 0
    user = home / USER_FILES[client]
    schema.validate(read(user))
    assert stat.S_IMODE(user.stat().st_mode) == 0o600
    assert os.path.isabs(entry(user, client)["command"])
    if CLIENTS[client].reference is None:
        return
    done = connect(client, "--scope", "project", "--http")
    assert done.code == 0, done.err
    shared = project / PROJECT_FILES[client]
    schema.validate(read(shared))
    assert "GLOVEPORT_TOKEN" in shared.read_text()
    changed = connect(client, "--scope", "project", "--yes", "--json").document
    schema.validate(read(shared))
    assert changed["entry"]["command"] == "gloveport"
    assert "url" not in shared.read_text().lower()


@pytest.mark.parametrize("client", CLIENTS)
def test_what_the_documentation_shows_is_what_the_client_documents(client: str) -> None:
    page = (REPOSITORY / "docs" / "clients.md").read_text()
    section = page.partition(f"\n## {CLIENTS[client].title}\n")[2].partition("\n## ")[0]
    shown = re.findall(r"^```(json|toml)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    assert shown
    for language, text in shown:
        jsonschema_rs.validate(SCHEMAS[client], tomllib.loads(text) if language == "toml" else json.loads(text))
    assert f"`{PROJECT_FILES[client]}`" in section
    assert f"`~/{USER_FILES[client]}`" in section


def test_the_schemas_refuse_a_mixture_and_a_server_of_no_kind() -> None:
    for client, schema in SCHEMAS.items():
        servers = CLIENTS[client].servers
        for wrong in ({}, {"command": "x", "url": "http://x", "httpUrl": "http://x"}, {"command": ["x"]}):
            assert not jsonschema_rs.is_valid(schema, {servers: {"gloveport": wrong}})


@pytest.mark.integration
@pytest.mark.parametrize(
    ("client", "stdio", "http"),
    [
        ("claude-code", {"env": {"A": "${A:-}"}}, {"headers": {"Authorization": "Bearer ${GLOVEPORT_TOKEN:-}"}}),
        ("cursor", {"env": {"A": "${env:A}"}}, {"headers": {"Authorization": "Bearer ${env:GLOVEPORT_TOKEN}"}}),
        ("vscode", {"env": {"A": "${env:A}"}}, {"headers": {"Authorization": "Bearer ${env:GLOVEPORT_TOKEN}"}}),
        ("codex", {"env_vars": ["A"]}, {"bearer_token_env_var": "GLOVEPORT_TOKEN"}),
        ("gemini", {"env": {"A": "$A"}}, {"headers": {"Authorization": "Bearer $GLOVEPORT_TOKEN"}}),
    ],
)
def test_secrets_are_named_and_never_written(
    client: str, stdio: dict[str, Any], http: dict[str, Any], connect: Connect
) -> None:
    secret = {"A": "s3cret", "GLOVEPORT_TOKEN": "s3cret"}
    started = connect(client, "--env", "A", "--print", "--json", **secret)
    served = connect(client, "--http", "--print", "--json", **secret)
    assert started.document["entry"].items() >= stdio.items()
    assert served.document["entry"].items() >= http.items()
    assert "s3cret" not in started.out + started.err + served.out + served.err
    refused = connect(client, "--env", "A=s3cret")
    assert (refused.code, "s3cret" in refused.err) == (2, False)
    assert "give the name, not the value" in refused.err


@pytest.mark.integration
def test_zed_gets_no_token_in_its_file_and_keeps_its_comments(connect: Connect, home: Path) -> None:
    path = home / USER_FILES["zed"]
    path.parent.mkdir(parents=True)
    before = (
        "// Zed settings\n//\n// For information see the documentation.\n{\n"
        '  "theme": {\n    "mode": "system", // follows the desktop\n    "dark": "One Dark",\n  },\n'
        '  /* "context_servers": {}, */\n  "context_servers": {\n'
        '    // mine\n    "docs": { "command": "docs", "args": [], "env": {} },\n  },\n}\n'
    )
    path.write_text(before)
    refused = connect("zed", "--http", GLOVEPORT_TOKEN="s3cret")
    assert (refused.code, path.read_text()) == (2, before)
    assert "it would be in the file" in refused.err
    done = connect("zed", "--env", "GITHUB_TOKEN", GITHUB_TOKEN="s3cret")
    assert done.code == 0, done.err
    assert "start it where GITHUB_TOKEN is set" in done.err
    text = path.read_text()
    added = [line for line in text.splitlines() if line not in before.splitlines()]
    assert [line for line in text.splitlines() if line not in added] == before.splitlines()
    assert set(entry(path, "zed")) == {"command", "args"}
    assert read(path)["context_servers"]["docs"] == {"command": "docs", "args": [], "env": {}}
    assert "s3cret" not in text + done.out + done.err


@pytest.mark.integration
def test_the_variables_of_configured_sources_are_handed_on(connect: Connect, project: Path) -> None:
    (project / "gloveport.toml").write_text(
        '[sources.github]\nopenapi = "github.json"\ncredentials = {token = "env:GH_TOKEN"}\n'
        '[sources.shop]\nopenapi = "shop.json"\n'
    )
    document = connect("codex", "--print", "--json", GLOVEPORT_SHOP_KEY="k", GLOVEPORT_OTHER_KEY="o").document
    assert document["entry"]["env_vars"] == ["GH_TOKEN", "GLOVEPORT_SHOP_KEY"]


@pytest.mark.integration
def test_print_shows_a_whole_file_and_writes_nothing(connect: Connect, home: Path, project: Path) -> None:
    done = connect("cursor", "--print")
    assert done.code == 0
    assert parse(done.out).root.data["mcpServers"]["gloveport"]["args"] == ["mcp"]
    assert str(home / ".cursor/mcp.json") in done.err
    assert tomllib.loads(connect("codex", "--print").out)["mcp_servers"]["gloveport"]["args"] == ["mcp"]
    assert (list(home.iterdir()), list(project.iterdir())) == ([], [])


@pytest.mark.integration
def test_a_file_is_shown_backed_up_and_keeps_everything_else(connect: Connect, project: Path) -> None:
    before = '{\n  // mine\n  "inputs": [],\n  "servers": {\n    "other": {"type": "stdio", "command": "x"}, // theirs\n  },\n}\n'
    (project / ".vscode").mkdir()
    path = project / ".vscode/mcp.json"
    path.write_text(before)
    path.chmod(0o640)
    done = connect("vscode", "--scope", "project")
    assert done.code == 0, done.err
    assert '+    "gloveport": {' in done.err
    assert not [line for line in done.err.splitlines() if line.startswith("  -") and not line.startswith("  --- ")]
    (backup,) = path.parent.glob("mcp.json.bak-*")
    assert backup.read_text() == before
    assert str(backup) in done.err
    assert {stat.S_IMODE(file.stat().st_mode) for file in (path, backup)} == {0o640}
    text = path.read_text()
    assert "// mine\n" in text
    assert '"other": {"type": "stdio", "command": "x"}, // theirs\n' in text
    again = connect("vscode", "--scope", "project", "--json").document
    assert (again["changed"], again["backup"]) == (False, None)
    assert path.read_text() == text


@pytest.mark.integration
def test_another_entry_is_replaced_only_when_asked_and_keeps_what_a_person_added(connect: Connect, home: Path) -> None:
    path = home / ".gemini/settings.json"
    path.parent.mkdir()
    old = {
        "theme": "Dracula",
        "mcpServers": {"gloveport": {"command": "old", "args": [], "env": {"MINE": "1"}, "trust": False, "timeout": 9}},
    }
    path.write_text(json.dumps(old))
    refused = connect("gemini", "--env", "A")
    assert refused.code == 2
    assert "has another `gloveport`" in refused.err
    assert read(path) == old
    assert connect("gemini", "--env", "A", "--yes").code == 0
    assert read(path)["theme"] == "Dracula"
    assert entry(path, "gemini").items() >= {"args": ["mcp"], "trust": False, "timeout": 9}.items()
    assert entry(path, "gemini")["env"] == {"MINE": "1", "A": "$A"}
    assert connect("gemini", "--http", "--yes").code == 0
    assert set(entry(path, "gemini")) == {"httpUrl", "headers", "trust", "timeout"}


@pytest.mark.integration
def test_on_a_terminal_the_question_is_asked(home: Path, project: Path) -> None:
    path = home / ".cursor/mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"gloveport": {"command": "old"}}}')
    with terminal("connect", "cursor", HOME=str(home)) as shown:
        shown.until(r"Replace it\? \[y/N\] ")
        shown.press(b"n\n")
        code, _ = shown.rest()
    assert (code, entry(path, "cursor")) == (130, {"command": "old"})
    with terminal("connect", "cursor", HOME=str(home)) as shown:
        shown.until(r"Replace it\? \[y/N\] ")
        shown.press(b"y\n")
        code, _ = shown.rest()
    assert (code, entry(path, "cursor")["args"]) == (0, ["mcp"])
    path.write_text('{"mcpServers": {"gloveport": {"command": "old"}}}')
    with terminal("connect", "cursor", HOME=str(home), NO_COLOR="1") as shown:
        shown.until(r"Replace it\? \[y/N\] ")
        shown.press(b"\x03")
        code, rest = shown.rest()
    assert (code, "✗ cancelled: the command was interrupted" in rest) == (130, True)


@pytest.mark.integration
def test_a_codex_file_keeps_its_comments_and_tables(connect: Connect, home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    before = (
        '# mine\nmodel = "o9" # best\n\n[mcp_servers.docs]\ncommand = "docs" # theirs\n\n[profiles.fast]\nmodel = "o1"\n'
    )
    path.write_text(before)
    assert connect("codex").code == 0
    text = path.read_text()
    for line in before.splitlines():
        assert line in text.splitlines()
    assert entry(path, "codex")["args"] == ["mcp"]
    path.write_text(text.replace('args = ["mcp"]', 'args = ["mcp"] # ours\ntool_timeout_sec = 9'))
    assert connect("codex", "--http", "--yes").code == 0
    assert set(entry(path, "codex")) == {"url", "bearer_token_env_var", "tool_timeout_sec"}
    assert read(path)["mcp_servers"]["docs"] == {"command": "docs"}


@pytest.mark.integration
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"mcpServers": {', "line 1, column 17"),
        ('{"mcpServers": []}', "`mcpServers` is not an object"),
        ("[]", "it is not a JSON object"),
        ('{"mcpServers": {}, "mcpServers": {}}', "is there twice"),
        ('{"mcpServers": {"gloveport": {"args": ["x" /* why */]}}}', "a comment is in the way of the change"),
    ],
)
def test_what_cannot_be_edited_safely_is_left_alone_and_the_snippet_shown(
    text: str, said: str, connect: Connect, project: Path
) -> None:
    path = project / ".mcp.json"
    path.write_text(text)
    done = connect("claude-code", "--scope", "project", "--yes")
    assert done.code == 2
    assert said in done.err
    assert '"command": "gloveport"' in done.err
    assert "nothing was changed" in done.err
    assert path.read_text() == text
    assert list(project.iterdir()) == [path]
    document = connect("claude-code", "--scope", "project", "--json").document
    assert (document["ok"], document["error"]["data"]["entry"]["command"]) == (False, "gloveport")


@pytest.mark.integration
def test_broken_toml_and_bytes_that_are_no_text_are_left_alone(connect: Connect, home: Path) -> None:
    path = home / ".codex/config.toml"
    path.parent.mkdir()
    for content in (b"[mcp_servers\n", b"mcp_servers = 3\n", b"a = '\xff'\n"):
        path.write_bytes(content)
        assert connect("codex").code == 2
        assert path.read_bytes() == content


@pytest.mark.integration
def test_a_link_out_of_the_project_is_not_followed(connect: Connect, home: Path, project: Path) -> None:
    (home / "elsewhere").mkdir()
    (project / ".cursor").symlink_to(home / "elsewhere")
    (home / "target.json").write_text("{}")
    (project / ".mcp.json").symlink_to(home / "target.json")
    for client in ("cursor", "claude-code"):
        done = connect(client, "--scope", "project")
        assert done.code == 2
        assert "it is a link that leads out of" in done.err
    assert list((home / "elsewhere").iterdir()) == []
    assert (home / "target.json").read_text() == "{}"


@pytest.mark.integration
def test_a_link_within_the_home_stays_a_link(connect: Connect, home: Path) -> None:
    (home / "dotfiles").mkdir()
    (home / "dotfiles/claude.json").write_text('{"numStartups": 3}')
    (home / ".claude.json").symlink_to("dotfiles/claude.json")
    assert connect("claude-code").code == 0
    assert (home / ".claude.json").is_symlink()
    assert read(home / "dotfiles/claude.json")["numStartups"] == 3
    assert entry(home / "dotfiles/claude.json", "claude-code")["args"] == ["mcp"]


@pytest.mark.integration
def test_the_folders_that_clients_are_told_to_use_are_used(connect: Connect, tmp_path: Path) -> None:
    for client, variable, name in (
        ("codex", "CODEX_HOME", "config.toml"),
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json"),
        ("vscode", "XDG_CONFIG_HOME", "Code/User/mcp.json"),
        ("zed", "XDG_CONFIG_HOME", "zed/settings.json"),
    ):
        folder = tmp_path / variable
        assert connect(client, **{variable: str(folder)}).code == 0
        assert entry(folder / name, client)["args"] == ["mcp"]


@pytest.mark.integration
@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("http://127.0.0.1:9000/mcp", 0),
        ("http://[::1]:9000/mcp", 0),
        ("https://gloveport.example.com/mcp", 0),
        ("http://gloveport.example.com/mcp", 2),
        ("https://user:pass@example.com/mcp", 2),
        ("ftp://example.com", 2),
        ("http://[bad", 2),
        ("cursor", 2),
    ],
)
def test_a_token_is_sent_only_where_nobody_listens(url: str, code: int, connect: Connect) -> None:
    done = connect("cursor", "--url", url, "--print", "--json")
    assert done.code == code
    if code == 0:
        assert done.document["entry"]["url"] == url
        assert "GLOVEPORT_TOKEN" in done.document["warnings"][0]


@pytest.mark.integration
def test_a_command_that_is_not_on_the_path_is_reported(connect: Connect) -> None:
    done = connect("cursor", "--scope", "project", "--print", PATH="/nowhere")
    assert "is not on your PATH" in done.err


def test_entries_are_put_into_every_shape_of_toml() -> None:
    new = {"command": "g", "args": ["mcp"]}
    for text in (
        "",
        "mcp_servers = {}\n",
        'mcp_servers = {other = {command = "x"}}\n',
        '[mcp_servers]\nother = {command = "x"}\n',
        'mcp_servers.other.command = "x"\n',
        '[mcp_servers.a]\ncommand = "a"\n[z]\ny = 1\n[mcp_servers.b]\ncommand = "b"\n',
        '[mcp_servers.gloveport]\ncommand = "old"\n[mcp_servers.gloveport.tools.x]\napproval = "never"\n',
        '[mcp_servers]\n[mcp_servers.gloveport.env]\nA = "1"\n',
    ):
        changed, had = with_entry(text, "toml", ("mcp_servers", "gloveport"), new)
        servers = tomllib.loads(changed)["mcp_servers"]
        assert servers["gloveport"].items() >= new.items()
        assert had == ("gloveport" in text)
        for name, table in tomllib.loads(text).get("mcp_servers", {}).items():
            assert servers[name].keys() >= table.keys()


def test_an_entry_that_is_no_table_is_replaced_whole() -> None:
    changed, had = with_entry('{"s": {"g": null}}', "json", ("s", "g"), {"command": "x"})
    assert (parse(changed).root.data, had) == ({"s": {"g": {"command": "x"}}}, True)
    with pytest.raises(OptionError):
        with_entry("s = 3\n", "toml", ("s", "g"), {"command": "x"})


@pytest.mark.integration
def test_sources_are_passed_on_and_their_absence_is_reported(connect: Connect, project: Path) -> None:
    without = connect("claude-code", "--print", "--json").document
    assert "no sources are configured" in without["warnings"][0]
    (project / "mine.py").write_text("def three() -> int:\n    return 3\n")
    given = connect("claude-code", "mine.py", "--print", "--json").document
    assert given["entry"]["args"][-2:] == ["mcp", str(project / "mine.py")]
    assert given["warnings"] == []
    shared = connect("claude-code", "mine.py", "--scope", "project", "--print", "--json").document
    assert shared["entry"]["args"] == ["mcp", "mine.py"]
    assert connect("claude-code", "no.py", "--print").code == 2
    assert connect("claude-code", "mine.py", "--http", "--print").code == 2
