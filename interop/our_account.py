"""The user of our client in an authorization scenario: runs the command that a failed run names, and opens its link."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from pathlib import Path

import httpx2

from gloveport.policy.egress import Egress
from gloveport.policy.oauth.discovery import discover

MAX_SIGN_INS = 3
SIGN_IN_SECONDS = 60
# The suite serves no document there: it looks at the URL alone.
CLIENT_DOCUMENT = "https://conformance-test.local/client-metadata.json"
_COMMAND = re.compile(r"`gloveport (auth login [^`]+)`")
_LINK = re.compile(r"open this link to sign in: (\S+)")


def named_command(advice: str) -> list[str]:
    """Return the words of the command that signs in, as a person is told it; none when there is none."""
    found = _COMMAND.search(advice)
    return shlex.split(found[1]) if found else []


def write_settings(url: str) -> None:
    """Write the user's settings, so that the command line knows the source."""
    folder = Path(os.environ["XDG_CONFIG_HOME"], "gloveport")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "gloveport.toml").write_text(f"[sources.server]\nmcp = {json.dumps(url)}\nallow_private = true\n")


async def sign_in(command: list[str], url: str) -> bool:
    """Run the command and open its link in a browser that is signed in already; return whether it worked."""
    options, secret = await _client(url)
    program = (sys.executable, "-m", "gloveport.surfaces.cli.main", *command, *options, "--yes", "--no-browser")
    process = await asyncio.create_subprocess_exec(*program, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE)
    assert process.stdin
    assert process.stderr
    process.stdin.write(secret.encode())
    process.stdin.close()
    async with asyncio.timeout(SIGN_IN_SECONDS):
        while line := (await process.stderr.readline()).decode():
            print(line, end="", file=sys.stderr)
            if link := _LINK.search(line):
                async with httpx2.AsyncClient(follow_redirects=True, trust_env=False) as browser:
                    print((await browser.get(link[1])).text, file=sys.stderr)
        return await process.wait() == 0


async def _client(url: str) -> tuple[list[str], str]:
    """Return the options for the client that a scenario gives its user, and the client's secret."""
    scenario, context = os.environ["MCP_CONFORMANCE_SCENARIO"], json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    if scenario == "auth/basic-cimd":
        return ["--client-id", CLIENT_DOCUMENT], ""
    if "client_secret" not in context:
        return [], ""
    egress = Egress()
    try:
        server = await discover(egress, url, allow_private=True)
    finally:
        await egress.close()
    options = ["--client-id", context["client_id"], "--client-secret", "--issuer", server.issuer]
    return [*options, *(["--client-credentials"] if "client-credentials" in scenario else [])], context["client_secret"]
