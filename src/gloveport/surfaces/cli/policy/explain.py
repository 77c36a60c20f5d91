"""`gloveport policy explain`: the decision on a call, every rule that matches it, and the command that would change it."""

from __future__ import annotations

from typing import Any

from gloveport.config import AgentConfig
from gloveport.errors import OptionError, ToolError
from gloveport.host.port import Gloveport
from gloveport.rules.labels import decision_after
from gloveport.rules.rules import PRESETS
from gloveport.surfaces.cli.arguments import read_arguments
from gloveport.surfaces.cli.policy.listing import VERDICT_COLOURS, shown_rule
from gloveport.surfaces.cli.tools.command import source_named, with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.policy.explanation import CallExplanation, agent_named, explain_call, why
from gloveport.surfaces.terminal import visible_line
from gloveport.types import DEFAULT_AGENT, FETCH_KIND, Decision


def explain_command(view: ViewOptions, name: str, args: str | None, agent: str | None) -> int:
    """Explain the decision on a call; return the exit code."""
    given = None if args is None else read_arguments([args])
    asking = agent_named(view.settings(), agent or DEFAULT_AGENT)
    return with_port(
        view, lambda port: _explain(view, port, name, given, asking), only=source_named(view, name), naming=name
    )


async def _explain(view: ViewOptions, port: Gloveport, name: str, args: dict[str, Any] | None, agent: AgentConfig) -> int:
    try:
        about = await explain_call(port, view.settings(quiet=True), name, args, agent)
    except ToolError as error:
        if error.code != "bad-arguments":
            raise
        path = name.removeprefix("tools.")
        raise OptionError(f"--args: {error.message}", hint=f"`gloveport tools describe {path}` shows the tool") from None
    if view.as_json:
        write_document(view.out, {"ok": True, **about.document})
        return 0
    _show(view, about)
    for budget in about.budgets:
        view.out.line(f"  counted by {visible_line(str(budget))}  {view.out.paint(visible_line(budget.place), 'dim')}")
    if about.labels:
        view.out.line(f"  labels: {', '.join(about.labels)}")
    if about.reads:
        after = decision_after(about.reads, Decision("allow")).reason
        view.out.line(f"→ asks {_even(about.found.decision)}: {visible_line(after)}")
        for one in about.reads:
            view.out.line(f"         after {visible_line(str(one))}")
    if about.hidden:
        view.out.line(f"  the agent {agent.name} does not see this tool: its `tools` leave it out")
    return 0


def _even(decision: Decision) -> str:
    return "now, whatever the rules allow" if decision.verdict != "deny" else "if no rule denied it"


def _show(view: ViewOptions, about: CallExplanation) -> None:
    out, found, request = view.out, about.found, about.request
    decision = found.decision
    verdict = {"allow": "is allowed", "ask": "asks a person", "deny": "is denied"}[decision.verdict]
    reason = f": {visible_line(decision.reason)}" if decision.reason else ""
    shown = out.paint(verdict, VERDICT_COLOURS[decision.verdict])
    what = f"tools.{request.tool.address}"
    if request.tool.kind == FETCH_KIND and request.args:
        what = f"{request.args['method']} {request.args['url']}"
    out.line(out.fold(f"{visible_line(what)} {shown}{reason}", " " * 4))
    if found.winner is None:
        preset = f"  no rule applies, so the preset {found.preset} decides: {PRESETS[found.preset]}"
        out.line(out.fold(preset, " " * 4))
        if decision.verdict == "deny" and request.tool.kind != FETCH_KIND:
            out.line(f"  {visible_line(decision.rule)} of its source turns the question into a denial")
    for match in found.matches:
        mark = "→" if match.rule is found.winner else " "
        out.line(out.fold(f"{mark} {shown_rule(out, match.rule)}", " " * 9))
        out.line(out.fold(f"         {why(match, found, request.args)}", " " * 9))
    out.line(f"  to change it: {visible_line(about.change)}")
