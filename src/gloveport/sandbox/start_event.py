"""The first event of a run: the program, its input and environment, its seed, its time and its limits."""

from __future__ import annotations

import base64
import os
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from gloveport.types import Limits, Program
from gloveport.values import encode, encode_large

_MODULES_HEAD = re.compile(rb'\["start",\d+,\{"modules":')
_SCRIPT_HEAD = re.compile(rb'\["start",\d+,\{"modules":\{"builtins":\[[^][]{0,4096}\],"script_bytes":(\d{1,12}),"script":')


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
    prepared: Preparation | None = None  # of the process
    packages: Mapping[str, str] = field(default_factory=dict)  # the hashes of the packages that it can import, by id


@dataclass(frozen=True, slots=True)
class RunModules:
    """The modules that a program imports: Node's, by name, and one script of CommonJS that holds all others.

    `imports` are the packages that a Python program imports, or the kinds and names of what a JavaScript program does.
    """

    builtins: tuple[str, ...] = ()
    script: str | None = None
    imports: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Preparation:
    """What a process has done before its run came: it has imported modules, at a time and with a seed (see `prepare.js`).

    `now` is in microseconds since the epoch. The run begins with the same seed, and its first event says all this, so that
    another process can be prepared in the same way.
    """

    modules: RunModules
    now: int
    seed: bytes

    @staticmethod
    def new(modules: RunModules) -> Preparation:
        """Return a preparation that begins now."""
        return Preparation(modules, time.time_ns() // 1000, os.urandom(32))

    def event(self) -> bytes:
        """Return the event that prepares a process."""
        seed = base64.b64encode(self.seed)
        return b'["prepare",%d,{%b"seed":"%b"}]' % (self.now, _modules(self.modules, None), seed)


def preparation_of(start: bytes) -> Preparation | None:
    """Return how the process was prepared that got this first event of a run; None if it was not."""
    if not _MODULES_HEAD.match(start):
        return None
    setup = orjson.loads(start)[2]
    found = setup["modules"]
    return Preparation(_read(found), found["prepared"], base64.b64decode(setup["seed"])) if "prepared" in found else None


def modules_of(start: bytes) -> RunModules:
    """Return the modules that the first event of a run has."""
    return _read(orjson.loads(start)[2]["modules"]) if _MODULES_HEAD.match(start) else RunModules()


def _read(found: Mapping[str, Any]) -> RunModules:
    return RunModules(tuple(found["builtins"]), found.get("script"), tuple(found.get("imports", ())))


def without_script(start: bytes) -> bytes:
    """Return the first event of a run as a prepared process gets it: that has the script."""
    found = _SCRIPT_HEAD.match(start)
    if found is None:
        return start
    return start[: found.end()] + b"null" + start[found.end() + int(found[1]) :]


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
    if setup.packages:
        fields["packages"] = dict(setup.packages)
    rest = b',"env":' + encode(dict(setup.env), "env")
    if setup.has_input:
        rest += b',"input":' + encode_large(setup.input, "input")
    if setup.state is not None:
        rest += b',"state":' + setup.state
    return b'["start",%d,{' % now + _modules(setup.modules, setup.prepared) + orjson.dumps(fields)[1:-1] + rest + b"}]"


def _modules(modules: RunModules | None, prepared: Preparation | None) -> bytes:
    """Return the field of the modules. It comes first, so that the store finds the script, which it keeps once."""
    if modules is None:
        return b""
    more = b""
    if modules.script is not None:
        text = orjson.dumps(modules.script)
        more = b',"script_bytes":%d,"script":%b' % (len(text), text)
    if modules.imports:
        more += b',"imports":%b' % orjson.dumps(modules.imports)
    if prepared is not None:
        more += b',"prepared":%d' % prepared.now
    return b'"modules":{"builtins":%b%b},' % (orjson.dumps(modules.builtins), more)
