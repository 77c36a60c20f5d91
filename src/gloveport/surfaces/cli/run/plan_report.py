"""Show a plan to people: every write with its full arguments, and what could not be known."""

from __future__ import annotations

from collections.abc import Iterator

from gloveport.surfaces.cli.approvals.shown import SHORT_ID_CHARS, argument_rows
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Stream, visible_line
from gloveport.types import Plan, PlannedWrite


def plan_lines(out: Stream, plan: Plan) -> Iterator[str]:
    """Yield the lines that show a plan. Nothing of the arguments is left out."""
    for number, write in enumerate(plan.writes, 1):
        yield from _write_lines(out, number, write)
    for note in plan.notes:
        yield out.fold(f"{out.paint('!', 'yellow')} not known: {visible_line(note)}", " " * 4)


def _write_lines(out: Stream, number: int, write: PlannedWrite) -> Iterator[str]:
    place = f"  {out.paint(f'line {write.line}', 'dim')}" if write.line is not None else ""
    yield f"{number:>3}  tools.{out.paint(visible_line(write.tool.removeprefix('local.')), 'bold')}{place}"
    columns = out.columns - 7 if out.terminal else None
    rows = argument_rows(write.args, columns) if write.args else ["no arguments"]
    yield from (f"     {out.paint('│', 'dim')} {row}" for row in rows)
    if write.unknown:
        paths = visible_line(", ".join(write.unknown))
        text = f"not known: {paths} contains a made-up result of an earlier write, so this call will ask"
        yield out.fold(f"     {out.paint('!', 'yellow')} {text}", " " * 7)
    if write.after:
        text = f"could send out private data: it comes after {visible_line(', '.join(write.after))}"
        yield out.fold(f"     {out.paint('!', 'yellow')} {text}", " " * 7)


def plan_question(plan: Plan) -> str:
    """Return the question to the person who may approve a plan."""
    count = "this write" if len(plan.writes) == 1 else f"these {len(plan.writes):,} writes"
    return f"Run the program, and make exactly {count} without asking?"


def how_to_apply(plan: Plan) -> str:
    """Return how a person approves a plan later."""
    return as_typed(f"gloveport runs apply {plan.run[:SHORT_ID_CHARS]}")
