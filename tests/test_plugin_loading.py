"""Which plugins are imported: those that `plugins = [...]` names, and of a project's only what its user has trusted (D7)."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from gloveport import Gloveport, OptionError, SourceConfig
from gloveport.config import load_config
from gloveport.host.plugins.loading import HOOK_NAMES, installed_off, load_plugins
from gloveport.host.plugins.port_plugins import PortPlugins
from gloveport.host.plugins.trust import trust
from gloveport.plugins import hook
from gloveport.plugins.extension_point import ExtensionPoint
from gloveport.policy.credentials.providers import PROVIDERS
from gloveport.sandbox.engines.registry import LOCAL_ENGINES
from gloveport.sources.functions import trusted_imports
from gloveport.sources.kinds import KINDS
from gloveport.surfaces.cli.commands import cli
from tests.plugin_support import install, write_plugin

NOTHING = "@hook\ndef after_run(run): pass\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    before = dict(trusted_imports._guarded)
    yield tmp_path
    trusted_imports._guarded.clear()
    trusted_imports._guarded.update(before)


def states(plugins: list[str]) -> dict[str, str]:
    return {one.name: one.state for one in load_plugins(plugins)}


def test_an_installed_plugin_that_nobody_names_is_listed_and_not_imported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = install(folder / "site", "evil", "raise SystemExit('imported')", monkeypatch)
    Gloveport(config=load_config(), spare=0).close_sync()
    (off,) = [one for one in installed_off([]) if one.name == "evil"]
    assert (off.state, off.origin, off.hooks) == ("off", "evil 1.0 (evil_package)", ())
    shown = CliRunner().invoke(cli, ["plugins"])
    assert "· evil · installed and off · evil 1.0 (evil_package)" in shown.output
    assert not canary.exists()
    assert states(["evil"]) == {"evil": "failed"}
    assert canary.exists(), "the canary shows an import"


def test_a_plugin_of_a_project_is_imported_only_once_its_user_has_trusted_it(folder: Path) -> None:
    canary = folder / "canary"
    plugin = folder / "project" / "mine.py"
    write_plugin(plugin, f"import helper\nopen({str(canary)!r}, 'w').close()\n{NOTHING}")
    (plugin.parent / "helper.py").write_text("VALUE = 1\n")
    Path("gloveport.toml").write_text('plugins = ["./mine.py"]\n')

    def state() -> tuple[str, str]:
        (found,) = load_plugins(load_config().plugins)
        return found.state, found.problem

    assert state() == ("untrusted", f"{folder}/project/gloveport.toml names it, and it is not trusted yet")
    assert not canary.exists()
    trust(load_config().plugins[0])
    assert state() == ("on", "")
    assert canary.exists()
    (plugin.parent / "helper.py").write_text("VALUE = 2\n")
    import sys

    del sys.modules["helper"]
    failed, problem = state()
    assert failed == "failed"
    assert "the plugin mine may not import helper.py: it has changed since you trusted the plugin" in problem
    plugin.write_text(plugin.read_text() + "# changed\n")
    assert state()[0] == "untrusted"
    assert "it has changed since you trusted it" in state()[1]


def test_an_installed_plugin_that_a_project_names_needs_trust_too_and_other_options_ask_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "class Plugin:\n    def __init__(self, options): pass\n    @hook\n    def after_run(self): pass\n"
    canary = install(folder / "site", "audit", text, monkeypatch)
    Path("gloveport.toml").write_text('plugins = [{plugin = "audit", file = "a"}]\n')
    assert [one.state for one in load_plugins(load_config().plugins)] == ["untrusted"]
    assert not canary.exists()
    assert CliRunner().invoke(cli, ["config", "trust", "--yes"]).exit_code == 0
    assert [one.state for one in load_plugins(load_config().plugins)] == ["on"]
    Path("gloveport.toml").write_text('plugins = [{plugin = "audit", file = "/etc/passwd"}]\n')
    assert [one.state for one in load_plugins(load_config().plugins)] == ["untrusted"]


def test_a_projects_file_turns_none_of_the_users_plugins_off(folder: Path) -> None:
    (folder / "config/gloveport").mkdir(parents=True)
    (folder / "config/gloveport/gloveport.toml").write_text('plugins = ["./own.py"]\n')
    write_plugin(folder / "config/gloveport/own.py", NOTHING)
    Path("gloveport.toml").write_text("plugins = []\n")
    (found,) = load_plugins(load_config().plugins)
    assert (found.name, found.state, found.hooks) == ("own", "on", ("after_run",))


BROKEN = {
    "import nothing_like_it\n": "ModuleNotFoundError",
    "raise SystemExit(3)\n": "SystemExit",
    "x = 1\n": "it has no hooks",
    "@hook\ndef on_cal(call): pass\n": "unknown hook 'on_cal'",
    "@hook\ndef on_call(call, policy): pass\n": "policy",
    "@hook(wrapper=True)\ndef on_call(call):\n    yield\n": "its hook on_call is a wrapper",
    "@hook\nasync def on_log(line): pass\n": "its hook on_log is async",
    "@hook\ndef sources(): return {'openapi': 1}\n": "which Gloveport itself has already",
    "@hook\ndef sources(): return 3\n": "returns int, not a mapping",
    "@hook\ndef credentials(): return {'command': 1}\n": "which Gloveport itself has already",
    "@hook\ndef engines():\n    from gloveport.sandbox.engines.registry import ENGINES\n    return [ENGINES['deno']]\n": (
        "which Gloveport itself has already"
    ),
    "@hook\ndef engines(): raise ZeroDivisionError\n": "ZeroDivisionError",
    "class Plugin:\n    def __init__(self, options): raise KeyError('file')\n": "KeyError",
}


@pytest.mark.parametrize("text", BROKEN, ids=list(BROKEN.values()))
def test_a_plugin_that_is_broken_is_named_and_the_others_are_on(
    folder: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    broken = write_plugin(folder / "broken.py", text)
    good = write_plugin(folder / "good.py", NOTHING)
    with caplog.at_level(logging.WARNING, "gloveport"):
        port = Gloveport(plugins=[broken, good], spare=0)
    failed, on = PortPlugins([broken, good]).found
    assert (failed.name, failed.state, on.state) == ("broken", "failed", "on")
    assert BROKEN[text] in failed.problem
    assert "the plugin broken is not on: " in caplog.text
    assert (port.engines, port.problems) == ({}, ())


def test_two_plugins_of_one_name_and_one_that_is_not_installed_are_named(folder: Path) -> None:
    first, second = (write_plugin(folder / f"{place}/same.py", NOTHING) for place in "ab")
    found = load_plugins([first, second, "not_there"])
    assert [one.state for one in found] == ["on", "failed", "failed"]
    assert found[1].problem == "another plugin has the same name"
    assert found[2].problem == "no installed package has a plugin 'not_there'"


def test_a_plugin_in_code_is_an_object_with_hooks() -> None:
    class Sink:
        @hook
        def after_run(self, outcome: object) -> None:
            pass

    (found,) = load_plugins([Sink()])
    assert (found.name, found.state, found.hooks) == ("sink", "on", ("after_run",))


@pytest.mark.parametrize("text", ["plugins = 3", "plugins = [3]", 'plugins = [{file = "x"}]', "[plugins]\nx = 1"])
def test_a_wrong_list_of_plugins_is_an_error_with_its_place(text: str) -> None:
    Path("gloveport.toml").write_text(text)
    with pytest.raises(OptionError, match=r"gloveport\.toml"):
        load_config()


def test_a_kind_that_only_a_plugin_can_have_is_known_when_the_plugins_are(folder: Path) -> None:
    Path("gloveport.toml").write_text('[sources.x]\ncatalogue = "a.txt"\n')
    with pytest.raises(OptionError, match=r"has no kind"):
        load_config()
    Path("gloveport.toml").write_text('plugins = ["./p.py"]\n[sources.x]\ncatalogue = "a.txt"\n')
    (source,) = load_config().sources
    assert (source.kind, source.location) == ("catalogue", str(folder / "project/a.txt"))
    Path("gloveport.toml").write_text('[sources.x]\nopenap = "a.txt"\n')
    with pytest.raises(OptionError, match="did you mean `openapi`"):
        load_config()


def test_the_built_ins_come_through_the_same_registry_and_nobody_takes_their_place() -> None:
    registries: list[ExtensionPoint[object]] = [KINDS, PROVIDERS, LOCAL_ENGINES]  # pyright: ignore
    assert [list(one) for one in registries] == [
        ["openapi", "graphql", "mcp", "functions"],
        ["keyring", "command"],
        ["deno", "quickjs", "cpython", "monty"],
    ]
    for registry in registries:
        taken = next(iter(registry))
        with pytest.raises(OptionError, match="which Gloveport itself has already"):
            registry.with_added("mine", {taken: registry[taken]})
        more = registry.with_added("mine", {"new": registry[taken]})
        assert (more.plugin_of("new"), more.plugin_of(taken), "new" in registry) == ("mine", "", False)
        with pytest.raises(OptionError, match="which the plugin mine has already"):
            more.with_added("other", {"new": registry[taken]})


def test_every_hook_has_a_row_in_the_documentation() -> None:
    page = (Path(__file__).parents[1] / "docs/plugins.md").read_text()
    assert [name for name in HOOK_NAMES if f"| `{name}` |" not in page] == []


def test_a_command_of_a_plugin_runs_and_one_that_fails_names_it(folder: Path) -> None:
    (folder / "config/gloveport").mkdir(parents=True)
    (folder / "config/gloveport/gloveport.toml").write_text('plugins = ["./hello.py"]\n')
    text = """
    import click

    @hook
    def commands():
        @click.command("hello")
        @click.argument("name")
        def hello(name):
            click.echo({"you": "hello you"}[name])
        return [hello]
    """
    write_plugin(folder / "config/gloveport/hello.py", text)
    ran = CliRunner().invoke(cli, ["hello", "you"], standalone_mode=False)
    assert (ran.output, ran.exception) == ("hello you\n", None)
    failed = CliRunner().invoke(cli, ["hello", "nobody"], standalone_mode=False)
    assert str(failed.exception) == "the plugin hello failed in its command hello: KeyError"


def test_a_source_of_a_plugins_kind_in_a_project_needs_trust() -> None:
    from gloveport.sources.trust import needs_trust, what_it_does

    config = SourceConfig("x", "catalogue", "https://example.com/c", settings="/p/gloveport.toml")
    assert needs_trust(config)
    assert what_it_does(config) == "has a plugin open 'https://example.com/c' as catalogue"
