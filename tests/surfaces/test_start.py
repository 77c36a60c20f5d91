"""The first steps: `gloveport` alone in a terminal, `init` and `completion`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.shell_completion import get_completion_class

from gloveport.surfaces.cli.commands import cli
from gloveport.surfaces.cli.options import complete_tools
from gloveport.surfaces.cli.start import completion
from gloveport.surfaces.own_command import as_typed
from tests.surfaces.command import COMMAND, environment, gloveport, terminal

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("columns", [80, 40])
def test_alone_in_a_terminal_it_says_what_it_is_what_is_here_and_what_to_do_next(folder: Path, columns: int) -> None:
    with terminal(columns=columns) as opened:
        code, shown = opened.rest()
    assert code == 0
    assert "Gloveport runs programs" in shown
    assert "No sources are configured here" in shown
    assert "gloveport add --help" in shown
    assert max(map(len, re.sub(r"\x1b\[[0-9;]*m", "", shown).splitlines())) <= columns
    (folder / "gloveport.toml").write_text('[sources.shop]\nopenapi = "shop.json"\n')
    with terminal(columns=columns) as opened:
        _, shown = opened.rest()
    assert "shop  openapi" in shown
    assert "gloveport tools list" in shown


def test_a_broken_file_is_part_of_the_page(folder: Path) -> None:
    (folder / "gloveport.toml").write_text("[sources\n")
    with terminal() as opened:
        code, shown = opened.rest()
    shown = " ".join(shown.split())
    assert (code, "is not valid TOML" in shown, "gloveport config show" in shown) == (0, True, True)


def test_in_a_pipe_it_prints_its_help() -> None:
    assert "Usage: gloveport COMMAND" in gloveport().out


def test_init_writes_a_file_with_comments_and_never_overwrites_one(folder: Path) -> None:
    done = gloveport("init", "--json")
    text = (folder / "gloveport.toml").read_text()
    assert done.document == {"ok": True, "file": str(folder / "gloveport.toml")}
    assert tomllib.loads(text) == {}
    assert len(text.splitlines()) <= 30
    uncommented = "\n".join(line[2:] for line in text.splitlines()[2:] if line.startswith("# "))
    (folder / "gloveport.toml").write_text(uncommented)
    assert gloveport("config", "show").code == 0  # every line of it is a setting that exists
    again = gloveport("init")
    assert (again.code, "exists already" in again.err) == (2, True)
    assert (folder / "gloveport.toml").read_text() == uncommented


NEED_MORE = re.compile(
    r"example\.com|npx|gloveport (connect|init|serve|open|mcp|doctor|completion|approvals (?!list|standing)|agents remove"
    r"|audit verify --head|tools accept|remove shop --scope|auth (?!list)|snippets (?!list)|sessions (?!list)|packages (?!list)|run --plan|runs (?!list|prune|--)|store)"
)
"""Examples that need an API, a registry, an account, a client, a waiting call, a run or a shell of the user's, that never end, or that a test has already."""


def test_the_examples_of_all_help_pages_work_where_init_has_put_its_example(folder: Path) -> None:
    assert gloveport("init", "--example", "--yes", "--json").document["example"] == str(folder / "shop.py")
    assert gloveport("init", "--example").code == 2
    command = folder / "bin" / "gloveport"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {COMMAND[0]} -m gloveport "$@"\n')
    command.chmod(0o755)
    env = environment(PATH=f"{command.parent}:{os.environ['PATH']}")
    tried = 0
    for example in [each for each in _examples(cli) if not NEED_MORE.search(each)]:
        yes = " --yes" if re.search("gloveport (policy set|config trust|remove)", example) else ""
        line = f"{example}{yes}"
        done = subprocess.run(["bash", "-c", line], env=env, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, f"{line}\n{done.stderr}"
        tried += 1
    assert tried > 30


def _examples(command: click.Command) -> list[str]:
    """Return the examples of a command and of those below it; what removes the example comes last."""
    below = command.commands.values() if isinstance(command, click.Group) else ()
    found = [*getattr(command, "examples", ()), *(each for one in below for each in _examples(one))]
    return sorted(found, key=lambda each: each.startswith("gloveport remove"))


def test_completion_answers_a_shell() -> None:
    scripts = {shell: gloveport("completion", shell).out for shell in ("bash", "zsh", "fish")}
    assert all("_GLOVEPORT_COMPLETE" in script for script in scripts.values())
    assert 'string split --max 1 ","' in scripts["fish"]  # a description may have commas
    words = {"_GLOVEPORT_COMPLETE": "bash_complete", "COMP_WORDS": "gloveport tools se", "COMP_CWORD": "2"}
    run = "import sys; sys.argv = ['gloveport']; from gloveport.surfaces.cli.main import main; main()"
    done = subprocess.run(
        [COMMAND[0], "-c", run], env=environment(**words), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "plain,search\n"


def test_a_shell_completes_tools_and_sources_and_starts_no_server(tmp_path: Path) -> None:
    server, started = tmp_path / "server.py", tmp_path / "started"
    server.write_text(
        "from pathlib import Path\nfrom mcp.server.mcpserver import MCPServer\n"
        f"Path({str(started)!r}).touch()\nserver = MCPServer('s')\n"
        "@server.tool()\ndef remember(text: str) -> str: return text\nserver.run()\n"
    )
    (tmp_path / "people.py").write_text("def greet() -> str:\n    return 'hello'\n\n\ndef grow() -> str:\n    return ''\n")
    (tmp_path / "gloveport").mkdir()
    (tmp_path / "gloveport/gloveport.toml").write_text(
        f'[sources.people]\nfunctions = "{tmp_path / "people.py"}"\n'
        f'[sources.memory]\nmcp = ["{sys.executable}", "{server}"]\n'
    )
    names = ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME")
    home = dict.fromkeys(names, str(tmp_path))
    assert _completed(tmp_path, home, "gloveport tools describe p") == []  # nothing was open yet
    for source in ("people", "memory"):
        assert gloveport("tools", "list", source, **home).code == 0
    started.unlink()
    for line, wanted in (
        ("gloveport tools describe p", ["people.greet", "people.grow"]),
        ("gloveport tools call tools.people.gre", ["tools.people.greet"]),
        ("gloveport tools describe memory.rem", ["memory.remember"]),
        ("gloveport tools list pe", ["people"]),
        ("gloveport tools search --source ", ["people", "memory"]),
        ("gloveport remove m", ["memory"]),
        ("gloveport connect z", ["zed"]),
        ("gloveport tools de", ["describe"]),
    ):
        assert _completed(tmp_path, home, line) == wanted, line
    assert not started.exists()
    for text, wanted in (("[sources", []), ("[sources]\nteam = {}\n[sources.'people']", ["team", "people"])):
        (tmp_path / "gloveport/gloveport.toml").write_text(text)
        assert _completed(tmp_path, home, "gloveport tools list ") == wanted


def test_a_key_press_loads_neither_the_command_line_nor_anything_else_that_takes_long() -> None:
    words = {"_GLOVEPORT_COMPLETE": "bash_complete", "COMP_WORDS": "gloveport tools call x", "COMP_CWORD": "3"}
    run = """if True:
        import sys; sys.argv = ["gloveport"]
        before = set(sys.modules)  # of the search for secrets, in `make canaries`
        from gloveport.surfaces.cli.main import main
        slow = {"click", "gloveport.errors", "hashlib", "tempfile", "tomllib", "typing"}
        try: main()
        finally: print(sorted(slow & set(sys.modules) - before))
        """
    done = subprocess.run(
        [COMMAND[0], "-c", run], env=environment(**words), capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.split() == ["[]"], done.stderr


@pytest.mark.parametrize(("shell", "place"), [("bash", "3"), ("zsh", "3"), ("fish", "shop.re")])
def test_the_name_of_a_tool_is_answered_as_click_would(
    shell: str, place: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "known_tools", lambda config, start: [f"{start}fund", f"{start}turn"])
    takers = {(g, name) for g, group in cli.commands.items() for name, one in getattr(group, "commands", {}).items()
              if any(each._custom_shell_complete is complete_tools for each in one.params)}  # fmt: skip
    assert takers == completion.TOOL_COMMANDS
    monkeypatch.setenv("_GLOVEPORT_COMPLETE", f"{shell}_complete")
    for line, at, quick in [
        *((f"gloveport {' '.join(each)} shop.re", place, True) for each in completion.TOOL_COMMANDS),
        ("gloveport tools call shop.refund --no", "--no" if shell == "fish" else "4", False),
        ("gloveport tools describe --at", "--at" if shell == "fish" else "3", False),
        ("gloveport tools de", "de" if shell == "fish" else "2", False),
    ]:
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", at)
        assert completion.complete_tool() is quick, line
        if quick:
            expected = get_completion_class(shell)(cli, {}, "gloveport", "_GLOVEPORT_COMPLETE").complete()
            expected = expected.replace("plain,", "") if shell == "bash" else expected  # as our script of bash wants it
            assert capsys.readouterr().out == f"{expected}\n"


def _completed(folder: Path, home: dict[str, str], line: str) -> list[str]:
    """Return what bash offers behind this line, by the function of the script that `completion bash` prints."""
    command = folder / "bin/gloveport"
    command.parent.mkdir(exist_ok=True)
    command.write_text(f"#!/bin/sh\nexec {COMMAND[0]} -c 'from gloveport.surfaces.cli.main import main; main()' \"$@\"\n")
    command.chmod(0o755)
    script = folder / "completion.bash"
    script.write_text(gloveport("completion", "bash").out)
    empty = ' ""' if line.endswith(" ") else ""
    words = f"COMP_WORDS=({line}{empty}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))"
    asked = f'{words}; _gloveport_completion gloveport; printf "%s\\n" "${{COMPREPLY[@]}}"'
    done = subprocess.run(
        ["bash", "-euc", f"source {script}; {asked}"],
        env=environment(**home, PATH=f"{command.parent}:{os.environ['PATH']}"),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_packages_are_installed_with_the_pip_of_this_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pip = Path(sys.executable).with_name("pip")
    other = tmp_path / "pip"
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    for path, shown in ((pip.parent, "pip"), (tmp_path, str(pip))):
        monkeypatch.setenv("PATH", str(path))
        monkeypatch.chdir(tmp_path)
        assert as_typed("pip install 'gloveport[quickjs]'") == f"{shown} install 'gloveport[quickjs]'"
        assert as_typed("run `pip install x` where pip install y") == f"run `{shown} install x` where pip install y"
    monkeypatch.setattr(sys, "executable", str(tmp_path / "bin" / "python3"))
    assert as_typed("pip uninstall x") == "bin/python3 -m pip uninstall x"


def test_printed_commands_can_be_pasted_where_the_path_has_no_gloveport(tmp_path: Path) -> None:
    """The command is started by its path, as after `make run`."""
    command = Path(sys.executable).with_name("gloveport")
    (tmp_path / "hello.py").write_text("def hello() -> str:\n    return 'hello'\n")
    env = environment(PATH="/usr/bin:/bin", **dict.fromkeys(("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "HOME"), str(tmp_path)))

    def paste(line: str) -> str:
        done = subprocess.run(
            ["bash", "-c", line], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode != 127, done.stderr
        return done.stdout + done.stderr

    said = paste(f"{command} tools list") + paste(f"{command} init") + paste(f"{command} add hello.py --yes")
    printed = re.findall(rf"`({re.escape(str(command))} [^`]*)`|next: (.*)", said)
    assert len(printed) == 3
    for quoted, line in printed:
        assert (quoted or line).startswith(f"{command} ")
        assert "Usage: " in (shown := paste(quoted or line)) or "hello.hello" in shown


def test_no_message_names_a_command_that_the_path_does_not_lead_to(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("gloveport")
    place = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    said = ""
    for words in (
        *("sources", "packages list", "agents list", "auth list", "sessions list", "help", "tools approve x", "tools list"),
        *("tools call a.b", "tools search x", "remove x", "policy explain a.b", "run nofile.ts", "doctor", "runs show abc"),
    ):
        done = subprocess.run(
            [command, *words.split()], cwd=tmp_path, env=place, capture_output=True, text=True, timeout=120, check=False
        )
        said += done.stdout + done.stderr
    assert said.count(f"{command} ") > 10
    assert not re.search(r"(?:`|: )gloveport (?!COMMAND)", said), said
