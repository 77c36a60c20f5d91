"""Which commands of project files may be started: those that this user has approved once, to the letter (M6).

A project's file comes with a repository that somebody else may have written. What it wants to start is started only after
the user approved exactly that argv and environment, for exactly that file: change one and it is asked about again. What
the user wrote in code or in his own file needs no approval.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.folders import data_folder

FILE = "approved-commands.json"


def needs_approval(config: SourceConfig, folder: Path | None = None) -> bool:
    """True when the source is a command from a project's file that this user has not approved."""
    if isinstance(config.location, str) or not config.settings:
        return False
    return _digest(config) not in _approved(_file(folder))


def approve(config: SourceConfig, folder: Path | None = None) -> None:
    """Remembers that this user lets the command be started; the file is readable by him alone."""
    file = _file(folder)
    approved = _approved(file)
    shown = {"settings": config.settings, "source": config.name, "argv": list(config.location), "env": sorted(config.env)}
    _write(file, {**approved, _digest(config): shown})


def refusal(config: SourceConfig) -> SourceError:
    """What to say about a command that was not approved; the command is shown as it would be started, escaped."""
    argv = " ".join(ascii(part) for part in config.location)
    message = f"the source {config.name} of {config.settings} would start a command that you have not approved: {argv}"
    hint = f"look at it; `gloveport tools approve {config.name}` lets it be started"
    return SourceError(message, hint=hint, data={"argv": list(config.location), "env": sorted(config.env)})


def _digest(config: SourceConfig) -> str:
    # The values too: LD_PRELOAD, NODE_OPTIONS or PATH with another value is another program.
    exact = [os.path.realpath(config.settings), list(config.location), sorted(config.env.items())]
    return hashlib.sha256(json.dumps(exact, ensure_ascii=True).encode()).hexdigest()


def _file(folder: Path | None) -> Path:
    return (folder or data_folder()) / FILE


def _approved(file: Path) -> dict[str, Any]:
    """What was approved; a file that can't be read approves nothing."""
    try:
        found = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(file: Path, approved: dict[str, Any]) -> None:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")  # 0600 from the start
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as out:
            json.dump(approved, out, indent=2)
        os.replace(name, file)
    except BaseException:
        os.unlink(name)
        raise
