"""Start hosts in their own environments, and other processes, for tests that read their output."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

from tests.sandbox.jail import container
from tests.sandbox.jail.host import REPOSITORY


def host_command(scene: str, plan: dict[str, Any], *, user: str, without: list[str], inherit: str = "") -> list[str]:
    """Return the command that plays a scene."""
    wanted = {"scene": scene, "plan": plan, "user": user, "without": without, "inherit": inherit}
    before = container.command() if user.startswith("container") else ()
    return [*before, sys.executable, "-B", "-m", "tests.sandbox.jail.host", json.dumps(wanted)]


def host_env() -> dict[str, str]:
    """Return its environment, with a secret in it that no guest may see."""
    return {**os.environ, "PYTHONPATH": f"{REPOSITORY}/src:{REPOSITORY}", "GLOVEPORT_CANARY": "canary"}


async def run(*command: str, env: dict[str, str], pass_fds: tuple[int, ...] = (), seconds: float = 300) -> tuple[str, str]:
    """Return the stdout and stderr of a process, once it has ended."""
    process = await asyncio.create_subprocess_exec(
        *command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env, pass_fds=pass_fds
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode(), err.decode()


async def play(scene: str, plan: dict[str, Any], *, user: str, without: list[str], inherit: str = "") -> dict[str, Any]:
    """Return what a host in this environment reports on the scene."""
    out, err = await run(*host_command(scene, plan, user=user, without=without, inherit=inherit), env=host_env())
    assert out, err
    return json.loads(out.splitlines()[-1])
