"""A project's file that was found, not named, may tighten the user's settings; what loosens them waits for trust (M6)."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport
from gloveport.config import SANDBOX_KEYS, TABLES, Config, load_config
from gloveport.errors import OptionError
from gloveport.loosening import trust_settings
from gloveport.types import Limits

DEFAULTS = asdict(Limits())


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def load(project: str, user: str = "") -> Config:
    Path("user.toml").write_text(user)
    Path("gloveport.toml").write_text(project)
    return load_config(user=Path("user.toml").absolute())


def ignored(config: Config) -> list[str]:
    return [each.name for each in config.ignored]


def test_every_setting_is_known_here() -> None:
    assert TABLES[:8] == ("sources", "limits", "sandbox", "rules", "egress", "policy", "approvals", "agents")
    assert TABLES[8:] == ("store", "serve", "sessions", "packages", "plugins"), (
        "plugins need trust one by one: see test_plugin_loading"
    )
    assert SANDBOX_KEYS == ("minimum", "allow_eval", "allow_wasm", "engines", "remote")


@pytest.mark.parametrize("name", DEFAULTS)
def test_a_limit_can_be_lowered_and_not_raised(name: str) -> None:
    default = DEFAULTS[name]
    raised = load(f"[limits]\n{name} = {default + 1}\n")
    assert (ignored(raised), raised.limits) == ([f"limits.{name}"], {})
    assert Gloveport(config=raised, spare=0).limits == Limits()
    for value in (default, default // 2):
        lowered = load(f"[limits]\n{name} = {value}\n")
        assert (ignored(lowered), lowered.limits) == ([], {name: value})


def test_the_users_own_limit_counts_not_the_default() -> None:
    below = load("[limits]\nmax_calls = 9\n", "[limits]\nmax_calls = 5\n")
    assert (ignored(below), below.limits, below.origins["limits.max_calls"]) == (
        ["limits.max_calls"],
        {"max_calls": 5},
        f"{Path.cwd()}/user.toml:2",
    )
    above = load("[limits]\nmax_calls = 9000\n", "[limits]\nmax_calls = 9001\n")
    assert (ignored(above), above.limits) == ([], {"max_calls": 9000})


@pytest.mark.parametrize(
    ("project", "user", "loosens"),
    [
        ("minimum = 'none'", "", True),
        ("minimum = 'kernel'", "", False),
        ("minimum = 'full'", "", False),
        ("minimum = 'kernel'", "minimum = 'full'", True),
        ("minimum = 'none'", "minimum = 'none'", False),
        ("minimum = 'odd'", "", True),
        ("minimum = ['full']", "", True),
        ("minimum.x = 'full'", "", True),
        ("allow_eval = true", "", True),
        ("remote.url = 'https://elsewhere.example'\nremote.token = 'env:T'", "", True),
        ("allow_eval = false", "", False),
        ("allow_eval = true", "allow_eval = true", False),
        ("allow_eval = false", "allow_eval = true", False),
        ("allow_wasm = true", "", True),
        ("allow_wasm = true", "allow_wasm = false", True),
        ("allow_wasm = 1", "", True),
        ("allow_wasm = 'false'", "", True),
        ("engines = ['quickjs']", "", True),
        ("engines = ['quickjs']", "engines = ['monty']", True),
        ("engines = ['quickjs']", "engines = ['quickjs']", False),
    ],
)
def test_the_sandbox_can_be_made_stronger_and_not_weaker(project: str, user: str, loosens: bool) -> None:
    config = load(f"[sandbox]\n{project}\n", f"[sandbox]\n{user}\n")
    assert bool(config.ignored) == loosens
    alone = load("", f"[sandbox]\n{user}\n")
    if loosens:
        assert config.sandbox == alone.sandbox
    else:
        assert config.sandbox == load(f"[sandbox]\n{project}\n", f"[sandbox]\n{user}\n").sandbox != {}


@pytest.mark.parametrize("value", ["nan", "inf", "'5'", "true", "[5]", "1979-05-27"])
def test_a_limit_that_is_no_number_is_refused_with_its_place(value: str) -> None:
    with pytest.raises(OptionError, match=r"gloveport\.toml:2: max_calls must be a whole number"):
        load(f"[limits]\nmax_calls = {value}\n")


def test_what_is_trusted_is_exactly_that() -> None:
    text = "[limits]\nmax_calls = 5000\nwall_seconds = 5\n[sandbox]\nallow_eval = true\n"
    config = load(text)
    assert (ignored(config), config.limits) == (["limits.max_calls", "sandbox.allow_eval"], {"wall_seconds": 5})
    assert config.project is not None
    trust_settings(config.project, config.ignored)
    again = load(text)
    assert (ignored(again), again.limits, again.sandbox) == (
        [],
        {"max_calls": 5000, "wall_seconds": 5},
        {"allow_eval": True},
    )
    assert load(text.replace("wall_seconds = 5", "wall_seconds = 4")).loosening_trusted  # it only tightens
    for changed in (text.replace("5000", "5001"), text + "allow_wasm = true\n", text.replace("allow_eval = true\n", "")):
        assert not load(changed).loosening_trusted
        assert "max_calls" not in load(changed).limits
    assert load(text).loosening_trusted


def test_the_same_settings_of_another_file_are_not_trusted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "[sandbox]\nallow_eval = true\n"
    config = load(text)
    assert config.project is not None
    trust_settings(config.project, config.ignored)
    other = folder / "other"
    other.mkdir()
    (other / "gloveport.toml").write_text(text)
    monkeypatch.chdir(other)
    assert ignored(load_config(user=folder / "user.toml")) == ["sandbox.allow_eval"]


def test_a_file_that_is_named_needs_no_trust(folder: Path) -> None:
    load("[sandbox]\nminimum = 'none'\nallow_eval = true\n[limits]\nmax_calls = 5000\n")
    named = load_config(folder / "gloveport.toml", user=folder / "user.toml")
    assert (named.ignored, named.sandbox, named.limits) == (
        (),
        {"minimum": "none", "allow_eval": True},
        {"max_calls": 5000},
    )


def test_a_setting_is_reported_with_its_place_and_yours() -> None:
    (only,) = load("[limits]\nmemory_mb = 4096\n").ignored
    assert only.place == f"{Path.cwd()}/gloveport.toml:2"
    assert (only.shown, only.reason) == ("limits.memory_mb = 4096", "yours is 256")


def test_an_unknown_key_is_still_a_mistake() -> None:
    with pytest.raises(OptionError, match="did you mean `minimum`"):
        load("[sandbox]\nminimun = 'full'\n")
    with pytest.raises(OptionError, match="there is no key `host`"):
        load("[serve]\nhost = '0.0.0.0'\n")


def test_a_project_names_no_issuer_whose_tokens_count() -> None:
    theirs = "[serve]\nissuer = 'https://evil.example'\nresource = 'https://glove.example'\n"
    yours = "[serve]\nissuer = 'https://login.example'\nresource = 'https://glove.example'\nagents = {a = 'b'}\n"
    assert load(theirs).serve.issuer == ""
    for project in (theirs, "[serve]\nagents = {mallory = 'b'}\n", "[serve.agents]\nmallory = 'b'\n"):
        merged = load(project, yours).serve
        assert (merged.issuer, merged.agents) == ("https://login.example", {"a": "b"})


def test_a_change_of_the_users_own_source_waits(folder: Path) -> None:
    own: dict[str, Any] = {"user": '[sources.api]\nopenapi = "https://a.example/x.json"\nexclude = ["orders.*"]\n'}
    touched = load("[sources.api]\nexclude = []\n", **own)
    assert touched.sources[0].changes_yours
    assert not load("", **own).sources[0].changes_yours
    assert not load('[sources.other]\nopenapi = "https://a.example/x.json"\n', **own).sources[1].changes_yours
