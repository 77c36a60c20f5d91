"""`gloveport engines`, `version` and `help`: what there is, as text or as one JSON document."""

from __future__ import annotations

import asyncio
import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict

import gloveport
from gloveport.errors import CODES, OptionError, SandboxError, exit_code
from gloveport.sandbox.engines.engine import installed_version
from gloveport.sandbox.engines.registry import EngineStatus, try_engines
from gloveport.surfaces.cli.report import answer_document
from gloveport.surfaces.cli.topics import TOPICS, topic_text
from gloveport.surfaces.did_you_mean import did_you_mean
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import Stream, stream


def engines_command(*, as_json: bool, color: str) -> int:
    """List the engines; exit code 0 when at least one can be used, else 8."""
    found = asyncio.run(try_engines())
    out = stream(sys.stdout, color)
    wrong = None
    if not any(engine.available for engine in found):
        wrong = SandboxError("no engine can be used here", hint=CODES["sandbox-unavailable"].fix)
    if as_json:
        listed = [asdict(engine) | {"available": engine.available} for engine in found]
        write_document(out, answer_document({"engines": listed}, wrong))
    else:
        for engine in found:
            _show_engine(out, engine)
    return exit_code(wrong.code) if wrong else 0


def _show_engine(out: Stream, engine: EngineStatus) -> None:
    mark = out.paint("✓", "green") if engine.available else out.paint("✗", "red")
    state = f"jailed: {engine.strength}" if engine.available else f"can't be used: {engine.problem}"
    name = out.paint(f"{engine.name} {engine.version or ''}".strip(), "bold")
    by_name = "" if engine.chosen or not engine.available else f" · when a run names it (--engine {engine.name})"
    out.line(f"{mark} {name} · {', '.join(engine.languages)} · {state}{by_name}")
    for ability in engine.abilities:
        out.line(f"    {ability.name:<11} {ability.state:<4} {ability.detail}")
    if not engine.available:
        out.line("    next: gloveport doctor")


def version_command(*, as_json: bool) -> int:
    """Say the version and what it stands on."""
    out = stream(sys.stdout)
    on = f"{platform.system()} {platform.machine()}"
    if as_json:
        listed = [{"name": engine.name, "version": engine.version, "strength": engine.strength} for engine in _tried()]
        about = {
            "version": gloveport.__version__,
            "python": platform.python_version(),
            "platform": on,
            "engines": listed,
        }
        write_document(out, {"ok": True, **about})
    else:
        deno, python = installed_version("deno"), platform.python_version()
        out.line(f"gloveport {gloveport.__version__} · deno {deno} · Python {python} · {on}")
    return 0


def _tried() -> Sequence[EngineStatus]:
    return asyncio.run(try_engines())


def help_command(page: str | None, topic: str | None, commands: Sequence[str], *, as_json: bool) -> int:
    """Explain a topic: `page` is the help of the command of that name, if there is one."""
    text = page or topic_text(topic or "")
    if text is None:
        known = [*commands, *TOPICS, *CODES]
        hint = did_you_mean(topic or "", known) or f"the topics are {', '.join([*commands, *TOPICS])} and the error codes"
        raise OptionError(f"there is no help on `{topic}`", hint=hint)
    out = stream(sys.stdout)
    if as_json:
        write_document(out, {"ok": True, "topic": topic, "text": text})
    else:
        out.line(text.rstrip("\n"))
    return 0
