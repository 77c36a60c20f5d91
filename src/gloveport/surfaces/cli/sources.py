"""`gloveport sources`: the configured sources, and whether each can be used."""

from __future__ import annotations

from collections.abc import Mapping

from gloveport.host.port import Gloveport
from gloveport.surfaces.cli.tools.command import exit_code_of, not_open, show_problems, with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import answer_document, write_document
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.sources.source_rows import configured_rows
from gloveport.surfaces.terminal import Colour, visible_line

STATE_COLOURS: Mapping[str, Colour] = {"open": "green", "untrusted": "yellow", "opening": "yellow", "broken": "red"}


def sources_command(view: ViewOptions) -> int:
    """List the configured sources with their states; return the exit code."""
    return with_port(view, lambda port: _sources(view, port), naming="")


async def _sources(view: ViewOptions, port: Gloveport) -> int:
    settings = view.settings()
    rows = configured_rows(port, settings)
    wrong = not_open(port)
    if view.as_json:
        write_document(view.out, answer_document({"sources": rows}, wrong))
        return exit_code_of(wrong)
    show_problems(view.err, port)
    width = max((len(row["name"]) for row in rows), default=0)
    for row in rows:
        state = view.out.paint(f"{row['state']:<10}", STATE_COLOURS[row["state"]])
        counted = (
            f"{row['tools']:,} tool{'s' * (row['tools'] != 1)}, {row['writes']:,} write" if row["state"] == "open" else ""
        )
        suspended = f", {row['suspended']:,} suspended" if row["suspended"] else ""
        place = view.out.paint(visible_line(f"{row['kind']} {row['location']}"), "dim")
        line = f"{row['name']:<{width}}  {state}  {counted + suspended:<24}  {place}".rstrip()
        view.out.line(view.out.fold(line, "    "))
    if not rows:
        view.err.line(as_typed("there are no sources yet: `gloveport add --help` shows how to add one"))
    return exit_code_of(wrong)
