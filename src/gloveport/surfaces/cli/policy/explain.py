"""`gloveport policy explain`: the decision on a call, every rule that matches it, and the command that would change it."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gloveport.bridge.arguments import Contract
from gloveport.catalog.catalog import CatalogEntry
from gloveport.catalog.tool_filter import ToolFilter
from gloveport.config import AgentConfig, Config
from gloveport.errors import OptionError, ToolError
from gloveport.folders import CONFIG_FILE, config_folder
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.rules.labels import decision_after, reads_behind
from gloveport.rules.rule import Rule
from gloveport.rules.rules import PRESETS, Explanation, RuleMatch
from gloveport.sources.fetch import READ, READ_METHODS, WRITE
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.cli.arguments import read_arguments
from gloveport.surfaces.cli.file_change import read_text
from gloveport.surfaces.cli.policy.listing import VERDICT_COLOURS, budget_document, rule_document, shown_rule
from gloveport.surfaces.cli.policy.rules_text import StatedRule, rules_in
from gloveport.surfaces.cli.tools.command import no_tool, source_named, with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import visible_line
from gloveport.types import DEFAULT_AGENT, FETCH_KIND, CallRequest, Decision, Tool

URL_SCHEMES = ("http://", "https://")


def explain_command(view: ViewOptions, name: str, args: str | None, agent: str | None) -> int:
    """Explain the decision on a call; return the exit code."""
    given = None if args is None else read_arguments([args])
    settings = view.settings()
    asking = _agent(settings, agent or DEFAULT_AGENT)
    return with_port(
        view, lambda port: _explain(view, port, name, given, asking), only=source_named(view, name), naming=name
    )


def _agent(settings: Config, name: str) -> AgentConfig:
    agents = {DEFAULT_AGENT: AgentConfig(DEFAULT_AGENT), **settings.governance.agents}
    if name not in agents:
        raise OptionError(f"there is no agent `{name}`", hint=did_you_mean(name, agents) or f"add [agents.{name}]")
    return agents[name]


async def _explain(view: ViewOptions, port: Gloveport, name: str, args: dict[str, Any] | None, agent: AgentConfig) -> int:
    if name.startswith(URL_SCHEMES):
        request = _fetch_request(name, args or {}, agent.name)
    else:
        request = await _call_request(port, name.removeprefix("tools."), args, agent.name)
    tool, args = request.tool, None if request.args is None else dict(request.args)
    found = port.rules.explain(request)
    hidden = tool.kind != FETCH_KIND and not ToolFilter(agent.tools).takes(tool.address)
    change = change_command(found, tool, view.settings(quiet=True))
    labels, reads = port.flow.labels_of(tool), ()
    if labels is not None and (args is None or labels.may_send(args)):
        reads = reads_behind(tool, labels, (await port.flow.reads_of(agent.name)).values())
    if view.as_json:
        decision = {"verdict": found.decision.verdict, "reason": found.decision.reason, "rule": found.decision.rule}
        about = {
            "tool": tool.address,
            "agent": agent.name,
            "args": args,
            "decision": decision,
            "preset": found.preset,
            "matches": [
                {**rule_document(one.rule), "wins": one.rule is found.winner, "why": why(one, found, args)}
                for one in found.matches
            ],
            "budgets": [budget_document(one) for one in port.rules.budgets_of(tool, agent.name)],
            "labels": [] if labels is None else list(labels.names),
            "reads": [asdict(one) for one in reads],
            "hidden": hidden,
            "change": change,
        }
        write_document(view.out, {"ok": True, **about})
        return 0
    _show(view, found, request, change)
    for budget in port.rules.budgets_of(tool, agent.name):
        view.out.line(f"  counted by {visible_line(str(budget))}  {view.out.paint(visible_line(budget.place), 'dim')}")
    if labels is not None and labels.names:
        view.out.line(f"  labels: {', '.join(labels.names)}")
    if reads:
        view.out.line(f"→ asks {_even(found.decision)}: {visible_line(decision_after(reads, Decision('allow')).reason)}")
        for one in reads:
            view.out.line(f"         after {visible_line(str(one))}")
    if hidden:
        view.out.line(f"  the agent {agent.name} does not see this tool: its `tools` leave it out")
    return 0


def _even(decision: Decision) -> str:
    return "now, whatever the rules allow" if decision.verdict != "deny" else "if no rule denied it"


async def _call_request(port: Gloveport, path: str, args: dict[str, Any] | None, agent: str) -> CallRequest:
    entry = port.catalog.entry(path)
    if entry is None:
        raise await off_loop(no_tool, port, path)
    if args is not None:
        args = await off_loop(_accepted, entry, port.catalog.path_of(entry.tool), args)
    return CallRequest(entry.tool, args, agent)


def _fetch_request(url: str, args: dict[str, Any], agent: str) -> CallRequest:
    """Return the request that `fetch(url)` makes, or that of another method: `--args '{"method": "POST"}'`."""
    method = str(args.get("method", "GET")).upper()
    tool = READ if method in READ_METHODS else WRITE
    return CallRequest(tool, {**args, "method": method, "url": url}, agent)


def _accepted(entry: CatalogEntry, path: str, args: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as a call would pass them to the rules; raise OptionError if no call can have them."""
    try:
        contract = Contract(entry.tool, entry.source, path)
        contract.accept([args])
    except ToolError as error:
        raise OptionError(f"--args: {error.message}", hint=f"`gloveport tools describe {path}` shows the tool") from None
    return contract.named_arguments([args])


def _show(view: ViewOptions, found: Explanation, request: CallRequest, change: str) -> None:
    out, decision = view.out, found.decision
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
    out.line(f"  to change it: {visible_line(change)}")


def why(match: RuleMatch, found: Explanation, args: Any) -> str:
    """Return why a rule that matches a call wins, or why it does not."""
    condition = match.rule.condition is not None
    unknown = "is neither true nor false" if args is not None else "depends on the arguments (--args)"
    if not match.applies:
        what = "is false" if match.holds is False else f"{unknown}, and only a rule that asks or denies applies then"
        return f"does not apply: its condition {what}"
    applies = "applies" if not condition else "applies: its condition is true"
    if condition and match.holds is None:
        applies = f"applies, to be safe: its condition {unknown}"
    if match.rule is found.winner:
        return f"{applies}, and decides"
    assert found.winner is not None
    if found.winner.verdict == match.rule.verdict:
        return f"{applies}, and says the same"
    return f"{applies}, but {found.winner.verdict} wins over {match.rule.verdict}"


def change_command(found: Explanation, tool: Tool, settings: Config) -> str:
    """Return the command that changes a decision, or the place to edit."""
    verdict, rule, address = found.decision.verdict, found.winner, tool.address
    if tool.kind == FETCH_KIND:
        return found.decision.setting or (f"change `{rule}` in {rule.place}" if rule else "add a rule to [[egress]]")
    if verdict == "allow":
        return f"gloveport policy set ask {shlex.quote(address)}"
    if rule is None:
        return f"gloveport policy set allow {shlex.quote(address)}"
    file = next((path for path in settings.files if rule.place.startswith(f"{path}:")), None)
    if file is None or not _is_stated(file, rule):
        return found.decision.setting or f"change `{rule}`"
    parts = ["gloveport", "policy", "set", rule.verdict, rule.pattern]
    parts += ["--agent", rule.agent] if rule.agent != "*" else []
    parts += ["--when", rule.condition.text] if rule.condition else []
    parts += ["--remove", *(["--user"] if file == config_folder() / CONFIG_FILE else [])]
    return shlex.join(parts)


def _is_stated(file: Path, rule: Rule) -> bool:
    """Return whether a file has this rule as one of its `[[rules]]`; it may stem from an agent's section."""
    stated = StatedRule(rule.verdict, rule.pattern, rule.agent, rule.condition.text if rule.condition else None)
    return any(stated.is_in(table) for table in rules_in(file, read_text(file) or ""))
