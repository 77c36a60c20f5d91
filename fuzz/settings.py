"""Malformed `gloveport.toml`: valid settings, or an OptionError with a position."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

from fuzz.mutation import mutate_tokens
from fuzz.target import BrokenPromise, Target
from gloveport import Gloveport
from gloveport.config import load_config
from gloveport.errors import OptionError

PROJECT = b"""[sandbox]
minimum = "kernel"
[limits]
wall_seconds = 2.5
memory_mb = 64
[sources.github]
openapi = "https://example.com/api.json"
base_url = "https://example.com/v3"
headers = { "X-Api-Version" = "2022-11-28" }
include = ["issues.*"]
writes = "allow"
timeout_seconds = 5
[sources.github.credentials]
bearer = "env:GITHUB_TOKEN"
"""
OTHERS = (
    b'[sources.a]\nmcp = ["npx", "server"]\nenv = { A = "b" }\n[sources."b.c"]\ngraphql = "https://a/b"\nallow_private = true\n',
    b"sources.a.mcp = 'http://x'\nsources.a.verify_tls = false\nlimits = { max_calls = 0x10 }\n",
    b"[[rules]]\nallow = 1979-05-27T07:32:00Z\n[sources]\nx = [1, {y = inf}, '''z''']\n",
)
WORDS = b"""[ ] [[ ]] = . , { } ' " \"\"\" # \n sources limits sandbox openapi mcp graphql base_url headers include credentials
minimum kernel full none true false inf nan -1 0 1e400 99999999999999999999 0xff 1979-05-27 07:32:00 "\\u0000" "env:X" '../..'""".split(
    b" "
)


def judge(data: bytes) -> None:
    """Construct a Gloveport from it as the project's file and as the user's file, or refuse it with an OptionError."""
    with tempfile.TemporaryDirectory() as folder:
        mine, yours = Path(folder, "gloveport.toml"), Path(folder, "user.toml")
        for written, beside in ((mine, yours), (yours, mine)):
            written.write_bytes(data)
            beside.write_bytes(PROJECT)
            with contextlib.suppress(OptionError):
                port = Gloveport(config=load_config(mine, user=yours), spare=0)
                if port._minimum not in ("full", "kernel", "none"):
                    raise BrokenPromise(f"the minimum is {port._minimum!r}")


TARGETS = (Target("settings", judge, mutate_tokens(WORDS), (PROJECT, *OTHERS), ("config.py",)),)
