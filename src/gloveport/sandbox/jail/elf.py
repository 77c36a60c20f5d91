"""Which shared libraries a program needs, read from its ELF headers without running it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_MACHINES = {62: "x86_64", 183: "aarch64"}


class ElfError(ValueError):
    """A file is no 64-bit ELF program for this kind of machine, or a library that it needs is missing."""


@dataclass(frozen=True, slots=True)
class Elf:
    """What the headers of a program or library say."""

    machine: str
    interpreter: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Needs:
    """The interpreter and the libraries of a program: where a loader without a cache will look for each, and where it is.

    `from_cache`: at least one of them is found only through the loader's cache, where it lies.
    """

    interpreter: str | None
    libraries: tuple[tuple[str, str], ...]
    from_cache: bool


def read(path: str) -> Elf:
    """The headers of an ELF file."""
    with open(path, "rb") as file:
        head = file.read(64)
        if len(head) < 64 or head[:6] != b"\x7fELF\x02\x01":
            raise ElfError(f"{path} is not a 64-bit little-endian ELF file")
        machine = struct.unpack_from("<H", head, 18)[0]
        table, size, count = *struct.unpack_from("<Q", head, 32), *struct.unpack_from("<HH", head, 54)
        file.seek(table)
        raw = file.read(size * count)
        segments = [struct.unpack_from("<IIQQQQQ", raw, size * row) for row in range(count)]

        def content(offset: int, length: int) -> bytes:
            file.seek(offset)
            return file.read(length)

        interpreter, dynamic = None, b""
        for kind, _flags, offset, _vaddr, _paddr, length, _memory in segments:
            if kind == _PT_INTERP:
                interpreter = content(offset, length).rstrip(b"\0").decode()
            elif kind == _PT_DYNAMIC:
                dynamic = content(offset, length)
        tags = [(tag, value) for tag, value in struct.iter_unpack("<QQ", dynamic[: len(dynamic) // 16 * 16]) if tag]
        strings = next((value for tag, value in tags if tag == _DT_STRTAB), 0)

        def text(value: int) -> str:
            address = strings + value
            for kind, _flags, offset, vaddr, _paddr, length, _memory in segments:
                if kind == _PT_LOAD and vaddr <= address < vaddr + length:
                    return content(offset + address - vaddr, 4096).split(b"\0", 1)[0].decode()
            raise ElfError(f"{path} has a dynamic section that points nowhere")

        needed = tuple(text(value) for tag, value in tags if tag == _DT_NEEDED)
        search = ":".join(text(value) for tag, value in tags if tag in (_DT_RPATH, _DT_RUNPATH))
    origin = os.path.dirname(os.path.realpath(path))
    search = search.replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
    return Elf(_MACHINES.get(machine, "other"), interpreter, needed, tuple(filter(None, search.split(":"))))


def needs(program: str, extensions: Iterable[str] = ()) -> Needs:
    """What the loader will load for a program: its interpreter, and its libraries with theirs, each once.

    It may load `extensions` later. What they need and this machine doesn't have is left out: they can't be loaded here.
    """
    top = read(program)
    cache = dict(_cache_entries())
    found: dict[str, tuple[str, str, bool]] = {}
    waiting = [(name, top, True) for name in top.needed]
    waiting += [(name, wanted_by, False) for wanted_by in map(read, extensions) for name in wanted_by.needed]
    while waiting:
        name, wanted_by, must = waiting.pop(0)
        if name in found or (top.interpreter and name == os.path.basename(top.interpreter)):
            continue
        place = _locate(name, wanted_by, top, cache)
        if place is None and must:
            raise ElfError(f"the shared library {name} is not on this machine")
        if place is None:
            continue
        found[name] = place
        library = read(place[1])
        waiting += [(next_name, library, must) for next_name in library.needed]
    libraries = tuple((place, host) for place, host, _ in found.values())
    return Needs(top.interpreter, libraries, any(cached for _, _, cached in found.values()))


def default_directories(machine: str) -> tuple[str, ...]:
    """Where the loader looks without being told (Debian's multiarch places first)."""
    multiarch = f"{machine}-linux-gnu"
    return (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def _locate(name: str, wanted_by: Elf, top: Elf, cache: dict[str, list[str]]) -> tuple[str, str, bool] | None:
    # A jail has no ld.so.cache, and the program lies elsewhere in it than $ORIGIN says: what is not found by default
    # is laid beside libc, where the loader looks when all else fails, and where no path of the host shows.
    defaults = default_directories(top.machine)
    beside = next((folder for folder in defaults if os.path.exists(f"{folder}/libc.so.6")), "/lib")
    for folder in (*wanted_by.search, *top.search):
        if _fits(path := os.path.join(folder, name), top):
            return (path if folder in defaults else os.path.join(beside, name)), path, False
    for folder in defaults:
        if _fits(path := os.path.join(folder, name), top):
            return path, path, False
    for path in cache.get(name, []):
        if _fits(path, top):
            return os.path.join(beside, name), path, True
    return None


def _fits(path: str, top: Elf) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        return read(path).machine == top.machine
    except (ElfError, OSError):
        return False


def _cache_entries(path: str = "/etc/ld.so.cache") -> Iterator[tuple[str, list[str]]]:
    """Library name and places, from the loader's cache (format glibc-ld.so.cache1.1); nothing where there is none."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError:
        return
    start = data.find(b"glibc-ld.so.cache1.1")
    if start < 0:
        return
    entries: dict[str, list[str]] = {}
    count = struct.unpack_from("<I", data, start + 20)[0]
    for row in range(count):
        _flags, key, value, _os, hardware = struct.unpack_from("<iIIIQ", data, start + 48 + 24 * row)
        if hardware:
            continue
        name, place = (data[start + at : data.index(b"\0", start + at)].decode() for at in (key, value))
        entries.setdefault(name, []).append(place)
    yield from entries.items()
