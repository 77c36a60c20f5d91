"""Find the shared libraries that a program needs, from its ELF headers, without running it."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_PT_LOAD, _PT_DYNAMIC, _PT_INTERP = 1, 2, 3
_DT_NEEDED, _DT_STRTAB, _DT_RPATH, _DT_RUNPATH = 1, 5, 15, 29
_MACHINES = {62: "x86_64", 183: "aarch64"}


class ElfError(ValueError):
    """A file is not a 64-bit ELF program for this machine, or a library that it needs is missing."""


@dataclass(frozen=True, slots=True)
class ElfHeaders:
    """The parsed headers of a program or library."""

    machine: str
    interpreter: str | None
    needed: tuple[str, ...]
    search: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The interpreter and the libraries of a program.

    `libraries` are pairs: the path at which a loader without a cache finds the library, and its path on the host.
    `from_cache` is true when the host's loader finds at least one of them only through its cache.
    """

    interpreter: str | None
    libraries: tuple[tuple[str, str], ...]
    from_cache: bool


def read_headers(path: str) -> ElfHeaders:
    """Return the headers of an ELF file; ElfError when it is none."""
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
    return ElfHeaders(_MACHINES.get(machine, "other"), interpreter, needed, tuple(filter(None, search.split(":"))))


def find_dependencies(program: str, extensions: Iterable[str] = ()) -> Dependencies:
    """Return what the loader loads for a program: the interpreter, and all libraries, direct and indirect, each once.

    The program may load `extensions` later. A library that only an extension needs and that this machine lacks is left
    out: that extension can't be loaded here anyway.
    """
    top = read_headers(program)
    cache = dict(_cache_entries())
    found: dict[str, tuple[str, str, bool]] = {}
    waiting = [(name, top, True) for name in top.needed]
    waiting += [(name, wanted_by, False) for wanted_by in map(read_headers, extensions) for name in wanted_by.needed]
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
        library = read_headers(place[1])
        waiting += [(next_name, library, must) for next_name in library.needed]
    libraries = tuple((place, host) for place, host, _ in found.values())
    return Dependencies(top.interpreter, libraries, any(cached for _, _, cached in found.values()))


def default_directories(machine: str) -> tuple[str, ...]:
    """Return the loader's default search path (Debian's multiarch directories first)."""
    multiarch = f"{machine}-linux-gnu"
    return (f"/lib/{multiarch}", f"/usr/lib/{multiarch}", "/lib64", "/usr/lib64", "/lib", "/usr/lib")


def _locate(name: str, wanted_by: ElfHeaders, top: ElfHeaders, cache: dict[str, list[str]]) -> tuple[str, str, bool] | None:
    # A jail has no ld.so.cache, and $ORIGIN is another directory in it. So a library outside the default directories is
    # placed next to libc: the loader always looks there, and the path reveals nothing about the host.
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


def _fits(path: str, top: ElfHeaders) -> bool:
    if not os.path.isfile(path):
        return False
    try:
        return read_headers(path).machine == top.machine
    except (ElfError, OSError):
        return False


def _cache_entries(path: str = "/etc/ld.so.cache") -> Iterator[tuple[str, list[str]]]:
    """Yield library names and their paths from the loader's cache (format glibc-ld.so.cache1.1), if there is one."""
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
