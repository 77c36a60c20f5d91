"""Plugins for the tests: files, and packages that look installed, with real entry points."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

IMPORT = "from gloveport.plugins import Additions, hook\n"


def write_plugin(path: Path, text: str) -> str:
    """Write a plugin, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(IMPORT + textwrap.dedent(text))
    return str(path)


def install(folder: Path, name: str, text: str, monkeypatch: pytest.MonkeyPatch | None = None) -> Path:
    """Install a package with an entry point of its own name into a folder; return the file that its import leaves behind.

    With `monkeypatch`, this process finds it; another one does with the folder in PYTHONPATH.
    """
    canary = folder / f"{name}.imported"
    about = folder / f"{name}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(f"[gloveport]\n{name} = {name}_package\n")
    start = f"from pathlib import Path\nPath({str(canary)!r}).touch()\n"
    (folder / f"{name}_package.py").write_text(start + IMPORT + textwrap.dedent(text))
    if monkeypatch is not None:
        monkeypatch.syspath_prepend(folder)
    return canary
