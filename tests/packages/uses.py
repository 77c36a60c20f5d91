"""Adds packages that agents like from the public registries, imports each and uses it once. `make packages` runs it.

`python -m tests.packages.uses [npm|pypi] [NAME…]`. It goes through the mirror on loopback (`mirror.py`), which passes every
request on to the registry and rewrites nothing but the links: hashes are those of the registry.
"""

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping

from gloveport import Gloveport
from gloveport.types import Language
from tests.packages import npm_uses, pypi_uses
from tests.packages.mirror import mirror
from tests.packages.show import EXPECTED, NEEDS, shown, shown_elsewhere

KINDS: Mapping[str, tuple[Language, Mapping[str, tuple[str, object]]]] = {
    "npm": ("typescript", npm_uses.USES),
    "pypi": ("python", pypi_uses.USES),
}
EXPECTED_FAILURES = frozenset({"npm:exceljs"})
"""Packages that can't be added: docs/packages.md says why. One that works after all fails here, too."""


MEASURED = {
    "npm:nanoid": "import { nanoid } from 'nanoid'; nanoid().length",
    "npm:jszip": "import JSZip from 'jszip'; Object.keys(new JSZip().file('a.txt', 'x').files)",
    "pypi:tabulate": "from tabulate import tabulate\ntabulate([[1, 'x']])",
    "pypi:numpy": "import numpy as np\nint(np.arange(10).sum())",
}
MEASURED_RUNS, PAUSE_SECONDS = 40, 0.1
NEED_FILES = frozenset({"pypi:openpyxl"})
"""Packages that write temporary files: they work in a session."""


def added(packages: list[str]) -> set[str]:
    """Return the packages that can be added, one by one: the registry may lack what one of them requires."""
    found: set[str] = set()
    for package in packages:
        command = [sys.executable, "-m", "gloveport", "packages", "add", "--yes", package]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            found.add(package)
        else:
            print(f"{package}: can't be added: {done.stderr.strip()[-300:]}", flush=True)
    return found


async def used(packages: list[str]) -> set[str]:
    """Return the packages whose use gives what it should."""
    found: set[str] = set()
    async with Gloveport() as port, Gloveport(allow_eval=True) as compiling:
        for package in packages:
            kind, _, name = package.partition(":")
            language, uses = KINDS[kind]
            code, expected = uses[name]
            began = time.monotonic()
            compiles = kind == "npm" and name in npm_uses.COMPILES
            session = name if package in NEED_FILES else None
            outcome = await (compiling if compiles else port).run(code, language=language, session=session)
            works = outcome.status == "completed" and outcome.value == expected
            found |= {package} if works else set()
            shown = "works" if works else outcome.error or f"gives {outcome.value!r:.200}"
            print(f"{package}: {shown} ({time.monotonic() - began:.1f} s)", flush=True)
    return found


async def show() -> bool:
    """Print whether the programs of `show.py` do the same in Gloveport as in Node and Python."""
    works = True
    elsewhere = await asyncio.to_thread(shown_elsewhere)
    for language, outcomes in (await shown()).items():
        values = [outcome.error or outcome.value for outcome in outcomes]
        works &= values == elsewhere[language] == EXPECTED
        print(f"a program of some size in {language}: {values}, without Gloveport {elsewhere[language]}", flush=True)
    return works


async def medians(language: Language, *runs: tuple[Gloveport, str]) -> list[float]:
    """Return the median milliseconds of each program on its port. The runs are interleaved, with a pause after each."""
    times: list[list[float]] = [[] for _ in runs]
    for number in range(MEASURED_RUNS + 3):
        for (port, code), found in zip(runs, times, strict=True):
            began = time.perf_counter()
            assert (await port.run(code, language=language)).error is None
            if number >= 3:
                found.append(time.perf_counter() - began)
            await asyncio.sleep(PAUSE_SECONDS)
    return [statistics.median(found) * 1000 for found in times]


async def ratios(packages: set[str], empty: str) -> None:
    """Print the medians of trivial runs and of runs that import a package, against those of a port with an empty store."""
    trivial, filled = "1 + 1", os.environ["XDG_DATA_HOME"]
    async with Gloveport() as port:
        os.environ["XDG_DATA_HOME"] = empty
        async with Gloveport() as bare:
            os.environ["XDG_DATA_HOME"] = filled
            for language, _ in KINDS.values():
                own, other = await medians(language, (port, trivial), (bare, trivial))
                print(
                    f"{language}, a trivial run: p50 {own:.2f} ms, with an empty store {other:.2f} ms ({own / other:.2f} ×)"
                )
            for package in [each for each in MEASURED if each in packages]:
                language, _ = KINDS[package.partition(":")[0]]
                own, other = await medians(language, (port, MEASURED[package]), (bare, trivial))
                print(
                    f"{package}: p50 of a run that uses it {own:.2f} ms, of a trivial run {other:.2f} ms ({own / other:.2f} ×)"
                )


def main() -> int:
    """Add the packages to a store of their own, and use them."""
    chosen = sys.argv[1:2] if sys.argv[1:2] and sys.argv[1] in KINDS else list(KINDS)
    named = [name for name in sys.argv[1:] if name not in KINDS]
    packages = [f"{kind}:{name}" for kind in chosen for name in KINDS[kind][1] if not named or name in named]
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as empty, mirror() as environment:
        os.environ.update({**environment, "XDG_DATA_HOME": folder, "XDG_CONFIG_HOME": folder})
        works = asyncio.run(used(sorted(added(packages))))
        asyncio.run(ratios(works, empty))
        all_shown = not works >= NEEDS or asyncio.run(show())
    wrong = {each for each in packages if (each in works) == (each in EXPECTED_FAILURES)}
    print(f"{len(works)} of {len(packages)} work; not as expected: {', '.join(sorted(wrong)) or 'none'}")
    return 1 if wrong or not all_shown else 0


if __name__ == "__main__":
    sys.exit(main())
