"""`gloveport` without arguments in a terminal: what it is, what is configured here, and the next command."""

from __future__ import annotations

import sys

from gloveport.config import Config
from gloveport.errors import GloveportError
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.settings import load_settings
from gloveport.surfaces.terminal import Stream, clip, stream, visible_line

WHAT = "Gloveport runs programs that AI agents write in a sealed sandbox; their tool calls come out through one port."
MAX_SOURCES = 8


def show_front_page() -> None:
    """Write the page; settings that can't be read are part of what it says."""
    out = stream(sys.stdout)
    out.line(out.fold(WHAT))
    out.line()
    try:
        settings = load_settings(None)
    except GloveportError as error:
        out.line(out.fold(f"{out.paint('✗', 'red')} {visible_line(error.message)}", " " * 4))
        settings = None
    if settings is not None:
        _show_sources(out, settings)
    out.line("Next:")
    for written, text in _next(settings):
        command = as_typed(written)
        if len(command) + len(text) + 6 <= out.columns:
            out.line(f"  {out.paint(command, 'bold')}  {text}")
        else:
            out.line(f"  {out.paint(command, 'bold')}")
            out.line(out.fold(f"    {text}", " " * 4))


def _show_sources(out: Stream, settings: Config) -> None:
    if not settings.sources:
        out.line(out.fold("No sources are configured here: programs have no tools yet.") + "\n")
        return
    files = " and ".join(visible_line(str(path)) for path in settings.files)
    out.line(clip(f"Sources in {files}:", out.columns))
    for config in settings.sources[:MAX_SOURCES]:
        out.line(clip(visible_line(f"  {config.name}  {config.kind}"), out.columns))
    if len(settings.sources) > MAX_SOURCES:
        out.line(f"  … and {len(settings.sources) - MAX_SOURCES} more")
    out.line()


def _next(settings: Config | None) -> list[tuple[str, str]]:
    if settings is None:
        return [("gloveport config show", "shows the settings and their places")]
    if not settings.sources:
        first = ("gloveport add --help", "shows how to add the tools of an API, an MCP server or a Python file")
    else:
        first = ("gloveport tools list", "lists their tools; `tools search` finds one by what it does")
    return [
        first,
        ("gloveport connect claude-code", "gives them to an agent"),
        ("gloveport doctor", "checks the sandbox on this machine"),
        ("gloveport --help", "lists all commands"),
    ]
