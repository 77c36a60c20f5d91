"""The first event of a run: the program, its input and environment, its seed, its time and its limits."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gloveport.types import Limits, Program
from gloveport.values import encode


@dataclass(frozen=True, slots=True)
class RunSetup:
    """What a run receives besides its program. `now` is in microseconds since the epoch."""

    sources: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    input: Any = None
    has_input: bool = False
    seed: bytes = b""
    now: int = 0
    state: bytes | None = None  # of a session, encoded
    modules: RunModules | None = None
    packages: Mapping[str, str] = field(default_factory=dict)  # the hashes of the packages that it can import, by id


@dataclass(frozen=True, slots=True)
class RunModules:
    """The modules that a program imports: Node's, by name, and one script of CommonJS that holds all others."""

    builtins: tuple[str, ...] = ()
    script: str | None = None


def start_event(program: Program, setup: RunSetup, limits: Limits, now: int) -> bytes:
    """Return the first event of a run. Do this for a large input in a thread."""
    fields = {
        "code": program.code if program.erased is None else program.erased,
        "dialect": program.dialect if program.erased is None else "javascript",
        "typed": None if program.erased is None else program.code,
        "entry": program.entry,
        "tail": program.tail,
        "seed": base64.b64encode(setup.seed or os.urandom(32)).decode("ascii"),
        "sources": list(setup.sources),
        "has_input": setup.has_input,
        "memory_mb": limits.memory_mb,
        "max_frame_bytes": limits.max_frame_bytes,
        "max_log_bytes": limits.max_log_bytes,
    }
    if setup.modules is not None:
        script = {} if setup.modules.script is None else {"script": setup.modules.script}
        fields["modules"] = {"builtins": list(setup.modules.builtins), **script}
    if setup.packages:
        fields["packages"] = dict(setup.packages)
    rest = b',"env":' + encode(dict(setup.env), "env")
    if setup.has_input:
        rest += b',"input":' + encode(setup.input, "input")
    if setup.state is not None:
        rest += b',"state":' + setup.state
    return b'["start",%d,' % now + orjson.dumps(fields)[:-1] + rest + b"}]"
