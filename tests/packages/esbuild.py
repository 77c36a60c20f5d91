"""Fetch esbuild for the tests: `python -m tests.packages.esbuild FOLDER`. `make setup` does it once."""

import asyncio
import os
import sys
from pathlib import Path

from gloveport.host.packages.package_additions import fetch_bundler
from gloveport.packages.esbuild import esbuild_path
from gloveport.packages.store import PackageStore
from tests.packages.mirror import mirror

FETCHED = PackageStore(Path(__file__).parent.parent.parent / ".venv" / "packages")


def give_esbuild(store: PackageStore) -> None:
    """Put the fetched esbuild into the store of a test."""
    place = esbuild_path(store)
    place.parent.mkdir(parents=True)
    place.symlink_to(esbuild_path(FETCHED))


if __name__ == "__main__":
    with mirror() as environment:
        os.environ.update(environment)
        asyncio.run(fetch_bundler(PackageStore(Path(sys.argv[1]))))
