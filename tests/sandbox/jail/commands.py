"""Scenes for a host in its own environment: what a user of `gloveport` sees there, and what the host may do."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gloveport.sandbox.jail.syscalls import call

CLONE_NEWUSER = 0x10000000


async def play_commands(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the exit code, stdout and stderr of each `gloveport` command; all run at once."""
    with tempfile.TemporaryDirectory() as home:
        ended = await asyncio.gather(*(_command(args, home) for args in plan["commands"].values()))
    return dict(zip(plan["commands"], ended, strict=True))


async def _command(args: list[str], home: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gloveport.surfaces.cli.main", *args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "HOME": home, "NO_COLOR": "1"},
        cwd=home,
    )
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def play_allowed(_: dict[str, Any]) -> dict[str, str]:
    """Return what this host may do: its capabilities, its seccomp mode, and the result of creating a namespace."""
    status = _status()
    try:
        call("unshare", CLONE_NEWUSER)
    except OSError as error:
        made = errno.errorcode[error.errno or 0]
    else:
        made = "made"
    return {name: status[name] for name in ("CapEff", "NoNewPrivs", "Seccomp")} | {"unshare": made}


def _status() -> dict[str, str]:
    lines = Path("/proc/self/status").read_text().splitlines()
    return dict(line.split(":\t", 1) for line in lines if ":\t" in line)
