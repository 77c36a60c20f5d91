"""Fixtures for the tests of commands: a user without settings, in an empty project."""

from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)
    return project
