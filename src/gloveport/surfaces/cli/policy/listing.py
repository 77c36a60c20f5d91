"""`gloveport policy list`: the rules in force, where each of them stands, and what is ignored."""

from __future__ import annotations

from typing import Any

from gloveport.config import Config
from gloveport.rules.budgets import BUDGET_KEYS, Budget
from gloveport.rules.rule import VERDICTS, EgressRule, Rule
from gloveport.rules.rules import PRESETS
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.settings import HOW_TO_TRUST
from gloveport.surfaces.terminal import Colour, Stream, visible_line

RULE_INDENT, REASON_INDENT = " " * 7, " " * 9
VERDICT_COLOURS: dict[str, Colour] = {"deny": "red", "ask": "yellow", "allow": "green"}


def list_rules_command(view: ViewOptions) -> int:
    """Show the rules in force; return the exit code."""
    settings = view.settings(quiet=True)
    governance = settings.governance
    rules = sorted((*governance.rules, *_opened(settings)), key=lambda rule: VERDICTS.index(rule.verdict))
    ignored = [
        {"setting": each.shown, "place": each.place, "reason": each.reason}
        for each in settings.ignored
        if each.table in ("rules", "egress", "policy", "agents")
    ]
    shut = [
        {"source": one.name, "place": settings.places.get(one.name, "")} for one in settings.sources if one.denies_writes
    ]
    if view.as_json:
        document = {
            "preset": governance.preset,
            "meaning": PRESETS[governance.preset],
            "rules": [rule_document(rule) for rule in rules],
            "budgets": [budget_document(budget) for budget in governance.budgets],
            "denied_writes": shut,
            "ignored": ignored,
        }
        write_document(view.out, {"ok": True, **document})
        return 0
    out = view.out
    place = settings.origins.get("policy.preset", "the default")
    out.line(out.fold(f"preset {governance.preset} ({visible_line(place)}): {PRESETS[governance.preset]}", RULE_INDENT))
    for rule in rules:
        out.line(out.fold(shown_rule(out, rule), RULE_INDENT))
        if rule.reason:
            out.line(out.fold(f"{REASON_INDENT}{visible_line(rule.reason)}", REASON_INDENT))
    for budget in governance.budgets:
        text = f"limit  {visible_line(str(budget).removeprefix('limit = '))}"
        out.line(out.fold(_with_place(out, text, budget.place), RULE_INDENT))
    for row in shut:
        text = f'deny   what writes in {row["source"]}, if no rule allows it (`writes = "deny"`)'
        out.line(out.fold(_with_place(out, text, row["place"]), RULE_INDENT))
    for row in ignored:
        out.line(out.fold(f"{out.paint('!', 'yellow')} ignored: {visible_line(row['setting'])}", REASON_INDENT))
        text = _with_place(out, f"{REASON_INDENT}not trusted: {visible_line(row['reason'])}", row["place"])
        out.line(out.fold(text, REASON_INDENT))
    if ignored:
        view.err.line(f"hint: {HOW_TO_TRUST}")
    return 0


def shown_rule(out: Stream, rule: Rule) -> str:
    """Return a rule on one line: verdict, pattern, agent, condition, place."""
    parts = [visible_line(rule.pattern)]
    if isinstance(rule, EgressRule):
        parts = [f"fetch {parts[0]}", *([" ".join(rule.methods)] if rule.methods else [])]
        parts += ["private addresses too"] if rule.allow_private else []
    parts += [f"agent {visible_line(rule.agent)}"] if rule.agent != "*" else []
    parts += [f"when {visible_line(rule.condition.text)}"] if rule.condition else []
    verdict = out.paint(f"{rule.verdict:<5}", VERDICT_COLOURS[rule.verdict])
    return _with_place(out, f"{verdict}  {'  '.join(parts)}", rule.place)


def rule_document(rule: Rule) -> dict[str, Any]:
    """Return a rule as plain JSON data."""
    return {
        "verdict": rule.verdict,
        "pattern": rule.pattern,
        "agent": rule.agent,
        "when": rule.condition.text if rule.condition else None,
        "reason": rule.reason,
        "place": rule.place,
        **({"methods": list(rule.methods), "allow_private": rule.allow_private} if isinstance(rule, EgressRule) else {}),
    }


def budget_document(budget: Budget) -> dict[str, Any]:
    """Return a budget as plain JSON data."""
    limits = {key: getattr(budget, key) for key in BUDGET_KEYS}
    return {"pattern": budget.pattern, "agent": budget.agent, **limits, "place": budget.place}


def _opened(settings: Config) -> list[Rule]:
    """Return what `writes` of the sources opens, as rules."""
    return [
        Rule(f"{config.name}.{pattern}", "allow", place=settings.origins.get(f"sources.{config.name}.writes", ""))
        for config in settings.sources
        for pattern in config.writes
    ]


def _with_place(out: Stream, text: str, place: str) -> str:
    return f"{text}  {out.paint(visible_line(place), 'dim')}".rstrip() if place else text
