"""Which sources of a project's settings may be opened: those that this user has trusted, with exactly these settings (M6).

A project's file comes with a repository that somebody else may have written. A source in it that could do harm (by a
command to start, a Python file to import, a secret to send somewhere, writes, private addresses, larger or later replies, a
change of the user's own source) waits until the user has trusted exactly those settings in exactly that file. Any change of
them asks again. What the user wrote in code or in their own settings file needs no trust.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gloveport.config import DEFAULT_RESPONSE_BYTES, DEFAULT_TIMEOUT_SECONDS, SOURCE_KINDS, SourceConfig
from gloveport.errors import SourceError
from gloveport.policy.credentials.environment import default_variable
from gloveport.policy.credentials.vault import stored_names
from gloveport.rules.labels import loosens
from gloveport.sources.functions.importable_files import importable_files, project_folders
from gloveport.sources.functions.trusted_imports import TrustedFiles
from gloveport.trust_store import digest_of, ever_trusted, record, trusted
from gloveport.urls import shown


def needs_trust(config: SourceConfig, folder: Path | None = None) -> bool:
    """Return whether a project's file names the source, it could do harm, and this user has not trusted it."""
    return bool(config.settings) and not _is_harmless(config) and trusted(_digest(config), folder) is None


def _is_harmless(config: SourceConfig) -> bool:
    """Return whether the source can only read from public addresses, and gets no secret of the user's."""
    runs = not isinstance(config.location, str) or config.kind not in ("openapi", "graphql", "mcp")  # or a plugin's
    reaches = config.allow_private or not config.verify_tls or config.writes or config.trust_annotations
    fills = config.max_response_bytes > DEFAULT_RESPONSE_BYTES  # its service may answer each of many calls with that much
    delays = config.timeout_seconds > DEFAULT_TIMEOUT_SECONDS
    changes = config.changes_yours or loosens(config.labels)
    return not (runs or reaches or gets_secret(config) or fills or delays or changes)


def gets_secret(config: SourceConfig) -> bool:
    """Return whether the source may get a secret of the user's: configured, in the environment, or stored."""
    prefix = default_variable(config.name, "")
    knows = config.credentials or config.env or config.headers or any(name.startswith(prefix) for name in os.environ)
    return bool(knows) or any(name.startswith(f"{config.name}.") for name in stored_names())


def trust(config: SourceConfig, folder: Path | None = None, *, files: Mapping[str, str] | None = None) -> None:
    """Record that this user lets the source be opened, and import these files (by default, as they are now)."""
    about = {"settings": config.settings, "source": config.name, "does": what_it_does(config)}
    files = files_now(config) if files is None else files
    record(_digest(config), {**about, "files": files} if files else about, folder)


def files_now(config: SourceConfig) -> dict[str, str]:
    """Return the files of the project that a source may import, with their digests; none unless it imports Python."""
    if config.kind != "functions" or not isinstance(config.location, str) or not config.settings:
        return {}
    return importable_files(config.location, config.settings)


def trusted_files(config: SourceConfig, folder: Path | None = None) -> TrustedFiles | None:
    """Return the files that the user has trusted a source of a project to import; None for a source of the user's own."""
    if config.kind != "functions" or not isinstance(config.location, str) or not config.settings:
        return None
    about = trusted(_digest(config), folder) or {}
    digests = about.get("files") or {}
    return TrustedFiles(config.name, project_folders(config.location, config.settings), digests)


def what_it_does(config: SourceConfig) -> str:
    """Describe what opening the source does, with every value spelled out and nothing hidden."""
    prefix = default_variable(config.name, "")
    implied = {f"env:{name}" for name in os.environ if name.startswith(prefix)}
    implied |= {f"stored:{name}" for name in stored_names() if name.startswith(f"{config.name}.")}
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
        f"waits {config.timeout_seconds:,g} seconds for a reply"
        if config.timeout_seconds > DEFAULT_TIMEOUT_SECONDS
        else "",
        "changes a source of your own settings" if config.changes_yours else "",
        f"with the tools {list(config.include)!a} without {list(config.exclude)!a}" if config.changes_yours else "",
        "accepts any certificate" if not config.verify_tls else "",
        "says itself which of its tools only read" if config.trust_annotations else "",
        f"has the flow labels {dict(config.labels)!a}" if loosens(config.labels) else "",
    ]
    if not isinstance(config.location, str):
        does = f"starts {' '.join(ascii(part) for part in config.location)}"
    elif config.kind == "functions":
        does = f"imports {config.location!a}"
    elif config.kind not in SOURCE_KINDS:
        does = f"has a plugin open {config.location!a} as {config.kind}"
    else:
        place = config.base_url or config.location
        does = f"reaches {shown(place) if '://' in place else place!a}"
    return "; ".join([does, *(part for part in more if part)])


def untrusted_error(config: SourceConfig) -> SourceError:
    """Return the error for a source that the user has not trusted."""
    about = {"settings": config.settings, "source": config.name}
    state = "is not trusted yet"
    if ever_trusted({**about, "does": what_it_does(config)}):
        state = f"has changed since you trusted it ({config.location} is not what it was)"
    elif ever_trusted(about):
        state = "has other settings than those that you trusted"
    message = f"the source {config.name} of {config.settings} {state}: it {what_it_does(config)}"
    return SourceError(message, hint=f"review it; `gloveport tools trust {config.name}` lets it be opened")


def _digest(config: SourceConfig) -> str:
    # Every value counts: another LD_PRELOAD starts another program, and base_url is where a secret goes.
    exact: dict[str, Any] = {**asdict(config), "settings": os.path.realpath(config.settings)}
    if not config.changes_yours:
        del exact["changes_yours"]  # as in what users trusted before there was such a field
    if not config.undo:
        del exact["undo"]  # as before
    if not config.labels:
        del exact["labels"]  # as before
    if config.kind == "functions" and isinstance(config.location, str) and os.path.isfile(config.location):
        exact["content"] = hashlib.sha256(Path(config.location).read_bytes()).hexdigest()  # a changed file is another
    return digest_of(exact)
