"""Which sources of a project's file may be opened: those that this user has approved once, to the letter (M6).

A project's file comes with a repository that somebody else may have written. What could harm before anything is called (a
command to start, a Python file to import, a secret to send somewhere) waits until the user has approved exactly those
settings, for exactly that file: change one and it is asked about again. What the user wrote in code or in his own file
needs no approval.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.folders import data_folder

FILE = "approved-sources.json"


def needs_approval(config: SourceConfig, folder: Path | None = None) -> bool:
    """True when a project's file says so, it could do harm, and this user has not approved it."""
    harmless = isinstance(config.location, str) and config.kind != "functions" and not config.credentials and not config.env
    return bool(config.settings) and not harmless and _digest(config) not in _approved(_file(folder))


def approve(config: SourceConfig, folder: Path | None = None) -> None:
    """Remembers that this user lets the source be opened; the file is readable by him alone."""
    file = _file(folder)
    shown = {"settings": config.settings, "source": config.name, "does": what_it_does(config)}
    _write(file, {**_approved(file), _digest(config): shown})


def what_it_does(config: SourceConfig) -> str:
    """What opening the source does, as it would be done, with nothing hidden in it."""
    secrets = sorted({*config.credentials.values(), *(value for value in config.env.values() if value.startswith("env:"))})
    sends = f"; it gets {', '.join(map(ascii, secrets))}" if secrets else ""
    if not isinstance(config.location, str):
        return f"starts {' '.join(ascii(part) for part in config.location)}{sends}"
    if config.kind == "functions":
        return f"imports {config.location!a}"
    return f"reaches {config.base_url or config.location!a}{sends}"


def refusal(config: SourceConfig) -> SourceError:
    """What to say about a source that was not approved."""
    message = f"the source {config.name} of {config.settings} {what_it_does(config)}: you have not approved that"
    return SourceError(message, hint=f"look at it; `gloveport tools approve {config.name}` lets it be opened")


def _digest(config: SourceConfig) -> str:
    # Every value: LD_PRELOAD with another value is another program, a base_url is where a secret goes.
    exact = {**asdict(config), "settings": os.path.realpath(config.settings)}
    return hashlib.sha256(json.dumps(exact, sort_keys=True, default=list).encode()).hexdigest()


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
