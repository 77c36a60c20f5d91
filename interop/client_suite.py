"""The client half of `make conformance`: our MCP client and the Python SDK's in the same scenarios.

Both list and call everything that the server of a scenario has, and sign in where it asks for that. Ours must pass every
check that the SDK's passes, and in authorization scenarios fail none. Extensions that ours does not have run and are shown,
but don't count.
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
UNSUPPORTED = {
    "auth/client-credentials-jwt": "a client that signs its requests (private_key_jwt)",
    "auth/dpop": "tokens bound to a key (DPoP): ours are bearer tokens",
    "auth/dpop-nonce": "tokens bound to a key (DPoP): ours are bearer tokens",
    "auth/enterprise-managed-authorization": "the exchange of an identity provider's assertion",
    "auth/wif-jwt-bearer": "the exchange of a workload's identity",
}
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
        wrong = _problems(name, ours.get(name, []), theirs.get(name, []))
        state = f"not supported: {UNSUPPORTED[name]}" if name in UNSUPPORTED else "WORSE" if wrong else "no worse"
        print(f"{revision}  {name:42} {_told(ours.get(name, [])):>14} {_told(theirs.get(name, [])):>14}  {state}")
        if wrong and name not in UNSUPPORTED:
            worse += 1
            print(*(f"    {problem}" for problem in wrong), sep="\n")
    for client, made in (("gloveport", ours), ("Python SDK", theirs)):
        counted = {name: checks for name, checks in made.items() if name not in UNSUPPORTED}
        clean = sum(bool(_passed(checks)) and not _failed(checks) for checks in counted.values())
        passed = sum(_passed(checks).total() for checks in counted.values())
        print(f"{revision}  {client}: {clean} of {len(counted)} scenarios pass, {passed} checks")
    print()
    return worse + (not ours or not theirs)


def _problems(name: str, ours: list[Any], theirs: list[Any]) -> list[str]:
    """Return what is wrong with ours: checks that only the SDK passes, and failed ones of authorization scenarios."""
    if not _passed(ours):
        return ["it did not run"]  # which proves nothing
    if not name.startswith(AUTHORIZATION):
        return [f"the SDK passes {check}" for check in sorted((_passed(theirs) - _passed(ours)).elements())]
    # How often a check is made depends on how many requests a client needs.
    missed = [f"the SDK passes {check}" for check in sorted(_passed(theirs).keys() - _passed(ours).keys())]
    return missed + [f"ours fails {check['id']}" for check in ours if check["status"] in ("FAILURE", "WARNING")]


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
