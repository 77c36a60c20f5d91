"""Packages that were fetched and checked, and wait for a person's approval."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from gloveport.errors import GloveportError, PackageError
from gloveport.packages.archives import UNPACK
from gloveport.packages.package import Ecosystem, Package, PackageId
from gloveport.packages.store import PackageFile, check_path

RunTask = Callable[[str, Sequence[bytes]], Awaitable[list[bytes]]]
"""Runs a task in a jailed process, and returns what it yields."""


@dataclass(frozen=True, slots=True)
class UnpackedArchive:
    """What an archive holds. `facts` come from the jailed process that read it: they are untrusted."""

    facts: dict[str, Any]
    files: tuple[PackageFile, ...]

    @property
    def native(self) -> bool:
        """Whether it holds machine code."""
        return self.facts.get("native") is not False

    @property
    def size(self) -> int:
        """The size of its files in bytes."""
        return sum(len(file.content) for file in self.files)

    def texts(self, key: str) -> list[str]:
        """Return a list of texts among the facts."""
        found = self.facts.get(key)
        return [text for text in found if isinstance(text, str)] if isinstance(found, list) else []


@dataclass(frozen=True, slots=True)
class FetchedPackage:
    """A package with its files. `origin` is the registry that it came from."""

    package: Package
    files: tuple[PackageFile, ...]
    origin: str


async def unpack(run_task: RunTask, ecosystem: Ecosystem, name: PackageId | str, archive: bytes) -> UnpackedArchive:
    """Return what an archive holds; raise PackageError if it can't be read within bounds, or holds odd names."""
    try:
        facts, *rest = await run_task(UNPACK, [ecosystem.encode(), archive])
        found = json.loads(facts)
        files = tuple(PackageFile(path.decode(), content) for path, content in zip(rest[::2], rest[1::2], strict=True))
        if not isinstance(found, dict):
            raise ValueError("no facts")
    except GloveportError as error:
        raise PackageError(f"{name} can't be unpacked: {error.message}") from None
    except ValueError:
        raise PackageError(f"{name} can't be unpacked: the process that read it broke the protocol") from None
    for file in files:
        check_path(name, file.path)
    return UnpackedArchive(found, files)
