"""The files of a project that its functions may import, with their digests: what a user trusts together with the functions.

Nothing is parsed or run to find them. A file is among them when its name is a word in one that already is: in an `import`,
in a text for `importlib`, or in a comment. So is every file of a folder whose name is such a word. That is more than is
imported, which does no harm: a file of these that changes is refused only when something imports it.
"""

from __future__ import annotations

import hashlib
import os
import re
import site
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import EXTENSION_SUFFIXES, SOURCE_SUFFIXES
from pathlib import Path

import gloveport
from gloveport.errors import OptionError

MAX_FILES = 2000
MAX_TOTAL_BYTES = 128 * 1024 * 1024
_WORD = re.compile(rb"[A-Za-z_\x80-\xff][0-9A-Za-z_\x80-\xff]*+")
_SUFFIXES = (*SOURCE_SUFFIXES, *EXTENSION_SUFFIXES)


def project_folders(location: str, settings: str) -> tuple[str, ...]:
    """Return the folders whose files need trust: that of the project's settings, and that of the functions' file."""
    folders = {os.path.realpath(Path(settings).parent)}
    if os.path.isfile(location):
        folders.add(os.path.realpath(Path(location).parent))
    return tuple(sorted(folders))


def below(path: str, folders: tuple[str, ...]) -> bool:
    """Return whether a file lies in one of the folders, by its name or by where a link leads, and is not a library's."""
    for name in {os.path.abspath(path), os.path.realpath(path)}:
        if any(_inside(name, folder) for folder in folders) and not any(_inside(name, own) for own in _libraries()):
            return True
    return False


def _inside(path: str, folder: str) -> bool:
    return path.startswith(os.path.join(folder, ""))


@cache
def _libraries() -> tuple[str, ...]:
    """Return the folders of installed libraries: this interpreter's own, and Gloveport. They may lie in a project."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    base = {"base": sys.base_prefix, "platbase": sys.base_exec_prefix}
    paths = {sysconfig.get_path(name, vars=variables) for name in names for variables in (None, base)}
    paths.update(site.getsitepackages(), [site.getusersitepackages()] if site.ENABLE_USER_SITE else [])
    return tuple(os.path.realpath(path) for path in (*paths, Path(gloveport.__file__).parent))


def importable_files(location: str, settings: str) -> dict[str, str]:
    """Return the digest of each file, by its path, that the functions at `location` of a project may import."""
    folders = project_folders(location, settings)
    search = dict.fromkeys((*folders, *(os.path.realpath(path) for path in sys.path if below(f"{path}/x", folders))))
    found: dict[str, str] = {}
    words: set[bytes] = set()
    size = 0
    pending = [os.path.realpath(location)] if os.path.isfile(location) else []
    words.update(_words(location.encode()) if not pending else ())
    while pending or not found:
        for path in pending:
            data = _content(path)
            size += len(data)
            found[path] = hashlib.sha256(data).hexdigest()
            words.update(_words(data) if path.endswith(tuple(SOURCE_SUFFIXES)) else ())
        if len(found) > MAX_FILES or size > MAX_TOTAL_BYTES:
            message = f"{location} may import more than {MAX_FILES:,} files or {MAX_TOTAL_BYTES // 1024 // 1024} MiB"
            raise OptionError(message, hint="put it into a folder of its own, with a gloveport.toml and what it imports")
        names = {word.decode("utf-8", "replace") for word in words}
        nearby = {os.path.dirname(path): None for path in found}
        pending = [path for folder in {**search, **nearby} for path in _named(folder, names, folders)]
        pending = [path for path in dict.fromkeys(pending) if path not in found]
        if not pending:
            break
    return found


def _words(data: bytes) -> set[bytes]:
    return set(_WORD.findall(data))


def _named(folder: str, names: set[str], folders: tuple[str, ...], *, all_files: bool = False) -> Iterator[str]:
    """Yield the files in a folder whose names are among the words, and everything in folders whose names are."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
    except OSError:
        return
    for entry in entries:
        name = entry.name.partition(".")[0]
        if entry.is_dir():
            if entry.name in names and not entry.is_symlink() and below(f"{entry.path}/x", folders):
                yield from _named(entry.path, names, folders, all_files=True)
        elif entry.name.endswith(_SUFFIXES) and (all_files or name in names or name == "__init__") and entry.is_file():
            yield os.path.realpath(entry.path)


def _content(path: str) -> bytes:
    try:
        if os.stat(path).st_size > MAX_TOTAL_BYTES:
            return b""  # more than may be trusted: no file has this digest
        return Path(path).read_bytes()
    except OSError as error:
        raise OptionError(f"{path} can't be read: {error.strerror}") from None
