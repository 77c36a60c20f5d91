"""The store of packages: what a person approved, and the files of each package, read-only, in the user's data folder.

    packages.json          the lock: every approved package with its hashes, and the hash of each version ever approved
    trees/<id>/            the files of one package, exactly as they were approved

A tree holds plain files and folders only. It is written beside its place and then renamed, so that a tree that exists is
whole. A version whose archive has another hash than when it was first approved is refused, also after it was removed.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gloveport.errors import PackageError
from gloveport.folders import data_folder
from gloveport.packages.package import Package, PackageId
from gloveport.types import MIB

LOCK_FILE = "packages.json"
MAX_FILES = 20_000
MAX_TREE_BYTES = 512 * MIB
MAX_DEPTH = 32
MAX_PART_BYTES = 255
MAX_PACKAGES = 2000
_READ_BYTES = MIB


@dataclass(frozen=True, slots=True)
class PackageFile:
    """One file of a package: its path below the package, with `/` between the parts."""

    path: str
    content: bytes


class PackageStore:
    """The approved packages of a user. Nothing is read before it is asked for."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder or data_folder() / "packages"
        self._lock_path = str(self.folder / LOCK_FILE)
        self._read: tuple[tuple[int, int, int], dict[PackageId, Package]] | None = None

    def approved(self) -> Mapping[PackageId, Package]:
        """Return the approved packages. The lock is read again when it has changed."""
        try:
            state = os.stat(self._lock_path)
        except (FileNotFoundError, NotADirectoryError, PermissionError):  # who can't look there has approved nothing there
            return {}
        version = state.st_ino, state.st_mtime_ns, state.st_size
        if self._read is None or self._read[0] != version:
            self._read = version, _packages(self._lock())
        return self._read[1]

    def tree(self, package: PackageId) -> Path:
        """Return the folder of a package's files."""
        return self.folder / "trees" / str(package).replace("/", "+")

    def known_integrity(self, package: PackageId) -> str | None:
        """Return the hash with which this version was first approved, also if it was removed since."""
        found = self._lock()["seen"].get(str(package))
        return found if isinstance(found, str) else None

    def check_integrity(self, package: PackageId, integrity: str) -> None:
        """Raise PackageError `package-changed` if this version was approved with another hash."""
        known = self.known_integrity(package)
        if known is not None and known != integrity:
            message = f"{package} is not what it was: its archive has the hash {integrity}, and you approved {known}"
            raise PackageError(message, code="package-changed", hint="choose another version, and ask its authors why")

    def add(self, package: Package, files: Iterable[PackageFile]) -> Package:
        """Write the files of a package, then its record; return the record with size and digest of what was written."""
        self.check_integrity(package.id, package.integrity)
        trees = self.folder / "trees"
        trees.mkdir(mode=0o755, parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=".new-", dir=trees))
        try:
            size, content = _write_tree(package.id, made, files)
            package = replace(package, size=size, content=content)
            with self._changing() as lock:
                known = lock["seen"].setdefault(str(package.id), package.integrity)
                if known != package.integrity:
                    raise PackageError(f"{package.id} was approved with another hash just now", code="package-changed")
                if len(lock["packages"]) >= MAX_PACKAGES:
                    raise PackageError(f"there are {MAX_PACKAGES:,} packages", hint="remove some that you don't need")
                self._put_in_place(made, self.tree(package.id))
                lock["packages"][str(package.id)] = _row(package)
        finally:
            _remove(made)
        return package

    def remove(self, packages: Iterable[PackageId]) -> None:
        """Remove packages: first their records, so that no run takes them, then their files."""
        gone = tuple(packages)
        with self._changing() as lock:
            for package in gone:
                lock["packages"].pop(str(package), None)
        for package in gone:
            _remove(self.tree(package))

    def verify(self, package: Package) -> str | None:
        """Return what is wrong with the files of a package; None when they are exactly those that were approved."""
        try:
            content = _digest_of_tree(self.tree(package.id))
        except OSError as error:
            return f"its files can't be read: {error.strerror}"
        return None if content == package.content else "its files are not those that you approved"

    def _put_in_place(self, made: Path, place: Path) -> None:
        if place.exists():  # of an approval that was interrupted, or whose record was lost
            aside = place.with_name(f".old-{secrets.token_hex(8)}")
            place.rename(aside)
            _remove(aside)
        made.rename(place)

    def _lock(self) -> dict[str, Any]:
        file = self.folder / LOCK_FILE
        try:
            found = json.loads(file.read_bytes())
            if isinstance(found["packages"], dict) and isinstance(found["seen"], dict):
                return found
        except FileNotFoundError:
            return {"packages": {}, "seen": {}}
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            pass
        raise PackageError(f"{file} can't be read", hint="restore it from a backup, or delete it and add them again")

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Any]]:
        """Give the lock to be changed, while no other process changes it; then write it."""
        self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        guard = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(guard, fcntl.LOCK_EX)
            lock = self._lock()
            yield lock
            handle, name = tempfile.mkstemp(dir=self.folder, prefix=f".{LOCK_FILE}.")
            with os.fdopen(handle, "w", encoding="utf-8") as out:
                json.dump(lock, out, indent=1, sort_keys=True)
                out.flush()
                os.fsync(out.fileno())
            os.replace(name, self.folder / LOCK_FILE)
        finally:
            os.close(guard)


def check_path(package: PackageId | str, path: str) -> tuple[str, ...]:
    """Return the parts of a file's path; raise PackageError unless it is plain and leads nowhere else (D8)."""
    parts = tuple(path.split("/"))
    plain = path.isprintable() and "\\" not in path and len(parts) <= MAX_DEPTH
    if not plain or any(part in ("", ".", "..") or len(part.encode()) > MAX_PART_BYTES for part in parts):
        raise PackageError(f"{package} holds a file with the name {path!a:.120}", hint="packages hold plain files only")
    return parts


def _write_tree(package: PackageId, root: Path, files: Iterable[PackageFile]) -> tuple[int, str]:
    size = count = 0
    for file in files:
        size, count = size + len(file.content), count + 1
        if size > MAX_TREE_BYTES or count > MAX_FILES:
            raise PackageError(f"{package} is too large: more than {MAX_TREE_BYTES // MIB} MiB or {MAX_FILES:,} files")
        *folders, name = check_path(package, file.path)
        place = root.joinpath(*folders)
        try:
            place.mkdir(mode=0o755, parents=True, exist_ok=True)
            handle = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o444)
        except (FileExistsError, NotADirectoryError):
            raise PackageError(f"{package} holds {file.path!a:.120} twice") from None
        with os.fdopen(handle, "wb") as out:
            os.fchmod(out.fileno(), 0o444)  # whatever the umask: guests read it as another user
            out.write(file.content)
    for folder, _, _ in os.walk(root):
        os.chmod(folder, 0o755)
    return size, _digest_of_tree(root)


def _digest_of_tree(root: Path) -> str:
    """Return the digest of all names and contents; raise OSError for anything that is no plain file or folder."""
    rows: list[str] = []
    for folder, folders, names in os.walk(root, onerror=_fail, followlinks=False):
        for name in (*folders, *names):
            path = Path(folder, name)
            if path.is_symlink() or not (path.is_dir() or path.is_file()):
                raise OSError(0, f"{path} is no plain file")
        for name in names:
            rows.append(f"{_digest_of_file(Path(folder, name))}  {Path(folder, name).relative_to(root)}\n")
    return hashlib.sha256("".join(sorted(rows)).encode()).hexdigest()


def _fail(error: OSError) -> None:
    raise error


def _digest_of_file(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NOFOLLOW)) as file:
        while piece := file.read(_READ_BYTES):
            digest.update(piece)
    return digest.hexdigest()


def _remove(tree: Path) -> None:
    shutil.rmtree(tree, ignore_errors=True)


def _row(package: Package) -> dict[str, Any]:
    return {
        "integrity": package.integrity,
        "requires": [str(each) for each in package.requires],
        "modules": list(package.modules),
        "native": package.native,
        "size": package.size,
        "content": package.content,
    }


def _packages(lock: Mapping[str, Any]) -> dict[PackageId, Package]:
    found: dict[PackageId, Package] = {}
    for name, row in lock["packages"].items():
        package = PackageId.parse(name)
        requires = tuple(PackageId.parse(each) for each in row["requires"])
        about = row["native"], row["size"], row["content"]
        found[package] = Package(package, row["integrity"], requires, tuple(row["modules"]), *about)
    return found
