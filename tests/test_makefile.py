"""What the targets of the Makefile do."""

import subprocess

import pytest

from tests.surfaces.command import REPOSITORY


def _commands(target: str) -> str:
    make = ["make", "--dry-run", "--always-make", "PYTHON=python3", target]
    return subprocess.run(make, cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=True).stdout


@pytest.mark.integration
def test_run_installs_only_what_running_needs() -> None:
    assert "--editable '.[types]'\n" in _commands("run")
    assert "[dev]" not in _commands("run")
    assert "[dev]" in _commands("setup")
