"""What an agent is told about the plan of its program: the writes that were held back, and who can approve them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gloveport.surfaces.documents import to_text
from gloveport.surfaces.terminal import visible_line
from gloveport.types import Plan, PlannedWrite
from gloveport.values import to_json

MAX_LISTED_WRITES = 50  # in the data; the text has all of them
Fit = Callable[[str], tuple[str, dict[str, Any]]]


def plan_answer(plan: Plan, fit: Fit, *, resumes: bool) -> tuple[str, dict[str, Any]]:
    """Return a plan as text for the model and as data. An agent can't approve it: the text says who can."""
    if not plan.writes:
        return "The program writes nothing.", {"writes": [], "total": 0}
    count = "1 write was" if len(plan.writes) == 1 else f"{len(plan.writes):,} writes were"
    lines = [f"{count} held back, and nothing was written:", *map(_line, plan.writes)]
    lines += [f"not known: {visible_line(note)}" for note in plan.notes]
    text, rest = fit("\n".join(lines))
    if rest:
        text += f"\n[the rest: result_id {rest['result_id']}, offset {rest['next_offset']}]"
    todo = ""
    if resumes:
        todo = f"Ask the user to approve it in a terminal: gloveport runs apply {plan.run[:8]}\n"
        todo += f'Then call resume({{run: "{plan.run}"}}) for the outcome.'
        text += f"\n{todo}"
    writes = [{"tool": one.tool, "line": one.line, "unknown": list(one.unknown)} for one in plan.writes]
    return text, {"writes": writes[:MAX_LISTED_WRITES], "total": len(writes), **({"next": todo} if todo else {}), **rest}


def _line(write: PlannedWrite) -> str:
    place = f" (line {write.line})" if write.line is not None else ""
    unknown = f" - made up: {', '.join(write.unknown)}" if write.unknown else ""
    after = f" - after {', '.join(write.after)}" if write.after else ""
    return visible_line(f"- tools.{write.tool} {to_text(to_json(dict(write.args)), indented=False)}{place}{unknown}{after}")
