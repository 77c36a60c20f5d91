"""The server half of `make conformance`: the MCP suite against our HTTP server, in both revisions.

Most of the suite expects a server with its fixtures: tools, prompts and resources of certain names. Scenarios without
fixtures must pass; in two scenarios with fixtures, every other check must. The rest is reported as not applicable. The
suite sends no token, so this server requires none; otherwise it is the server of `gloveport serve`.
"""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from gloveport import Gloveport
from gloveport.policy.credentials import Secret
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import Caller, TokenCheck
from gloveport.types import DEFAULT_AGENT
from interop.node import NODE, environment, installed

TOOLS = str(Path(__file__).parents[1] / "examples" / "demo_tools.py")
NEED_NOTHING = {
    "2025-11-25": (
        "server-initialize ping logging-set-level tools-list dns-rebinding-protection server-session-lifecycle"
        " server-sse-multiple-streams"
    ),
    "2026-07-28": (
        "server-stateless tools-list caching dns-rebinding-protection http-header-validation server-sse-multiple-streams"
        " sep-2164-resource-not-found input-required-result-unsupported-methods"
        " input-required-result-missing-input-response input-required-result-ignore-extra-params"
        " input-required-result-validate-input"
    ),
}
# Checks that need the suite's own tools, or prompts and resources, which we don't have.
NEED_FIXTURES = frozenset(
    {
        "sep-2575-server-rejects-undeclared-capability",
        "sep-2575-missing-capability-http-400",
        "sep-2575-http-server-no-independent-requests-on-stream",
        "sep-2575-server-no-log-without-loglevel",
        "sep-2549-prompts-list-caching-hints",
        "sep-2549-resources-list-caching-hints",
        "sep-2549-resources-templates-list-caching-hints",
    }
)


class Anyone(TokenCheck):
    """Accepts every caller as the agent `default`, with or without a token."""

    def __init__(self) -> None:
        super().__init__(Secret("", "token"))

    async def caller_of(self, authorization: str) -> Caller:
        """Return the agent `default`."""
        return Caller(DEFAULT_AGENT)


@asynccontextmanager
async def serving() -> AsyncIterator[str]:
    """Yield the URL of our MCP server with the demo tools, which requires no token."""
    server = HttpServer(Gloveport(sources=[TOOLS], spare=1), ServerNames(), Anyone(), Admission(), 5)
    listening = listen("127.0.0.1", 0, None)
    task = asyncio.create_task(server.serve(listening))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.stop()
        server.stop()
        await task


async def run(url: str, revision: str, folder: Path) -> None:
    """Run the scenarios of a revision and write the results to the folder."""
    command = [str(NODE), str(installed() / "conformance"), "server", "--url", url, "--requirements", revision]
    nowhere = asyncio.subprocess.DEVNULL
    process = await asyncio.create_subprocess_exec(*command, "-o", str(folder), stdout=nowhere, env=environment())
    await process.wait()


def judge(revision: str, folder: Path) -> int:
    """Print each scenario, and return how many that need no fixtures failed or did not run."""
    files = sorted(folder.rglob("checks.json"))
    made = {_scenario(file): json.loads(file.read_text()) for file in files}
    wanted = NEED_NOTHING[revision].split()
    wrong = [name for name in wanted if name not in made]
    for name, checks in made.items():
        failed = [check for check in checks if check["status"] == "FAILURE" and check["id"] not in NEED_FIXTURES]
        passed = sum(check["status"] == "SUCCESS" for check in checks)
        state = "passed" if passed and not failed else "FAILED" if name in wanted else "needs fixtures"
        print(f"{revision}  {name:48} {passed:3} checks passed  {state}")
        if state == "FAILED":
            wrong.append(name)
            for check in failed:
                print(f"    {check['id']}: {check.get('errorMessage')}")
    print(f"{revision}  {len(wanted) - len(wrong)} of {len(wanted)} scenarios that need no fixtures pass\n")
    return len(wrong)


def _scenario(file: Path) -> str:
    return re.sub(r"-\d{4}-\d\d-\d\dT.*$", "", file.parent.name).removeprefix("server-")


async def main() -> int:
    """Check both revisions and return the number of failed scenarios."""
    wrong = 0
    async with serving() as url:
        for revision in NEED_NOTHING:
            with tempfile.TemporaryDirectory() as folder:
                await run(url, revision, Path(folder))
                wrong += judge(revision, Path(folder))
    return wrong
