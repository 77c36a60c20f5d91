"""The names of the tools that each source had when it was last open, on disk, for the completion of a shell.

A key press waits for this: this module imports little, and finds a source's file by the source's name and
its settings file alone.
"""

from __future__ import annotations

import os
from binascii import crc32
from collections.abc import Iterable
from pathlib import Path

from gloveport.folders import cache_folder


def lists_folder() -> Path:
    """Return the folder of everything that is kept about the tools of sources."""
    return cache_folder() / "tools"


def keep_names(settings: str, source: str, addresses: Iterable[str]) -> None:
    """Keep the addresses of a source's tools; `settings` is the project's file that has the source, or empty.

    Names that a shell would take for more than a word are left out.
    """
    key, words = _key(settings, source), (each for each in addresses if each.replace(".", "_").isidentifier())
    write_whole(_path(key), "\n".join((key, *words)))


def kept_names(settings: str, source: str) -> list[str]:
    """Return the addresses of the tools that the source had when it was last open, however long ago that is."""
    key = _key(settings, source)
    try:
        first, *addresses = _path(key).read_text("utf-8").splitlines()
    except (OSError, ValueError):
        return []
    return addresses if first == key else []


def write_whole(path: Path, text: str) -> None:
    """Replace a file at once: readers get the old text or the new one."""
    import tempfile  # not for a key press

    handle, name = tempfile.mkstemp(dir=path.parent)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(name, path)


def _key(settings: str, source: str) -> str:
    return f"{source} {settings!r}"


def _path(key: str) -> Path:
    return lists_folder() / f"{crc32(key.encode()):08x}.names"  # `hashlib` takes long to load; the file has the key itself
