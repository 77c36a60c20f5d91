"""What `gloveport doctor` looks at beside the sandbox: configured sources, clients, the clock, the disk of the caches."""

from __future__ import annotations

import logging
import os
import shutil
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import gloveport
from gloveport.config import Config, load_config
from gloveport.errors import GloveportError
from gloveport.folders import cache_folder
from gloveport.host.port import Gloveport
from gloveport.surfaces.mcp_clients import CLIENTS, SERVER_NAME
from gloveport.types import MIB

MIN_FREE_BYTES = 64 * MIB
MAX_CLOCK_LAG_SECONDS = 24 * 3600


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found; `fix` says what to do if it is not `ok`. The sandbox does not depend on it."""

    name: str
    ok: bool
    detail: str
    fix: str | None = None


async def surroundings() -> tuple[Finding, ...]:
    """Return the findings; sources are opened for that, for a few seconds."""
    try:
        settings = load_config()
    except GloveportError as error:
        sources = [Finding("settings", False, error.message, error.hint)]
    else:
        sources = [finding async for finding in _sources(settings)]
    return (*sources, *_clients(), _clock(), _disk())


async def _sources(settings: Config) -> AsyncIterator[Finding]:
    if not settings.sources:
        yield Finding("sources", True, "none are configured here; `gloveport add` adds one")
        return
    quiet = logging.NullHandler()
    logging.getLogger("gloveport").addHandler(quiet)
    port = Gloveport(config=settings, spare=0)
    try:
        await port.connect(naming="")
        for config in settings.sources:
            problem = next((one for one in port.problems if one.broken and one.source == config.name), None)
            count = sum(tool.source == config.name for tool in port.catalog.tools)
            detail = problem.message if problem else f"{count:,} tool{'s' * (count != 1)}"
            yield Finding(config.name, problem is None, detail, problem.hint if problem else None)
    finally:
        await port.close()
        logging.getLogger("gloveport").removeHandler(quiet)


def _clients() -> Iterator[Finding]:
    """Yield the clients whose configuration is on this machine, and whether they start Gloveport."""
    found = False
    for name, client in CLIENTS.items():
        for path in {client.place("user", Path.cwd()).path, client.place("project", Path.cwd()).path}:
            try:
                text = path.read_text("utf-8", "replace")
            except OSError:
                continue
            found = True
            connected = f"{SERVER_NAME} mcp" in text or f'"{SERVER_NAME}"' in text or f".{SERVER_NAME}]" in text
            fix = None if connected else f"`gloveport connect {name}` connects it"
            yield Finding(client.title, connected, f"{'connected' if connected else 'not connected'}: {path}", fix)
    if not found:
        yield Finding("clients", True, "none of those that `gloveport connect` knows were found")


def _clock() -> Finding:
    installed = Path(gloveport.__file__).stat().st_mtime
    ok = time.time() > installed - MAX_CLOCK_LAG_SECONDS
    fix = None if ok else "set the clock: certificates and tokens are checked against it"
    return Finding(
        "clock", ok, time.strftime("%Y-%m-%d %H:%M:%S %Z") + ("" if ok else ", before Gloveport was installed"), fix
    )


def _disk() -> Finding:
    folder = cache_folder()
    place = next(each for each in (folder, *folder.parents) if each.is_dir())
    free = shutil.disk_usage(place).free
    writable = os.access(place, os.W_OK)
    ok = free >= MIN_FREE_BYTES and writable
    fix = None if ok else f"free at least {MIN_FREE_BYTES // MIB} MB, and check its permissions"
    return Finding(
        "caches", ok, f"{free // MIB:,} MB free in {place}{'' if writable else ', which can not be written'}", fix
    )
