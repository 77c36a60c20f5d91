"""What a project's file may do only after its user has approved it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gloveport.config import SourceConfig
from gloveport.sources.trust import needs_trust, trust, what_it_does

PROJECT = {"settings": "/project/gloveport.toml"}


@pytest.fixture(autouse=True)
def _own_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))


def source(**options: Any) -> SourceConfig:
    return SourceConfig(
        **{"name": "shop", "kind": "openapi", "location": "https://shop.example/api.json", **PROJECT, **options}
    )


def test_reading_from_a_public_address_without_a_secret_needs_no_approval() -> None:
    assert not needs_trust(source())
    assert not needs_trust(source(base_url="https://other.example", include=("a.*",)))
    assert not needs_trust(source(labels=["private", "untrusted", "outbound"]))


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "mcp", "location": ("server",)},
        {"kind": "functions", "location": "/project/tools.py"},
        {"credentials": {"token": "env:SHOP_TOKEN"}},
        {"kind": "mcp", "env": {"A": "b"}},
        {"headers": {"Authorization": "a secret of the user's own file"}},
        {"writes": ("*",)},
        {"allow_private": True},
        {"verify_tls": False},
        {"trust_annotations": True},
        {"max_response_bytes": 10**12},
        {"timeout_seconds": 61},
        {"changes_yours": True},
        {"labels": ["not untrusted"]},
        {"labels": {"issues.*": ["private", "not outbound"]}},
    ],
    ids=str,
)
def test_whatever_else_it_could_harm_with_waits(options: dict[str, Any]) -> None:
    assert needs_trust(source(**options))
    assert not needs_trust(source(**options, settings=""))
    trust(source(**options))
    assert not needs_trust(source(**options))
    assert needs_trust(source(**options, base_url="https://elsewhere.example"))


def test_a_python_file_that_has_changed_is_another_one(tmp_path: Path) -> None:
    file = tmp_path / "tools.py"
    file.write_text("def a(): pass")
    config = source(kind="functions", location=str(file))
    trust(config)
    assert not needs_trust(config)
    file.write_text("def a(): evil()")
    assert needs_trust(config)


def test_a_secret_that_would_go_along_by_its_name_waits_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLOVEPORT_SHOP_BEARER", "secret")
    assert needs_trust(source())
    assert "env:GLOVEPORT_SHOP_BEARER" in what_it_does(source())
    assert "secret" not in what_it_does(source()).replace("GLOVEPORT", "")
    assert not needs_trust(source(name="other"))


def test_everything_that_matters_is_shown_before_it_is_approved() -> None:
    shown = what_it_does(
        source(
            writes=("orders.*",),
            allow_private=True,
            verify_tls=False,
            credentials={"token": "env:T"},
            base_url="https://evil.example",
        )
    )
    for part in ("https://evil.example", "orders.*", "private addresses", "any certificate", "env:T"):
        assert part in shown
