"""The client half of `make conformance`: our MCP client and the Python SDK's in the same scenarios.

Both list and call everything that the server of a scenario has. Neither supports OAuth yet, so authorization scenarios run
and are shown, but don't count. Ours must pass every check that the SDK's passes.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from interop.node import NODE, environment, installed

OURS, THEIRS = "interop.our_client", "interop.sdk_client"
REVISIONS = ("2025-11-25", "2026-07-28")
AUTHORIZATION = "auth/"
AT_ONCE = 2  # the suite starts all scenarios at once and stops slow ones
Checks = dict[str, list[Any]]


async def run(client: str, revision: str) -> Checks:
    """Return the checks of every client scenario of a revision, including unscored ones."""
    _, _, listed = (await _suite("list", "--requirements", revision)).partition("Client scenarios")
    names = re.findall(r"^ +- (\S+)(?: \[client\])?$", listed, re.MULTILINE)
    places = asyncio.Semaphore(AT_ONCE)

    async def judged(name: str) -> list[Any]:
        command = ("client", "--command", f"{sys.executable} -m {client}", "--scenario", name, "--spec-version", revision)
        async with places:
            with tempfile.TemporaryDirectory() as folder:
                await _suite(*command, "--force", "--timeout", "120000", "-o", folder, home=folder)
                return [check for file in Path(folder).rglob("checks.json") for check in json.loads(file.read_text())]

    return dict(zip(names, await asyncio.gather(*map(judged, names)), strict=True))


async def _suite(*arguments: str, home: str = "") -> str:
    """Run the suite and return its output. The clients that it starts find no user settings or data."""
    variables = dict.fromkeys(("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"), home) if home else {}
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(installed() / "conformance"), *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        cwd=Path(__file__).parents[1], env=environment() | variables,
    )  # fmt: skip
    return (await process.communicate())[0].decode()


def judge(revision: str, ours: Checks, theirs: Checks) -> int:
    """Print both clients side by side, and return the number of scenarios in which ours is worse."""
    worse = 0
    print(f"{revision}  {'as a client':42} {'gloveport':>14} {'Python SDK':>14}")
    for name in sorted(ours.keys() | theirs.keys(), key=lambda name: (name.startswith(AUTHORIZATION), name)):
        counted = not name.startswith(AUTHORIZATION)
        missed = sorted((_passed(theirs.get(name, [])) - _passed(ours.get(name, []))).elements())
        wrong = bool(missed) or not _passed(ours.get(name, []))  # a scenario that did not run proves nothing
        state = "not applicable: OAuth comes later" if not counted else "WORSE" if wrong else "no worse"
        print(f"{revision}  {name:42} {_told(ours.get(name, [])):>14} {_told(theirs.get(name, [])):>14}  {state}")
        if counted and wrong:
            worse += 1
            print(*(f"    the SDK passes {check}" for check in missed), sep="\n")
    for client, made in (("gloveport", ours), ("Python SDK", theirs)):
        counted = {name: checks for name, checks in made.items() if not name.startswith(AUTHORIZATION)}
        clean = sum(bool(_passed(checks)) and not _failed(checks) for checks in counted.values())
        passed = sum(_passed(checks).total() for checks in counted.values())
        print(f"{revision}  {client}: {clean} of {len(counted)} scenarios without authorization pass, {passed} checks")
    print()
    return worse + (not ours or not theirs)


def _passed(checks: list[Any]) -> Counter[str]:
    return Counter(f"{check['id']} ({check['name']})" for check in checks if check["status"] == "SUCCESS")


def _failed(checks: list[Any]) -> int:
    return sum(check["status"] in ("FAILURE", "WARNING") for check in checks)


def _told(checks: list[Any]) -> str:
    passed, failed = _passed(checks).total(), _failed(checks)
    return f"{passed} passed" if not failed else f"{passed}, {failed} failed"


async def main() -> int:
    """Check both revisions and return the number of scenarios in which ours is worse."""
    worse = 0
    for revision in REVISIONS:
        worse += judge(revision, await run(OURS, revision), await run(THEIRS, revision))
    return worse
