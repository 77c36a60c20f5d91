"""`gloveport.toml` is read into a `Config`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gloveport.config import Config, SourceConfig, load_config
from gloveport.errors import OptionError
from gloveport.folders import find_project


def load(folder: Path, project: str, user: str = "") -> Config:
    (folder / "user.toml").write_text(user)
    (folder / "gloveport.toml").write_text(project)
    return load_config(folder / "gloveport.toml", user=folder / "user.toml")


def test_a_source_is_read_with_all_its_settings(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        """
        [sources.github]
        openapi = "https://example.com/api.json"
        base_url = "https://example.com/v3"
        headers = { "X-Api-Version" = "2022-11-28" }
        include = ["issues.*"]
        exclude = ["issues.delete"]
        timeout_seconds = 5
        [sources.github.credentials]
        bearer = "env:GITHUB_TOKEN"
        """,
    )
    assert config.sources == (
        SourceConfig(
            "github",
            "openapi",
            "https://example.com/api.json",
            base_url="https://example.com/v3",
            headers={"X-Api-Version": "2022-11-28"},
            include=("issues.*",),
            exclude=("issues.delete",),
            credentials={"bearer": "env:GITHUB_TOKEN"},
            timeout_seconds=5,
        ),
    )


def test_the_project_is_merged_over_the_user_key_by_key_and_each_value_knows_its_place(tmp_path: Path) -> None:
    config = load(
        tmp_path,
        '[sources.api]\nbase_url = "http://b"\n\n[limits]\nmax_calls = 5\n',
        '[sources.api]\nopenapi = "https://a/x.json"\nbase_url = "http://a"\n[limits]\nmax_calls = 9\nmemory_mb = 64\n',
    )
    assert (config.sources[0].location, config.sources[0].base_url) == ("https://a/x.json", "http://b")
    assert config.limits == {"max_calls": 5, "memory_mb": 64}
    assert config.origins["sources.api.base_url"] == f"{tmp_path}/gloveport.toml:2"
    assert config.origins["sources.api.openapi"] == f"{tmp_path}/user.toml:2"
    assert config.origins["limits.memory_mb"] == f"{tmp_path}/user.toml:6"


def test_what_a_project_that_was_found_touches_is_the_projects_and_what_was_named_is_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = '[sources.mine]\nopenapi = "a.json"\n[sources.touched]\nopenapi = "b.json"\n'
    named = load(tmp_path, '[sources.touched]\nbase_url = "http://b"\n', own)
    assert {source.name: source.settings for source in named.sources} == {"mine": "", "touched": ""}
    monkeypatch.chdir(tmp_path)
    found = load_config(user=tmp_path / "user.toml")
    assert {source.name: source.settings for source in found.sources} == {
        "mine": "",
        "touched": str(tmp_path / "gloveport.toml"),
    }


def test_labels_of_a_source_are_a_list_or_lists_by_pattern_and_a_wrong_one_is_refused_with_its_place(
    tmp_path: Path,
) -> None:
    file = tmp_path / "gloveport.toml"
    for text, read in (
        ('["private"]', {"*": ("private",)}),
        ('{ "issues.*" = ["untrusted"], "*" = ["not private"] }', {"issues.*": ("untrusted",), "*": ("not private",)}),
    ):
        file.write_text(f'[sources.hub]\nmcp = "https://hub.example"\nlabels = {text}\n')
        (source,) = load_config(file, user=tmp_path / "none").sources
        assert source.labels == read
    for text in ('["secret"]', '"private"', '{ "*" = "private" }', "[1]", "true"):
        file.write_text(f'[sources.hub]\nmcp = "https://hub.example"\nlabels = {text}\n')
        with pytest.raises(OptionError, match=r"gloveport\.toml:3: .*label"):
            load_config(file, user=tmp_path / "none")


def test_a_project_may_say_that_a_source_is_of_another_kind(tmp_path: Path) -> None:
    config = load(tmp_path, '[sources.a]\nmcp = ["server", "--x"]\n', '[sources.a]\nopenapi = "a.json"\n')
    assert (config.sources[0].kind, config.sources[0].location) == ("mcp", ("server", "--x"))


def test_relative_files_start_from_the_file_that_names_them(tmp_path: Path) -> None:
    config = load(tmp_path, '[sources.a]\nopenapi = "specs/a.json"\n[sources.b]\nfunctions = "package.module"\n')
    assert [source.location for source in config.sources] == [str(tmp_path / "specs/a.json"), "package.module"]


def test_settings_in_code_are_checked_like_those_of_a_file() -> None:
    assert SourceConfig("a", "openapi", "x", writes="allow").writes == ("*",)  # pyright: ignore[reportArgumentType]
    assert SourceConfig("a", "openapi", "x", include=["b.*"]).include == ("b.*",)  # pyright: ignore[reportArgumentType]
    for wrong in ({"writes": True}, {"writes": "yes"}, {"include": "issues.*"}, {"kind": "So ap"}):
        with pytest.raises(OptionError):
            SourceConfig(**{"name": "a", "kind": "openapi", "location": "x", **wrong})  # pyright: ignore[reportArgumentType]


def test_no_file_is_no_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_config(user=tmp_path / "none.toml").sources == ()
    (tmp_path / "gloveport.toml").write_text("[limits]\nmax_calls = 3\n")
    (tmp_path / "below").mkdir()
    assert find_project(tmp_path / "below") == tmp_path / "gloveport.toml"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[sources.a]\nopenapi = "x"\nbasurl = "y"\n',
            ":3: there is no key `basurl` in [sources.a]; did you mean `base_url`?",
        ),
        ("[source.a]\nopenapi = 1\n", ": there is no key `source`; did you mean `sources`?"),
        (
            '[sources.a]\nbase_url = "y"\nopenapy = "x"\n',
            ":3: there is no key `openapy` in [sources.a]; did you mean `openapi`?",
        ),
        ('[sources.a]\nurl = "x"\n', ":2: [sources.a] has no kind"),
        ('[sources.a]\nopenapi = "x"\ngraphql = "y"\n', "[sources.a] has more than one kind: openapi and graphql"),
        ("[sources.a]\nopenapi = 5\n", ":2: openapi of [sources.a] must be a URL or a file, not 5"),
        ("[sources.a]\nmcp = [1]\n", ":2: mcp of [sources.a] must be a URL, or a command as a list of texts, not [1]"),
        (
            '[sources.a]\nopenapi = "x"\nallow_private = "yes"\n',
            "allow_private of [sources.a] must be true or false, not 'yes'",
        ),
        ('[sources.a]\nopenapi = "x"\ntimeout_seconds = -1\n', "must be a number of seconds, not -1"),
        ('[sources.a]\nopenapi = "x"\ntimeout_seconds = true\n', "must be a number of seconds, not True"),
        ('[sources.a]\nopenapi = "x"\n[sources.a.headers]\nA = 1\n', ":4: headers of [sources.a] must be a table of texts"),
        ("sources = 3\n", "sources must be a table"),
        ("[sandbox]\nminimun = 'full'\n", ":2: there is no key `minimun` in [sandbox]; did you mean `minimum`?"),
        (
            "[limits]\nmax_calls = 5\nwall_second = 5\n",
            ":3: there is no key `wall_second` in [limits]; did you mean `wall_seconds`?",
        ),
        ("[limits]\nmemory_mb = 4\n", ":2: memory_mb must be at least 16, not 4"),
        ('[limits]\nwall_seconds = "5s"\n', ":2: wall_seconds must be a number of seconds, not '5s'"),
        ('[sources.a]\nopenapi = "x"\ntimeout = 9\n', "`timeout` in [sources.a]; did you mean `timeout_seconds`?"),
        ('[sources.a]\nopenapi = "x"\nprivate = true\n', "`private` in [sources.a]; did you mean `allow_private`?"),
        ('[sources.a]\nopenapi = "x"\nmax_bytes = 9\n', "`max_bytes` in [sources.a]; did you mean `max_response_bytes`?"),
        ("x = \n", "is not valid TOML: Invalid value (at line 1"),
    ],
)
def test_a_mistake_is_reported_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(OptionError) as caught:
        load(tmp_path, text)
    assert message in caught.value.message


def test_a_file_of_another_user_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gloveport.toml").write_text("[limits]\nmax_calls = 3\n")
    assert find_project(tmp_path) == tmp_path / "gloveport.toml"
    monkeypatch.setattr("os.getuid", lambda: 4242)
    owned = (tmp_path / "gloveport.toml").stat().st_uid == 0
    assert (find_project(tmp_path) is None) != owned


@pytest.mark.parametrize("nested", ["[" * 5000, "{a=" * 5000])
def test_settings_nested_without_end_are_refused(tmp_path: Path, nested: str) -> None:
    with pytest.raises(OptionError, match="nested too deeply"):
        load(tmp_path, f"[sources.a]\nmcp = {nested}")


def test_a_value_that_may_be_a_secret_is_not_shown(tmp_path: Path) -> None:
    for key in ("credentials", "headers", "env"):
        for written in ('"secret-word"', '["secret-word"]', '{ token = ["secret-word"] }'):
            file = tmp_path / "gloveport.toml"
            file.write_text(f'[sources.a]\nopenapi = "x"\n{key} = {written}\n')
            with pytest.raises(OptionError, match=f"{key} of .sources.a. must be a table of texts$") as caught:
                load_config(file)
            assert "secret-word" not in f"{caught.value.message} {caught.value.hint}"
