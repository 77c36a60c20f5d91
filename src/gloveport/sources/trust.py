"""Which sources of a project's file may be opened: those that this user has approved once, to the letter (M6).

A project's file comes with a repository that somebody else may have written. What it could harm with (a command to start,
a Python file to import, a secret to send somewhere, writes, private addresses, larger replies) waits until the user has
approved exactly those settings, for exactly that file: change one and it is asked about again. What the user wrote in code
or in his own file needs no approval.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gloveport.config import DEFAULT_RESPONSE_BYTES, SourceConfig
from gloveport.errors import SourceError
from gloveport.folders import data_folder
from gloveport.policy.credentials import default_variable
from gloveport.policy.egress.urls import shown

FILE = "approved-sources.json"


def needs_approval(config: SourceConfig, folder: Path | None = None) -> bool:
    """True when a project's file says so, it could do harm, and this user has not approved it."""
    return bool(config.settings) and not _is_harmless(config) and _digest(config) not in _approved(_file(folder))


def _is_harmless(config: SourceConfig) -> bool:
    """True for what can only read from public addresses, and knows no secret of the user's."""
    runs = not isinstance(config.location, str) or config.kind == "functions"
    reaches = config.allow_private or not config.verify_tls or config.writes or config.trust_annotations
    waiting = default_variable(config.name, "")
    knows = config.credentials or config.env or config.headers or any(name.startswith(waiting) for name in os.environ)
    fills = config.max_response_bytes > DEFAULT_RESPONSE_BYTES  # the service may send that much in each reply
    return not (runs or reaches or knows or fills)


def approve(config: SourceConfig, folder: Path | None = None) -> None:
    """Remembers that this user lets the source be opened; the file is readable by him alone."""
    file = _file(folder)
    shown = {"settings": config.settings, "source": config.name, "does": what_it_does(config)}
    _write(file, {**_approved(file), _digest(config): shown})


def what_it_does(config: SourceConfig) -> str:
    """What opening the source does, as it would be done, with nothing hidden in it."""
    waiting = default_variable(config.name, "")
    implied = {f"env:{name}" for name in os.environ if name.startswith(waiting)}
    secrets = {
        *config.credentials.values(),
        *(value for value in config.env.values() if value.startswith("env:")),
        *implied,
    }
    more = [
        f"gets {', '.join(map(ascii, sorted(secrets)))}" if secrets else "",
        f"with the environment {dict(config.env)!a}" if config.env else "",
        f"with the headers {sorted(config.headers)!a}" if config.headers else "",
        f"with the variables {dict(config.variables)!a}" if config.variables else "",
        f"may write ({', '.join(map(ascii, config.writes))})" if config.writes else "",
        "may reach loopback and private addresses" if config.allow_private else "",
        f"takes replies of {config.max_response_bytes:,} bytes"
        if config.max_response_bytes > DEFAULT_RESPONSE_BYTES
        else "",
        "accepts any certificate" if not config.verify_tls else "",
        "says itself which of its tools only read" if config.trust_annotations else "",
    ]
    if not isinstance(config.location, str):
        does = f"starts {' '.join(ascii(part) for part in config.location)}"
    elif config.kind == "functions":
        does = f"imports {config.location!a}"
    else:
        place = config.base_url or config.location
        does = f"reaches {shown(place) if '://' in place else place!a}"
    return "; ".join([does, *(part for part in more if part)])


def refusal(config: SourceConfig) -> SourceError:
    """What to say about a source that was not approved."""
    message = f"the source {config.name} of {config.settings} {what_it_does(config)}: you have not approved that"
    return SourceError(message, hint=f"look at it; `gloveport tools trust {config.name}` lets it be opened")


def _digest(config: SourceConfig) -> str:
    # Every value: LD_PRELOAD with another value is another program, a base_url is where a secret goes.
    exact: dict[str, Any] = {**asdict(config), "settings": os.path.realpath(config.settings)}
    if config.kind == "functions" and isinstance(config.location, str) and os.path.isfile(config.location):
        exact["content"] = hashlib.sha256(Path(config.location).read_bytes()).hexdigest()  # a changed file is another
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
