"""The rules in force, where each of them stands, and what is ignored, as plain JSON data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gloveport.config import Config
from gloveport.rules.budgets import BUDGET_KEYS, Budget
from gloveport.rules.rule import VERDICTS, EgressRule, Rule
from gloveport.rules.rules import PRESETS


def rules_in_force(settings: Config) -> list[Rule]:
    """Return the rules of the settings and what `writes` of the sources opens, the strictest first."""
    return sorted((*settings.governance.rules, *_opened(settings)), key=lambda rule: VERDICTS.index(rule.verdict))


def policies_document(settings: Config) -> dict[str, Any]:
    """Return the preset, the rules and budgets, and what of them is ignored."""
    governance = settings.governance
    return {
        "preset": governance.preset,
        "meaning": PRESETS[governance.preset],
        "rules": [rule_document(rule) for rule in rules_in_force(settings)],
        "budgets": [budget_document(budget) for budget in governance.budgets],
        "denied_writes": [
            {"source": one.name, "place": settings.places.get(one.name, "")}
            for one in settings.sources
            if one.denies_writes
        ],
        "ignored": [
            {"setting": each.shown, "place": each.place, "reason": each.reason}
            for each in settings.ignored
            if each.table in ("rules", "egress", "policy", "agents")
        ],
    }


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


def _opened(settings: Config) -> Sequence[Rule]:
    """Return what `writes` of the sources opens, as rules."""
    return [
        Rule(f"{config.name}.{pattern}", "allow", place=settings.origins.get(f"sources.{config.name}.writes", ""))
        for config in settings.sources
        for pattern in config.writes
    ]
