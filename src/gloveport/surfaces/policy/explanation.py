"""The decision on a call that nobody makes: every rule that matches it, what it has read, and what would change it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from gloveport.bridge.arguments import Contract
from gloveport.catalog.tool_filter import ToolFilter
from gloveport.config import AgentConfig, Config
from gloveport.errors import OptionError, ToolError
from gloveport.folders import CONFIG_FILE, config_folder
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.policy.egress.addresses import refusal
from gloveport.rules.budgets import Budget
from gloveport.rules.labels import LabelledRead, reads_behind
from gloveport.rules.rule import Rule
from gloveport.rules.rules import Explanation, RuleMatch
from gloveport.sources.fetch import READ, READ_METHODS, WRITE
from gloveport.suggestions import did_you_mean, question
from gloveport.surfaces.file_change import read_text
from gloveport.surfaces.policy.rule_documents import budget_document, rule_document
from gloveport.surfaces.policy.rules_text import StatedRule, rules_in
from gloveport.types import DEFAULT_AGENT, FETCH_KIND, FETCH_TOOLS, CallRequest, Decision, Tool
from gloveport.urls import parse

URL_SCHEMES = ("http://", "https://")


@dataclass(frozen=True, slots=True)
class CallExplanation:
    """A call that was asked about, the decision on it, and what led there. `change` is what would change it."""

    request: CallRequest
    found: Explanation
    budgets: tuple[Budget, ...]
    labels: tuple[str, ...]
    reads: tuple[LabelledRead, ...]
    hidden: bool
    change: str

    @property
    def document(self) -> dict[str, Any]:
        """The same as plain JSON data."""
        found, args = self.found, None if self.request.args is None else dict(self.request.args)
        return {
            "tool": self.request.tool.address,
            "agent": self.request.agent,
            "args": args,
            "decision": {"verdict": found.decision.verdict, "reason": found.decision.reason, "rule": found.decision.rule},
            "preset": found.preset,
            "matches": [
                {**rule_document(one.rule), "wins": one.rule is found.winner, "why": why(one, found, args)}
                for one in found.matches
            ],
            "budgets": [budget_document(one) for one in self.budgets],
            "labels": list(self.labels),
            "reads": [asdict(one) for one in self.reads],
            "hidden": self.hidden,
            "change": self.change,
        }


def agent_named(settings: Config, name: str) -> AgentConfig:
    """Return the settings of an agent; raise OptionError with what may have been meant."""
    agents = {DEFAULT_AGENT: AgentConfig(DEFAULT_AGENT), **settings.governance.agents}
    if name not in agents:
        raise OptionError(f"there is no agent `{name}`", hint=did_you_mean(name, agents) or f"add [agents.{name}]")
    return agents[name]


async def explain_call(
    port: Gloveport, settings: Config, name: str, args: Mapping[str, Any] | None, agent: AgentConfig
) -> CallExplanation:
    """Explain the decision on a call of a tool, or on a request to a URL; raise ToolError for one that can't be made."""
    if name.startswith(URL_SCHEMES):
        request = _fetch_request(name, dict(args or {}), agent.name)
    else:
        request = await off_loop(_call_request, port, name.removeprefix("tools."), args, agent.name)
    tool = request.tool
    found = _with_reach(port, request, port.rules.explain(request))
    labels = port.flow.labels_of(tool)
    reads: tuple[LabelledRead, ...] = ()
    if labels is not None and (request.args is None or labels.may_send(dict(request.args))):
        reads = tuple(reads_behind(tool, labels, (await port.flow.reads_of(agent.name)).values()))
    return CallExplanation(
        request,
        found,
        tuple(port.rules.budgets_of(tool, agent.name)),
        () if labels is None else tuple(labels.names),
        reads,
        hidden=tool.kind != FETCH_KIND and not ToolFilter(agent.tools).takes(tool.address),
        change=change_command(found, tool, settings),
    )


def _call_request(port: Gloveport, path: str, args: Mapping[str, Any] | None, agent: str) -> CallRequest:
    """Return the request with the arguments as a call would pass them to the rules."""
    entry = port.catalog.entry(path)
    if entry is None:
        raise no_tool(port, path)
    if args is None:
        return CallRequest(entry.tool, None, agent)
    contract = Contract(entry.tool, entry.source, port.catalog.path_of(entry.tool))
    contract.accept([dict(args)])
    return CallRequest(entry.tool, contract.named_arguments([dict(args)]), agent)


def _fetch_request(url: str, args: dict[str, Any], agent: str) -> CallRequest:
    """Return the request that `fetch(url)` makes, or that of another method: `{"method": "POST"}`."""
    method = str(args.get("method", "GET")).upper()
    tool = READ if method in READ_METHODS else WRITE
    return CallRequest(tool, {**args, "method": method, "url": url}, agent)


def _with_reach(port: Gloveport, request: CallRequest, found: Explanation) -> Explanation:
    """Return the explanation, denied where `fetch` may not reach an address that the rules allow."""
    if request.tool.kind != FETCH_KIND or request.args is None or found.decision.verdict == "deny":
        return found
    url = parse(request.args["url"])
    private = port.rules.reaches_private(url, request.args["method"], request.agent)
    try:
        rule = refusal(url.host, allow_private=private)
    except ValueError:  # a name: its addresses are known when a request is made
        return found
    if rule is None:
        return found
    setting = f'add [[egress]] with allow = "{url.origin}" and allow_private = true to gloveport.toml'
    if rule.kind == "never":
        setting = "no setting allows it"
    denied = Decision("deny", f"{url.host} may not be reached: {rule}", setting, rule=found.decision.rule)
    return replace(found, decision=denied)


def no_tool(port: Gloveport, path: str) -> ToolError:
    """Return the error for a name that no tool has, with what may have been meant."""
    if broken := port.catalog.source_problem(path):
        return ToolError(broken.refusal(path[:200]), code=broken.code, setting=broken.hint)
    meant = port.catalog.suggest(path)
    hint = question(meant) if meant else "`gloveport tools search WORDS` finds tools"
    if path in FETCH_TOOLS:
        hint = "this is `fetch`: give the address of the request, such as https://api.example.com"
    return ToolError(f"there is no tool `{path[:200]}`", code="unknown-tool", hint=hint)


def why(match: RuleMatch, found: Explanation, args: Any) -> str:
    """Return why a rule that matches a call wins, or why it does not."""
    condition = match.rule.condition is not None
    unknown = "is neither true nor false" if args is not None else "depends on the arguments"
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
