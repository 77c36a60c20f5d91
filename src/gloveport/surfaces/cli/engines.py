"""`gloveport engines` and `gloveport version`: what is installed here, as text or as one JSON document."""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence
from dataclasses import asdict

import gloveport
from gloveport.errors import CODES, SandboxError, exit_code
from gloveport.host.engine_pools import hosted_engines
from gloveport.host.plugins import port_plugins
from gloveport.host.sandbox_host import connector
from gloveport.sandbox.engines.engine import installed_version
from gloveport.sandbox.engines.registry import REMOTE_ENGINES, EngineStatus, preferred_engines, try_engines
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import answer_document, write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Stream, stream


def engines_command(view: ViewOptions) -> int:
    """List the engines, with those of plugins and of the sandbox host; return 0 when one can be used, else 8."""
    settings, out = view.settings(), view.out
    sandbox, engines = settings.sandbox, port_plugins(settings.plugins).extensions.engines
    added = (engine for name, engine in engines.items() if engines.plugin_of(name))
    preferred = preferred_engines(sandbox.get("engines", ()), engines)
    found = run_interruptible(try_engines((*added, *hosted_engines(connector(sandbox))), preferred))
    wrong = None
    if not any(engine.available for engine in found):
        wrong = SandboxError("no engine can be used here", hint=CODES["sandbox-unavailable"].fix)
    if view.as_json:
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
    out.line(out.fold(f"{mark} {name} · {', '.join(engine.languages)} · {state}{by_name}", "    "))
    for ability in engine.abilities:
        out.line(out.fold(f"    {ability.name:<11} {ability.state:<4} {ability.detail}", " " * 21))
    if not engine.available and engine.name not in REMOTE_ENGINES:
        out.line(out.fold(f"    next: {as_typed(engine.fix or 'gloveport doctor')}", " " * 10))


def version_command(*, as_json: bool) -> int:
    """Print the version of Gloveport, Deno, Python and the platform; return the exit code."""
    out = stream(sys.stdout)
    on = f"{platform.system()} {platform.machine()}"
    if as_json:
        listed = [{"name": engine.name, "version": engine.version, "strength": engine.strength} for engine in _engines()]
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


def _engines() -> Sequence[EngineStatus]:
    return run_interruptible(try_engines())
