"""Lays packages out as `node_modules`, so that each finds exactly the versions of others that it was approved with."""

from __future__ import annotations

import json
import os
import shutil
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from gloveport.errors import PackageError
from gloveport.packages.package import Package, PackageId

MAX_PLACES = 2000
_CODE = frozenset({".js", ".mjs", ".cjs", ".json", ".ts", ".mts", ".cts", ".jsx", ".tsx", ".wasm", ".css", ".txt"})
# Packages whose build for browsers needs a document, which programs don't have: it is not used.
_NEEDS_DOCUMENT = frozenset({"turndown"})
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")


def places(roots: Iterable[PackageId], approved: Mapping[PackageId, Package]) -> dict[PurePosixPath, PackageId]:
    """Return where each package lies below the folder: at the top, unless another version of it is in the way.

    The places for what one package requires are found before those for what these require, so none of them comes between
    a package and what was found for it.
    """
    top = PurePosixPath("node_modules")
    found: dict[PurePosixPath, PackageId] = {}
    todo: deque[tuple[PurePosixPath, PackageId]] = deque()

    def put(place: PurePosixPath, package: PackageId) -> None:
        if len(found) >= MAX_PLACES:
            raise PackageError(f"the packages that the program imports take more than {MAX_PLACES:,} folders")
        found[place] = package
        todo.append((place, package))

    for root in roots:
        put(top / root.name, root)
    while todo:
        place, package = todo.popleft()
        for wanted in approved[package].requires if package in approved else ():
            if wanted not in approved:
                raise PackageError(
                    f"{package} requires {wanted}, which is not there", hint=f"gloveport packages add {package}"
                )
            seen = next((above / wanted.name for above in _above(place) if above / wanted.name in found), None)
            if seen is None:
                put(top / wanted.name, wanted)
            elif found[seen] != wanted:
                put(place / "node_modules" / wanted.name, wanted)
    return found


def _above(place: PurePosixPath) -> Iterable[PurePosixPath]:
    """Yield the folders in which a package looks for others, the nearest first."""
    yield place / "node_modules"
    parts = place.parts
    for count in range(len(parts) - 1, 0, -1):
        if parts[count - 1] == "node_modules":
            yield PurePosixPath(*parts[:count])


def lay_out(folder: Path, placed: Mapping[PurePosixPath, PackageId], trees: Mapping[PackageId, Path]) -> None:
    """Put the code of packages into a new folder, by links to their files where the file system allows it."""
    for place, package in placed.items():
        _link_tree(trees[package], folder / place)
        if package.name in _NEEDS_DOCUMENT:
            _drop_browser_build(folder / place / "package.json")


def _link_tree(source: Path, target: Path) -> None:
    for here, folders, names in os.walk(source):
        folders[:] = [name for name in folders if not os.path.islink(os.path.join(here, name))]
        made = target / os.path.relpath(here, source)
        made.mkdir(mode=0o755, parents=True, exist_ok=True)
        for name in names:
            if os.path.splitext(name)[1] in _CODE and not name.endswith(_DECLARATIONS):
                _link(os.path.join(here, name), made / name)


def _drop_browser_build(manifest: Path) -> None:
    about = json.loads(manifest.read_bytes())
    about.pop("browser", None)
    manifest.unlink()  # it is a link to the approved file, which stays as it is
    manifest.write_text(json.dumps(about))
    manifest.chmod(0o444)


def _link(source: str, target: Path) -> None:
    if os.path.islink(source):
        return
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:  # another file system, or one without links
        shutil.copyfile(source, target)
        target.chmod(0o444)
