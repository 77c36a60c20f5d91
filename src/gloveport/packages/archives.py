"""The task that unpacks a registry's archive. It runs in a jailed process, because the archive is hostile.

It yields facts as JSON, then a path and a content for each file. Links and devices are refused. Bytecode is added to
Python modules: a guest can write none, and compiling them in each run would take most of the run.
"""

from __future__ import annotations

import importlib.util
import io
import json
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from email.parser import HeaderParser
from importlib.machinery import SourceFileLoader

from gloveport.errors import SourceError
from gloveport.types import MIB

UNPACK = f"{__name__}:unpack_archive"
MAX_UNPACKED_BYTES = 400 * MIB
MAX_UNPACKED_FILES = 20_000
MAX_MODULE_BYTES = 2 * MIB
MAX_METADATA_CHARS = 200_000
MAX_REQUIREMENTS = 500
_READ_BYTES = 256 * 1024
_BROKEN = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, NotImplementedError, KeyError)
_DROPPED_SCHEMES = ("scripts", "headers", "data")

Entry = tuple[str, bytes]


def unpack_archive(parts: list[bytes], _ask: Callable[[bytes], bytes | None]) -> Iterator[bytes]:
    """Yield what an archive holds. `parts` are the kind of archive, `npm` or `pypi`, and the archive."""
    try:
        yield from (_wheel if parts[0] == b"pypi" else _tarball)(parts[1])
    except _BROKEN as error:
        raise SourceError(f"the archive can't be read: {error}"[:300]) from None


def rehearse() -> None:
    """Unpack small archives, so that every module is loaded: a process can load none itself."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a/__init__.py", "x = 1")
        archive.writestr("a-1.dist-info/METADATA", "Name: a\nRequires-Dist: b; python_version > '3'\n\nText")
    list(unpack_archive([b"pypi", made.getvalue()], lambda _: None))
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        member = tarfile.TarInfo("package/package.json")
        member.size = 2
        archive.addfile(member, io.BytesIO(b"{}"))
    list(unpack_archive([b"npm", made.getvalue()], lambda _: None))


def _tarball(data: bytes) -> Iterator[bytes]:
    entries = list(_bounded(_tar_entries(data)))
    yield json.dumps({"native": any(_is_native(*entry) for entry in entries)}).encode()
    for path, content in entries:
        yield path.encode()
        yield content


def _tar_entries(data: bytes) -> Iterator[tuple[str, Iterator[bytes]]]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r|gz") as archive:
        for member in archive:
            if member.isdir():
                continue
            name = member.name.removeprefix("./")
            if not member.isreg():
                raise ValueError(f"{name!a:.100} is a link or a device")
            file = archive.extractfile(member)
            assert file is not None
            yield name.partition("/")[2], iter(lambda file=file: file.read(_READ_BYTES), b"")


def _wheel(data: bytes) -> Iterator[bytes]:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = list(_bounded(_zip_entries(archive)))
    found = next((text for path, text in entries if path.count("/") == 1 and path.endswith(".dist-info/METADATA")), None)
    if found is None:
        raise ValueError("it has no METADATA")
    headers = HeaderParser().parsestr(found.decode()[:MAX_METADATA_CHARS])
    kept = [(_installed(path), content) for path, content in entries if _installed(path)]
    facts = {
        "native": any(_is_native(*entry) for entry in kept),
        "name": str(headers["Name"]),
        "version": str(headers["Version"]),
        "python": str(headers["Requires-Python"] or ""),
        "requires": [str(each) for each in (headers.get_all("Requires-Dist") or [])[:MAX_REQUIREMENTS]],
        "modules": sorted({module for path, _ in kept if (module := _module(path))}),
    }
    yield json.dumps(facts).encode()
    for path, content in kept:
        yield path.encode()
        yield content
        if path.endswith(".py") and len(content) <= MAX_MODULE_BYTES and (code := _bytecode(path, content)):
            folder, _, name = path.rpartition("/")
            yield importlib.util.cache_from_source(f"{folder}/{name}" if folder else name).encode()
            yield code


def _zip_entries(archive: zipfile.ZipFile) -> Iterator[tuple[str, Iterator[bytes]]]:
    for info in archive.infolist():
        kind = info.external_attr >> 28  # the type of file, where a UNIX system made the archive
        if info.is_dir() or kind == 0o4:
            continue
        if kind not in (0, 0o10):
            raise ValueError(f"{info.filename!a:.100} is a link or a device")
        with archive.open(info) as file:
            yield info.filename, iter(lambda file=file: file.read(_READ_BYTES), b"")


def _bounded(entries: Iterator[tuple[str, Iterator[bytes]]]) -> Iterator[Entry]:
    size = 0
    for count, (path, pieces) in enumerate(entries, 1):
        content = bytearray()
        for piece in pieces:
            size += len(piece)
            if size > MAX_UNPACKED_BYTES:
                break
            content += piece
        if size > MAX_UNPACKED_BYTES or count > MAX_UNPACKED_FILES:
            raise ValueError(f"it holds more than {MAX_UNPACKED_BYTES // MIB} MiB or {MAX_UNPACKED_FILES:,} files")
        yield path, bytes(content)


def _installed(path: str) -> str:
    """Return where an installer would put a file of a wheel; empty for scripts and headers."""
    first, _, rest = path.partition("/")
    if not first.endswith(".data"):
        return "" if "/__pycache__/" in f"/{path}" else path  # bytecode is made from the source, and from nothing else
    scheme, _, rest = rest.partition("/")
    return "" if scheme in _DROPPED_SCHEMES else rest


def _module(path: str) -> str:
    """Return the name by which a file can be imported at the top level; empty if it is no module."""
    first, slash, rest = path.partition("/")
    if slash:
        is_code = rest.endswith((".py", ".so"))
        return first if is_code and first.isidentifier() else ""
    name = first.partition(".")[0]
    return name if first.endswith((".py", ".so")) and name.isidentifier() else ""


def _is_native(path: str, content: bytes) -> bool:
    return content.startswith(b"\x7fELF") or path.endswith((".so", ".node", ".dll", ".dylib"))


def _bytecode(path: str, content: bytes) -> bytes | None:
    """Return the bytecode of a module, which names no place of this machine; None for text that does not compile."""
    loader = SourceFileLoader(path, path)
    try:
        code = loader.source_to_code(content, path)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    from importlib import _bootstrap_external  # pyright: ignore

    return bytes(_bootstrap_external._code_to_hash_pyc(code, importlib.util.source_hash(content), False))  # pyright: ignore
