"""`gloveport add`: opens a source, shows its tools, asks, and writes it into gloveport.toml."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gloveport import urls
from gloveport.config import SourceConfig, load_config
from gloveport.errors import GloveportError, OptionError, SourceError, ToolError
from gloveport.folders import CONFIG_FILE, cache_folder, config_folder, find_project
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.host.options import strength_from
from gloveport.host.pinning import current_definition
from gloveport.host.plugins import port_plugins
from gloveport.large_values import off_loop
from gloveport.policy.credentials.configured import TOKEN_SLOT, ConfiguredCredentials
from gloveport.policy.credentials.environment import default_variable
from gloveport.policy.egress import Egress
from gloveport.policy.egress.addresses import refusal
from gloveport.sources import OpenedSource, SourceInfo
from gloveport.sources.context import SourceContext
from gloveport.sources.detection import DOCUMENT_SUFFIXES, DetectedSource, detect
from gloveport.sources.opening import open_source
from gloveport.sources.pins import Pins, is_pinned
from gloveport.sources.trust import trust, what_it_does
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.cli.file_change import FileChange, ask, read_answer, read_text
from gloveport.surfaces.cli.tools.tool_lists import keep_list
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Stream, stream, visible, visible_line
from gloveport.surfaces.waiting_line import WaitingLine
from gloveport.tool_names import RESERVED_SOURCE_NAMES, ROOT_SOURCE, problem_with
from gloveport.types import Tool

MAX_SHOWN_ROWS = 8  # of tools, and of warnings
SIGN_IN_COMMAND = re.compile(r"`(gloveport auth [^`]+)`")
PRIVATE_HINT = ": add it with --private if it may reach your own network"


@dataclass(frozen=True, slots=True)
class AddOptions:
    """The command line of `gloveport add`, not yet checked."""

    what: tuple[str, ...]
    name: str | None
    kind: str | None
    base_url: str | None
    private: bool
    writes: bool
    trust_annotations: bool
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
    settings = load_config()
    egress, compilers = Egress(), DefinitionTasks(strength_from(settings.sandbox.get("minimum", "kernel")))
    kinds = port_plugins(settings.plugins).extensions.kinds
    if options.kind is not None and options.kind not in kinds:
        hint = did_you_mean(options.kind, kinds) or f"the kinds are {', '.join(kinds)}; plugins add more"
        raise OptionError(f"there is no kind of source {options.kind!r:.60}", hint=hint)
    credentials = ConfiguredCredentials({}, egress=egress)
    context = SourceContext(egress, credentials, cache_folder() / "definitions", compilers, kinds)
    try:
        with _private_hint():
            detected = await _detect(options, context)
            config = detected.config
            if not isinstance(config.location, str):
                question = f"{config.name} {what_it_does(config)}. Start it to see what it offers?"
                ask(question, err, yes=options.yes, as_json=options.as_json)
            async with WaitingLine(err, f"opening {config.name}"):
                opened, sign_in = await _open(config, context, detected)
        try:
            about = _about(opened, config, egress) if opened else _unopened(config, sign_in)
            if not options.as_json:
                _show(err, about)
            config = _with_trust(options, config, about["read_only"], err)
            change = _change(path, config)
            if not options.as_json:
                change.show(err)
            ask(f"Add it to {path}?", err, yes=options.yes, as_json=options.as_json)
            change.make()
            kept = replace(config, settings=str(path) if options.scope == "project" else "")
            trust(kept)
            if opened and is_pinned(kept):
                await off_loop(lambda: Pins.of_user().pin(kept.pin_key, current_definition(opened)))
            if opened:
                await off_loop(lambda: keep_list(kept, _tools(opened, kept), {}))
        finally:
            if opened:
                await opened.source.close()
    finally:
        await compilers.close()
        await egress.close()
    if options.as_json:
        write_document(out, {"ok": True, "file": str(path), "source": about})
    else:
        err.line(f"{err.paint('✓', 'green')} added to {path}")
        if config.kind == "mcp" and not isinstance(config.location, str):
            err.line(err.fold('  if it reads data of yours, add there: labels = ["private"] (see docs/labels.md)'))
        command = SIGN_IN_COMMAND.search(sign_in)
        err.line(f"  next: {as_typed(command[1] if command else f'gloveport tools list {config.name}')}")
    return 0


async def _open(config: SourceConfig, context: SourceContext, detected: DetectedSource) -> tuple[OpenedSource | None, str]:
    """Return the open source; nothing and how to sign in, when its service wants that first. It is added before."""
    try:
        return await open_source(config, context, detected.download), ""
    except SourceError as error:
        if error.code != "auth-required" or not SIGN_IN_COMMAND.search(error.hint or ""):
            raise
        return None, error.hint or ""


def _unopened(config: SourceConfig, sign_in: str) -> dict[str, Any]:
    """Return the summary of a source whose tools are not known before somebody has signed in."""
    variable = default_variable(config.name, TOKEN_SLOT)
    token = {"slot": TOKEN_SLOT, "kind": "bearer", "variable": variable, "hint": sign_in}
    counts = {"tools": 0, "reads": 0, "writes": 0, "writes_open": bool(config.writes)}
    about = {"name": config.name, "kind": config.kind, "title": config.name, **counts, "read_only": []}
    return {**about, "credentials": [token], "warnings": ["its tools are known after you have signed in"], "examples": []}


def _with_trust(options: AddOptions, config: SourceConfig, read_only: Sequence[str], err: Stream) -> SourceConfig:
    """Return the settings of a server; the person may trust it about the tools that it calls read-only."""
    if config.trust_annotations or config.writes or not read_only:
        return config
    if options.yes or options.as_json or not sys.stdin.isatty():
        return config
    question = f"Trust {config.name} that these {len(read_only):,} only read? Then they don't ask. [y/N] "
    return replace(config, trust_annotations=read_answer(question, err) in {"y", "yes"})


def _tools(opened: OpenedSource, config: SourceConfig) -> list[Tool]:
    """Return the tools of the source as the settings that were written make them."""
    reads = set(opened.info.read_only) if config.trust_annotations else set()
    return [replace(tool, writes=False) if tool.address in reads else tool for tool in opened.source.tools()]


async def _detect(options: AddOptions, context: SourceContext) -> DetectedSource:
    if options.name is not None and (problem := problem_with(options.name)):
        raise OptionError(f"the name {options.name!a} {problem}")
    if options.name in RESERVED_SOURCE_NAMES or options.name == ROOT_SOURCE:
        raise OptionError(
            f"a source can't be called {options.name}: Gloveport uses that name itself", hint="choose another name"
        )
    if options.trust_annotations and options.kind not in (None, "mcp"):
        raise OptionError("only MCP servers have annotations to trust", hint="omit --trust-annotations")
    are_sources = options.kind is None and all(_is_source(word) for word in options.what)
    if len(options.what) > 1 and are_sources and not _is_program(options.what[0]):
        hint = f"add them one by one, beginning with `gloveport add {shlex.quote(options.what[0])}`"
        raise OptionError(f"these are {len(options.what)} sources, and one is added at a time", hint=hint)
    text = options.what[0] if len(options.what) == 1 else shlex.join(options.what)
    detected = await detect(text, context, name=options.name, kind=options.kind, allow_private=options.private)
    config = replace(detected.config, base_url=options.base_url)
    trusts = config.kind == "mcp" and options.trust_annotations
    return replace(detected, config=replace(config, writes=("*",) if options.writes else (), trust_annotations=trusts))


def _is_program(word: str) -> bool:
    """Return whether the word starts a command: `/usr/bin/python3 server.py` is no list of sources."""
    return not _is_file_name(word) and shutil.which(word) is not None


def _is_source(word: str) -> bool:
    return "://" in word or _is_file_name(word) or os.path.isfile(os.path.expanduser(word))


def _is_file_name(word: str) -> bool:
    """Return whether the word is called like a source, whether such a file exists or not."""
    return os.path.splitext(word)[1] in {".py", *DOCUMENT_SUFFIXES}


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


def _change(path: Path, config: SourceConfig) -> FileChange:
    """Return the change that puts the source into the file; comments and order stay."""
    text = read_text(path)
    try:
        document = tomlkit.parse(text or "")
    except TOMLKitError as error:
        raise OptionError(
            f"{path} is not valid TOML: {error}", hint="correct the file first; nothing was changed"
        ) from None
    sources = document.setdefault("sources", tomlkit.table(is_super_table=True))
    if not isinstance(sources, MutableMapping):
        raise OptionError(f"`sources` in {path} is not a table", hint="write [sources.NAME]; nothing was changed")
    if config.name in sources:
        raise OptionError(f"{path} already has [sources.{config.name}]", hint="choose another name with --name")
    table = tomlkit.table()
    location = config.location if not isinstance(config.location, str) else _relative(config.location, path)
    table[config.kind] = list(location) if isinstance(location, tuple) else location
    if config.base_url:
        table["base_url"] = config.base_url
    if config.allow_private:
        table["allow_private"] = True
    if config.writes:
        table["writes"] = "allow"
    if config.trust_annotations:
        table["trust_annotations"] = True
    sources[config.name] = table
    return FileChange(path, text, tomlkit.dumps(document))


def _relative(location: str, path: Path) -> str:
    if "://" in location or not os.path.isabs(location):
        return location
    found = os.path.relpath(location, path.parent)
    return location if found.startswith("..") else found


def _about(opened: OpenedSource, config: SourceConfig, egress: Egress) -> dict[str, Any]:
    """Return a summary of the source: its tools, how many of them write, and the credentials that it needs."""
    tools, info = opened.source.tools(), opened.info
    credentials = ConfiguredCredentials({}, egress=egress, sources=_names())
    slots = [
        {
            "slot": slot.name,
            "kind": slot.kind,
            "variable": default_variable(config.name, slot.name),
            "hint": credentials.wanted(config.name, slot.name),
        }
        for slot in info.slots
        if config.kind != "graphql"  # its endpoint has just answered without one
    ]
    return {
        "name": config.name,
        "kind": config.kind,
        "title": info.title or config.name,
        "tools": len(tools),
        "reads": sum(not tool.writes for tool in tools),
        "writes": sum(tool.writes for tool in tools),
        "writes_open": bool(config.writes),
        "read_only": list(info.read_only),
        "credentials": slots,
        "warnings": [*_unreachable(info, config), *info.warnings],
        "examples": [tool.address for tool in tools[:MAX_SHOWN_ROWS]],
    }


def _unreachable(info: SourceInfo, config: SourceConfig) -> Iterator[str]:
    """Warn of calls that are sure to fail because the source's server may not be reached."""
    if info.server_problem:
        yield f"{info.server_problem}; give --base-url"
    try:
        host = urls.parse(info.server).host if info.server else ""
        if host and (rule := refusal("127.0.0.1" if host == "localhost" else host, allow_private=config.allow_private)):
            hint = PRIVATE_HINT if rule.kind == "private" else ""
            yield f"its calls go to {info.server}, which may not be reached ({rule}){hint}"
    except ToolError as error:
        yield f"{error.message}; give --base-url"
    except ValueError:
        return  # a host name: its address is known only when it is called


def _names() -> list[str]:
    """Return the names of the configured sources; none if the settings can't be read."""
    with suppress(OptionError):
        return [config.name for config in load_config().sources]
    return []


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
