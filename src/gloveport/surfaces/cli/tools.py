"""`gloveport tools`: finds, shows and calls the tools of the configured sources, and accepts or trusts sources."""

from __future__ import annotations

import contextlib
import difflib
import logging
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gloveport.catalog import UnknownPart, typescript_stubs
from gloveport.config import Config, SourceConfig
from gloveport.errors import GloveportError, OptionError, SourceError, ToolError, exit_code
from gloveport.host.pinning import current_definition
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.sources.pins import Pins, is_pinned, pin_key
from gloveport.sources.trust import files_now, needs_trust, trust, trusted_files, what_it_does
from gloveport.suggestions import did_you_mean, question
from gloveport.surfaces.cli.arguments import read_arguments
from gloveport.surfaces.cli.file_change import ask
from gloveport.surfaces.documents import answer_document, to_text, write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.settings import load_settings
from gloveport.surfaces.terminal import Stream, clip, stream, visible, visible_line
from gloveport.types import Tool
from gloveport.values import to_json


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """The options of commands that read the settings and show something: --config, --json and --color."""

    config: str | None
    as_json: bool
    color: str

    @property
    def out(self) -> Stream:
        """Standard output, for the answer."""
        return stream(sys.stdout, self.color)

    @property
    def err(self) -> Stream:
        """Standard error, for everything else."""
        return stream(sys.stderr, self.color)

    def settings(self, *, quiet: bool = False) -> Config:
        """Return the settings of this user and this project."""
        return load_settings(self.config, color=self.color, quiet=quiet)


def list_command(view: ViewOptions, source: str | None) -> int:
    """List the tools of all sources, or of one; return the exit code."""
    _check(view, source)
    return with_port(view, lambda port: _list(view, port, source), naming=source or "")


async def _list(view: ViewOptions, port: Gloveport, source: str | None) -> int:
    found = [tool for tool in port.catalog.tools if source in (None, tool.source)]
    wrong = not_open(port, source)
    if view.as_json:
        about = {"total": len(found), "tools": [_row(port, tool) for tool in found], "problems": _problems(port)}
        write_document(view.out, answer_document(about, wrong))
        return exit_code_of(wrong)
    _show_rows(view.out, port, found)
    for problem in port.problems if source is not None else ():
        if problem.source == source and not problem.broken:
            view.err.line(f"{view.err.paint('!', 'yellow')} {visible(problem.message)}")
    if not port.catalog.tools and not port.problems:
        view.err.line("there are no sources yet: `gloveport add` adds one")
    return exit_code_of(wrong)


def search_command(view: ViewOptions, query: str, source: str | None, limit: int) -> int:
    """List the tools that match a query, the best first; return the exit code."""
    _check(view, source)
    return with_port(view, lambda port: _search(view, port, query, source, limit), naming=source or "")


async def _search(view: ViewOptions, port: Gloveport, query: str, source: str | None, limit: int) -> int:
    await port.catalog.prepare_search()
    found = await off_loop(port.catalog.search, query, source=source, limit=limit)
    rows = [_row(port, tool) for tool in found.tools]
    wrong = not_open(port, source)
    if view.as_json:
        about = {"total": found.total, "of": len(port.catalog.tools), "tools": rows, "problems": _problems(port)}
        write_document(view.out, answer_document(about, wrong))
    else:
        _show_rows(view.out, port, list(found.tools))
        counts = f"{len(rows):,} of {found.total:,} matches, among {len(port.catalog.tools):,} tools"
        view.err.line(view.err.paint(counts, "dim"))
    return exit_code_of(wrong)


def describe_command(view: ViewOptions, name: str, at: str | None) -> int:
    """Show a tool's declaration, or that of a part of its result; return the exit code."""
    return with_port(view, lambda port: _describe(view, port, name, at), naming=name)


async def _describe(view: ViewOptions, port: Gloveport, name: str, at: str | None) -> int:
    path = name.removeprefix("tools.")
    try:
        found = await off_loop(port.catalog.describe, path, at)
    except UnknownPart as error:
        raise OptionError(f"--at: {error}", hint='give the place of a part of the result, such as "items[].spec"') from None
    if found is None:
        raise await off_loop(_no_tool, port, path)
    entry = port.catalog.entry(path)
    if view.as_json:
        about = {
            "path": found.path,
            "description": found.description,
            "kind": found.kind,
            "writes": found.writes,
            "suspended": bool(entry and entry.suspended),
            "pages": found.pages,
            "parameters": [dict(row) for row in found.parameters],
            "typescript": found.typescript,
            "python": found.python,
            "left_out": list(found.left_out),
        }
        write_document(view.out, {"ok": True, "tool": about})
    else:
        view.out.write(visible(found.typescript))
        if entry is not None and entry.suspended:
            view.err.line(f"{view.err.paint('!', 'yellow')} {entry.suspended}")
    return 0


def call_command(view: ViewOptions, name: str, args: Sequence[str]) -> int:
    """Call a tool and show its result; return the exit code."""
    given = read_arguments(args)
    return with_port(view, lambda port: _call(view, port, name, given), naming=name)


async def _call(view: ViewOptions, port: Gloveport, name: str, args: dict[str, Any]) -> int:
    path = name.removeprefix("tools.")
    value = to_json(await port.call(path, args))
    if view.as_json:
        write_document(view.out, {"ok": True, "tool": path, "value": value})
    elif value is not None:
        view.out.line(visible(value) if isinstance(value, str) else to_text(value, indented=True))
    return 0


def changes_command(view: ViewOptions, source: str | None) -> int:
    """Show the tools whose definitions have changed since they were accepted; return the exit code."""
    _check(view, source)
    return with_port(view, lambda port: _changes(view, port, source), naming=source)


async def _changes(view: ViewOptions, port: Gloveport, source: str | None) -> int:
    rows = _changed(port, source)
    wrong = not_open(port, source)
    if view.as_json:
        write_document(view.out, answer_document({"changed": rows}, wrong))
        return exit_code_of(wrong)
    _show_changes(view.out, rows)
    sources = sorted({row["tool"].partition(".")[0] for row in rows})
    commands = [f"gloveport tools accept {name}" for name in sources]
    unchanged = f"nothing has changed{' in the open sources' if wrong else ''}"
    view.err.line(f"to accept: {', '.join(commands)}" if commands else unchanged)
    return exit_code_of(wrong)


def _changed(port: Gloveport, source: str | None) -> list[dict[str, Any]]:
    """Return the suspended tools, each with the difference from its accepted definition."""
    entries = ((tool, port.catalog.entry(tool.address)) for tool in port.catalog.tools if source in (None, tool.source))
    return [{"tool": tool.address, "diff": _difference(port, tool)} for tool, entry in entries if entry and entry.suspended]


def _show_changes(out: Stream, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        out.line(out.paint(f"tools.{row['tool']}", "bold"))
        for line in row["diff"]:
            colour = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            out.line("  " + out.paint(visible_line(line), colour))


def _difference(port: Gloveport, tool: Tool) -> list[str]:
    """Return the difference between the accepted and the current declaration; all of the current one if the old is lost."""
    before, after = port.versions(tool.address)
    then = typescript_stubs.declaration([(tool.address, before)]).splitlines() if before else []
    now = typescript_stubs.declaration([(tool.address, after)]).splitlines() if after else []
    lines = [
        line for line in difflib.unified_diff(then, now, lineterm="", n=2) if not line.startswith(("---", "+++", "@@"))
    ]
    # A fingerprint covers more than the declaration: also where requests go, and what goes with them (D3).
    return lines or ["the address of its requests, their credentials, or a text too long to show has changed"]


def accept_command(view: ViewOptions, source: str, *, yes: bool) -> int:
    """Show what has changed in a source, ask, and accept its current definition; return the exit code."""
    return with_port(view, lambda port: _accept(view, port, source, yes=yes), naming=source)


async def _accept(view: ViewOptions, port: Gloveport, name: str, *, yes: bool) -> int:
    config = _configured(view, name)
    opened = port.opened_source(name)
    if opened is None or not is_pinned(config):
        raise OptionError(f"the source {name} has no definition to accept", hint="`gloveport sources` lists the sources")
    rows = _changed(port, name)
    if rows:
        _show_changes(view.err, rows if not view.as_json else [])
        ask(f"Accept these changes of {name}?", view.err, yes=yes, as_json=view.as_json)
        await off_loop(lambda: Pins.of_user().pin(pin_key(config), current_definition(opened)))
    result = f"the current definition of {name} is accepted" if rows else f"nothing has changed in {name}"
    _done(view, result, {"source": name, "accepted": rows})
    return 0


def trust_command(view: ViewOptions, source: str, *, yes: bool, field: str = "trusted") -> int:
    """Let a source of a project's file be opened; return the exit code. `field` names the result in the JSON document."""
    config = _configured(view, source)
    files = files_now(config)
    known = trusted_files(config)
    if not needs_trust(config) and (known is None or known.digests == files):
        _done(view, f"the source {source} needs no trust: it may be opened already", {"source": source, field: False})
        return 0
    view.err.line(f"{source} of {visible_line(config.settings)} {what_it_does(config)}")
    for path, digest in files.items():
        before = known.digests.get(path) if known else None
        state = "" if before == digest else "  (new)" if before is None else "  (changed)"
        view.err.line(f"  may import {visible_line(path)}{state}")
    ask("Trust it?", view.err, yes=yes, as_json=view.as_json)
    trust(config, files=files)
    _done(view, f"the source {source} is trusted: it may be opened", {"source": source, field: True})
    return 0


def approve_command(view: ViewOptions, source: str, *, yes: bool) -> int:
    """Do what `trust` does under its old name, with a hint on standard error; to be removed in the next release."""
    view.err.line(f"hint: `gloveport tools approve` is now `gloveport tools trust {visible_line(source)}`")
    return trust_command(view, source, yes=yes, field="approved")


def _done(view: ViewOptions, text: str, about: dict[str, Any]) -> None:
    if view.as_json:
        write_document(view.out, {"ok": True, **about})
    else:
        view.err.line(f"{view.err.paint('✓', 'green')} {text}")


def _check(view: ViewOptions, source: str | None) -> None:
    if source is not None:
        _configured(view, source)


def _configured(view: ViewOptions, name: str) -> SourceConfig:
    found = {config.name: config for config in view.settings().sources}
    if name not in found:
        known = f"the sources are {', '.join(found)}" if found else "`gloveport add` adds one"
        raise OptionError(f"there is no source `{name}`", hint=did_you_mean(name, found) or known)
    return found[name]


def not_open(port: Gloveport, source: str | None = None) -> SourceError | None:
    """Return the error that names the sources that are not open, of all or of one; a command shows the others first."""
    names = sorted({one.source for one in port.problems if one.broken and source in (None, one.source)})
    if not names:
        return None
    return SourceError(f"not open: {', '.join(names)}", hint="`gloveport sources` says why", data={"sources": names})


def exit_code_of(wrong: GloveportError | None) -> int:
    """Return the exit code of a command that has shown what it found."""
    return exit_code(wrong.code) if wrong else 0


def _no_tool(port: Gloveport, path: str) -> ToolError:
    if broken := port.catalog.source_problem(path):
        return ToolError(broken.refusal(path[:200]), code="source-failed", hint=broken.hint)
    meant = port.catalog.suggest(path)
    hint = question(meant) if meant else "`gloveport tools search WORDS` finds tools"
    return ToolError(f"there is no tool `{path[:200]}`", code="unknown-tool", hint=hint)


def _row(port: Gloveport, tool: Tool) -> dict[str, Any]:
    entry = port.catalog.entry(tool.address)
    return {
        "path": port.catalog.path_of(tool),
        "description": tool.description.partition("\n")[0],
        "kind": tool.kind,
        "writes": tool.writes,
        "suspended": bool(entry and entry.suspended),
    }


def _show_rows(out: Stream, port: Gloveport, tools: list[Tool]) -> None:
    rows = [_row(port, tool) for tool in tools]
    width = min(60, max((len(row["path"]) for row in rows), default=0))
    for row in rows:
        mark = out.paint("!", "yellow") if row["suspended"] else out.paint("w", "yellow") if row["writes"] else " "
        text = visible_line(row["description"])
        room = max(20, out.columns - width - 4)
        out.line(f"{mark} {row['path']:<{width}}  {out.paint(clip(text, room) if out.terminal else text, 'dim')}".rstrip())


Work = Callable[[Gloveport], Coroutine[Any, Any, int]]


def with_port(view: ViewOptions, work: Work, naming: str | None = None) -> int:
    """Return what `work` returns for a port with the configured sources open; `naming` names what it needs most."""
    return run_interruptible(_work(view, work, naming))


async def _work(view: ViewOptions, work: Work, naming: str | None) -> int:
    async with _connected(view, naming) as port:
        return await work(port)


@contextlib.asynccontextmanager
async def _connected(view: ViewOptions, naming: str | None) -> AsyncIterator[Gloveport]:
    """Yield a port with its sources open and no sandbox started; broken sources are reported, and the others work."""
    port = Gloveport(config=view.settings(), spare=0)
    quiet = logging.NullHandler()  # problems are reported below, once
    logging.getLogger("gloveport").addHandler(quiet)
    try:
        await port.connect(naming=naming)
        for problem in port.problems if not view.as_json else ():
            if problem.broken:
                hint = f"\n  hint: {problem.hint}" if problem.hint else ""
                view.err.line(f"{view.err.paint('✗', 'red')} {visible(problem.message)}{hint}")
        yield port
    finally:
        await port.close()
        logging.getLogger("gloveport").removeHandler(quiet)


def _problems(port: Gloveport) -> list[dict[str, Any]]:
    return [asdict(problem) for problem in port.problems]
