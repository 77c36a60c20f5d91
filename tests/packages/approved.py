"""Approved packages for tests, in the data folder that XDG_DATA_HOME names."""

from __future__ import annotations

from collections.abc import Mapping

from gloveport.packages.package import Package, PackageId
from gloveport.packages.store import PackageFile, PackageStore
from tests.packages.esbuild import give_esbuild


class Approved:
    """The approved packages of a test, in the user's data folder."""

    def __init__(self) -> None:
        self.store = PackageStore()
        give_esbuild(self.store)

    def add(self, name: str, files: Mapping[str, str], *requires: str) -> None:
        """Approve a package, such as `cjs@1.0.0` of npm or `pypi:rows@1.0`."""
        wanted = tuple(_id(each) for each in requires)
        package = Package(_id(name), f"sha512-{name}", wanted, (_id(name).name,))
        self.store.add(package, [PackageFile(path, text.encode()) for path, text in files.items()])


def _id(name: str) -> PackageId:
    return PackageId.parse(name if ":" in name else f"npm:{name}")
