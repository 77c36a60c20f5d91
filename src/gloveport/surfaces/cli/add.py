"""`gloveport add`: opens a source, shows its tools, asks, and writes it into gloveport.toml."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gloveport.config import SourceConfig, load_config
from gloveport.errors import GloveportError, SourceError
from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.large_values import off_loop
from gloveport.sources.trust import what_it_does
from gloveport.surfaces.cli.tools.tool_lists import keep_list
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask, read_answer
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.sources.addition import SIGN_IN_COMMAND, SourceAddition, WantedSource
from gloveport.surfaces.terminal import Stream, stream, visible, visible_line
from gloveport.surfaces.waiting_line import WaitingLine

MAX_SHOWN_ROWS = 8  # of tools, and of warnings


@dataclass(frozen=True, slots=True)
class AddOptions(WantedSource):
    """The command line of `gloveport add`, not yet checked."""

    scope: str
    yes: bool
    as_json: bool
    color: str


def add_command(options: AddOptions) -> int:
    """Add a source and return the exit code."""
    err, out = stream(sys.stderr, options.color), stream(sys.stdout, options.color)
    path = _file(options.scope)
    return run_interruptible(_add(options, path, out, err))


async def _add(options: AddOptions, path: Path, out: Stream, err: Stream) -> int:
    addition = SourceAddition(load_config(), str(path) if options.scope == "project" else "")
    try:
        with _private_hint():
            await addition.detect(options)
            config = addition.config
            if addition.argv is not None:
                question = f"{config.name} {what_it_does(config)}. Start it to see what it offers?"
                ask(question, err, yes=options.yes, as_json=options.as_json)
            async with WaitingLine(err, f"opening {config.name}"):
                await addition.open()
        about = addition.about
        about["warnings"] = [_as_options(text) for text in about["warnings"]]
        if not options.as_json:
            _show(err, about)
        if _trusts(options, config, about["read_only"], err):
            addition.trust_annotations()
        change = addition.change(path)
        if not options.as_json:
            change.show(err)
        ask(f"Add it to {path}?", err, yes=options.yes, as_json=options.as_json)
        await addition.make(change)
        if addition.opened:
            await off_loop(lambda: keep_list(addition.kept, addition.tools(), {}))
    finally:
        await addition.close()
    if options.as_json:
        write_document(out, {"ok": True, "file": str(path), "source": about})
    else:
        err.line(f"{err.paint('✓', 'green')} added to {path}")
        if config.kind == "mcp" and addition.argv is not None:
            err.line(err.fold('  if it reads data of yours, add there: labels = ["private"] (see docs/labels.md)'))
        command = SIGN_IN_COMMAND.search(addition.sign_in)
        err.line(f"  next: {as_typed(command[1] if command else f'gloveport tools list {config.name}')}")
    return 0


def _trusts(options: AddOptions, config: SourceConfig, read_only: Sequence[str], err: Stream) -> bool:
    """Return whether the person trusts a server about the tools that it calls read-only."""
    if config.trust_annotations or config.writes or not read_only:
        return False
    if options.yes or options.as_json or not sys.stdin.isatty():
        return False
    question = f"Trust {config.name} that these {len(read_only):,} only read? Then they don't ask. [y/N] "
    return read_answer(question, err) in {"y", "yes"}


def _as_options(text: str) -> str:
    """Return a warning that names settings, as it names the options of this command."""
    return text.replace("set base_url", "give --base-url").replace("set allow_private", "add it with --private")


@contextmanager
def _private_hint() -> Iterator[None]:
    """Word the hint of a private address for this command."""
    try:
        yield
    except GloveportError as error:
        if "allow_private" not in (error.advice or ""):
            raise
        hint = "add it with --private if it may reach your own network"
        raise SourceError(error.message, code=error.code, hint=hint) from None


def _file(scope: str) -> Path:
    return config_folder() / CONFIG_FILE if scope == "user" else find_project() or Path.cwd() / CONFIG_FILE


def _show(err: Stream, about: dict[str, Any]) -> None:
    err.line(f"{err.paint(visible_line(about['title']), 'bold')} · {about['kind']} · tools.{about['name']}")
    if about["tools"]:
        tools = f"{about['tools']:,} tool{'s' * (about['tools'] != 1)}"
        err.line(f"  {tools}: {about['reads']:,} read, {about['writes']:,} write")
    if about["writes"] and not about["writes_open"]:
        is_mcp = about["kind"] == "mcp"
        how = "--writes or --trust-annotations" if is_mcp else "--writes"
        what = "may write" if is_mcp else "write"
        text = f"  those that {what} ask a person first: {how} allows them, and so does `gloveport policy set` later"
        err.line(err.fold(text, " " * 4))
    if about["read_only"]:
        shown = ", ".join(address.partition(".")[2] for address in about["read_only"][:MAX_SHOWN_ROWS])
        more = len(about["read_only"]) - MAX_SHOWN_ROWS
        rest = f" and {more:,} more" if more > 0 else ""
        text = f"  the server says that {len(about['read_only']):,} only read: {visible_line(shown)}{rest}"
        err.line(err.fold(text, " " * 4))
    for example in about["examples"]:
        err.line(f"    tools.{example}")
    if about["tools"] > MAX_SHOWN_ROWS:
        err.line(f"    … and {about['tools'] - MAX_SHOWN_ROWS:,} more")
    for slot in about["credentials"]:
        err.line(f"  needs {slot['kind']} `{visible_line(slot['slot'])}`: {visible_line(slot['hint'])}")
    for warning in about["warnings"][:MAX_SHOWN_ROWS]:
        err.line(f"  {err.paint('!', 'yellow')} {visible(warning)}")
    if len(about["warnings"]) > MAX_SHOWN_ROWS:
        err.line(f"  {err.paint('!', 'yellow')} … and {len(about['warnings']) - MAX_SHOWN_ROWS} more warnings")
