"""`gloveport policy list`: the rules in force, where each of them stands, and what is ignored."""

from __future__ import annotations

from gloveport.rules.rule import EgressRule, Rule
from gloveport.rules.rules import PRESETS
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.policy.rule_documents import policies_document, rules_in_force
from gloveport.surfaces.settings import HOW_TO_TRUST
from gloveport.surfaces.terminal import Colour, Stream, visible_line

RULE_INDENT, REASON_INDENT = " " * 7, " " * 9
VERDICT_COLOURS: dict[str, Colour] = {"deny": "red", "ask": "yellow", "allow": "green"}


def list_rules_command(view: ViewOptions) -> int:
    """Show the rules in force; return the exit code."""
    settings = view.settings(quiet=True)
    governance, found = settings.governance, policies_document(settings)
    if view.as_json:
        write_document(view.out, {"ok": True, **found})
        return 0
    out = view.out
    place = settings.origins.get("policy.preset", "the default")
    out.line(out.fold(f"preset {governance.preset} ({visible_line(place)}): {PRESETS[governance.preset]}", RULE_INDENT))
    for rule in rules_in_force(settings):
        out.line(out.fold(shown_rule(out, rule), RULE_INDENT))
        if rule.reason:
            out.line(out.fold(f"{REASON_INDENT}{visible_line(rule.reason)}", REASON_INDENT))
    for budget in governance.budgets:
        text = f"limit  {visible_line(str(budget).removeprefix('limit = '))}"
        out.line(out.fold(_with_place(out, text, budget.place), RULE_INDENT))
    for row in found["denied_writes"]:
        text = f'deny   what writes in {row["source"]}, if no rule allows it (`writes = "deny"`)'
        out.line(out.fold(_with_place(out, text, row["place"]), RULE_INDENT))
    for row in found["ignored"]:
        out.line(out.fold(f"{out.paint('!', 'yellow')} ignored: {visible_line(row['setting'])}", REASON_INDENT))
        text = _with_place(out, f"{REASON_INDENT}not trusted: {visible_line(row['reason'])}", row["place"])
        out.line(out.fold(text, REASON_INDENT))
    if found["ignored"]:
        view.err.line(view.err.fold(f"hint: {HOW_TO_TRUST}", " " * 6))
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


def _with_place(out: Stream, text: str, place: str) -> str:
    return f"{text}  {out.paint(visible_line(place), 'dim')}".rstrip() if place else text
