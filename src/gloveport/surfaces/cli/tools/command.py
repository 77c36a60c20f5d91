"""`gloveport tools`: finds, shows and calls the tools of the configured sources, and accepts or trusts sources."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any

from gloveport.approvals.desk import OnApproval
from gloveport.approvals.request import ApprovalRequest
from gloveport.catalog import UnknownPart
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError, SourceError, ToolError, exit_code
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.sources.trust import files_now, needs_trust, trust, trusted_files, what_it_does
from gloveport.surfaces.cli.arguments import read_arguments
from gloveport.surfaces.cli.pager import AnswerPage, paged
from gloveport.surfaces.cli.run.approval_prompt import ApprovalPrompt, can_ask
from gloveport.surfaces.cli.run.outcome_report import pending_error
from gloveport.surfaces.cli.tools.tool_lists import keep_list
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.definition_changes import accept_definition, changed_tools, definition_digest
from gloveport.surfaces.documents import answer_document, to_text, write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.policy.explanation import no_tool
from gloveport.surfaces.terminal import Stream, visible, visible_line
from gloveport.surfaces.waiting_line import WaitingLine
from gloveport.types import Tool
from gloveport.values import to_json

_HINTS = {
    "bad-arguments": "`gloveport tools describe {}` shows what it takes",
    "unknown-tool": "`gloveport tools search WORDS` finds tools",
}


def describe_command(view: ViewOptions, name: str, at: str | None) -> int:
    """Show a tool's declaration, or that of a part of its result; return the exit code."""
    only = source_named(view, name)
    with paged(view) as page:
        return with_port(view, lambda port: _describe(view, page, port, name, at), only=only, naming=name)


async def _describe(view: ViewOptions, page: AnswerPage, port: Gloveport, name: str, at: str | None) -> int:
    path = name.removeprefix("tools.")
    try:
        found = await off_loop(port.catalog.describe, path, at)
    except UnknownPart as error:
        raise OptionError(f"--at: {error}", hint='give the place of a part of the result, such as "items[].spec"') from None
    if found is None:
        raise await off_loop(no_tool, port, path)
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
        page.out.write(visible(found.typescript))
        if entry is not None and entry.suspended:
            shows = as_typed(f"`gloveport tools changes {entry.tool.source}` shows how")
            page.err.line(f"{page.err.paint('!', 'yellow')} {entry.suspended}; {shows}")
    return 0


def call_command(view: ViewOptions, name: str, args: Sequence[str], *, no_input: bool) -> int:
    """Call a tool and show its result; return the exit code."""
    given = read_arguments(args)
    prompt = ApprovalPrompt(view.err) if can_ask(no_input=no_input) else None
    pending: list[tuple[str, Any]] = []

    async def refuse(request: ApprovalRequest) -> bool:
        pending.append((request.tool, request.args))
        return False

    async def work(port: Gloveport) -> int:
        if prompt is not None:
            prompt.desk = port.approvals
        try:
            return await _call(view, port, name, given)
        except ToolError as error:
            if pending:
                raise pending_error(pending, port) from None
            if error.origin == "gloveport":  # its hint is for a program, or asks an agent to ask whoever is here
                hint = _HINTS.get(error.code, "").format(error.tool or name)
                error.hint = hint or (None if error.setting else error.hint)
            raise

    only = None if name.removeprefix("tools.").startswith("snippets.") else source_named(view, name)
    return with_port(view, work, only=only, naming=name, on_approval=prompt.ask if prompt else refuse)


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
    only = None if source is None else [view.source(source).name]
    with paged(view) as page:
        return with_port(view, lambda port: _changes(view, page, port, source), only=only, naming=source)


async def _changes(view: ViewOptions, page: AnswerPage, port: Gloveport, source: str | None) -> int:
    rows = changed_tools(port, source)
    wrong = not_open(port, source)
    if view.as_json:
        write_document(view.out, answer_document({"changed": rows}, wrong))
        return exit_code_of(wrong)
    show_problems(page.err, port)
    _show_changes(page.out, rows)
    sources = sorted({row["tool"].partition(".")[0] for row in rows})
    commands = [f"gloveport tools accept {name}" for name in sources]
    unchanged = f"nothing has changed{' in the open sources' if wrong else ''}"
    page.err.line(f"to accept: {', '.join(map(as_typed, commands))}" if commands else unchanged)
    return exit_code_of(wrong)


def _show_changes(out: Stream, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        out.line(out.paint(f"tools.{row['tool']}", "bold"))
        for line in row["diff"]:
            colour = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            out.line("  " + out.paint(visible_line(line), colour))


def accept_command(view: ViewOptions, source: str, *, yes: bool) -> int:
    """Show what has changed in a source, ask, and accept its current definition; return the exit code."""
    return with_port(
        view, lambda port: _accept(view, port, source, yes=yes), only=[view.source(source).name], naming=source
    )


async def _accept(view: ViewOptions, port: Gloveport, name: str, *, yes: bool) -> int:
    definition_digest(port, name)
    rows = changed_tools(port, name)
    if rows:
        _show_changes(view.err, rows if not view.as_json else [])
        ask(f"Accept these changes of {name}?", view.err, yes=yes, as_json=view.as_json)
        await accept_definition(port, name)
    result = f"the current definition of {name} is accepted" if rows else f"nothing has changed in {name}"
    _done(view, result, {"source": name, "accepted": rows})
    return 0


def trust_command(view: ViewOptions, source: str, *, yes: bool, field: str = "trusted") -> int:
    """Let a source of a project's file be opened; return the exit code. `field` names the result in the JSON document."""
    config = view.source(source)
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
    hint = f"hint: `gloveport tools approve` is now `gloveport tools trust {visible_line(source)}`"
    view.err.line(view.err.fold(as_typed(hint), " " * 6))
    return trust_command(view, source, yes=yes, field="approved")


def _done(view: ViewOptions, text: str, about: dict[str, Any]) -> None:
    if view.as_json:
        write_document(view.out, {"ok": True, **about})
    else:
        view.err.line(f"{view.err.paint('✓', 'green')} {text}")


def source_named(view: ViewOptions, name: str) -> list[str] | None:
    """Return the configured source in the name of a tool; None if it names none, as that of a function may."""
    first = name.removeprefix("tools.").replace(":", ".").partition(".")[0]
    return [first] if any(config.name == first for config in view.settings().sources) else None


def not_open(port: Gloveport, source: str | None = None) -> SourceError | None:
    """Return an error that names the sources that are not open, or the given one; None if all are open."""
    names = sorted({one.source for one in port.problems if one.broken and source in (None, one.source)})
    if not names:
        return None
    codes = {one.code for one in port.problems if one.broken and one.source in names}
    code = codes.pop() if len(codes) == 1 else None
    about = {"sources": names}
    return SourceError(f"not open: {', '.join(names)}", code=code, hint="`gloveport sources` says why", data=about)


def show_problems(err: Stream, port: Gloveport) -> None:
    """Write why sources are not open."""
    for problem in port.problems:
        if problem.broken:
            err.line(err.fold(f"{err.paint('✗', 'red')} {visible(problem.message)}", " " * 4))
            if problem.hint:
                err.line(err.fold(f"  hint: {as_typed(problem.hint)}", " " * 4))


def exit_code_of(wrong: GloveportError | None) -> int:
    """Return the exit code of a command that has shown what it found."""
    return exit_code(wrong.code) if wrong else 0


Work = Callable[[Gloveport], Coroutine[Any, Any, int]]


def with_port(
    view: ViewOptions,
    work: Work,
    *,
    only: Collection[str] | None = None,
    naming: str | None = None,
    on_approval: OnApproval | None = None,
) -> int:
    """Return what `work` returns for a port with the configured sources open, or only those of the given names.

    `naming` names what it needs most. The list of tools of each source that is open is kept for later commands.
    `on_approval` answers what asks.
    """
    return run_interruptible(_work(view, work, only, naming, on_approval))


async def _work(
    view: ViewOptions, work: Work, only: Collection[str] | None, naming: str | None, on_approval: OnApproval | None
) -> int:
    settings = view.settings()
    chosen = tuple(config for config in settings.sources if only is None or config.name in only)
    store = settings.governance.store_path  # opened by the first call
    port = Gloveport(config=replace(settings, sources=chosen), spare=0, on_approval=on_approval, store=store)
    quiet = logging.NullHandler()  # problems are reported by the command, once
    logging.getLogger("gloveport").addHandler(quiet)
    try:
        async with WaitingLine(view.err, f"opening {_count(chosen)}"):
            await port.connect(naming=naming)
        done = await work(port)
        await off_loop(_keep_lists, port, chosen)
        return done
    finally:
        await port.close()
        logging.getLogger("gloveport").removeHandler(quiet)


def _count(configs: Sequence[SourceConfig]) -> str:
    return configs[0].name if len(configs) == 1 else f"{len(configs)} sources"


def _keep_lists(port: Gloveport, configs: Iterable[SourceConfig]) -> None:
    tools: dict[str, list[Tool]] = {config.name: [] for config in configs if port.opened_source(config.name)}
    suspended: dict[str, str] = {}
    for tool in port.catalog.tools:
        tools.get(tool.source, []).append(tool)
        if (entry := port.catalog.entry(tool.address)) and entry.suspended:
            suspended[tool.address] = entry.suspended
    for config in configs:
        if config.name in tools:
            keep_list(config, tools[config.name], suspended)
