"""Reads the tables that state rules and budgets: `[[rules]]`, `[[egress]]` and `[agents.NAME]`.

It is imported where a file has such tables: to load the rules takes as long as to load all other settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from gloveport.config.governance import AGENT_NAME, AGENT_NAME_HINT, AgentConfig, checked
from gloveport.config.layers import SettingsFile, as_table, place_prefix, unknown_key
from gloveport.config.packages import package_names
from gloveport.errors import OptionError
from gloveport.limits import Limits
from gloveport.rules.budgets import BUDGET_KEYS, Budget
from gloveport.rules.rule import VERDICTS, EgressRule, Rule
from gloveport.rules.tables import read_egress_rule, read_rule

AGENT_KEYS = ("tools", "direct", *reversed(VERDICTS), *BUDGET_KEYS, "limits", "elicitation", "packages")
LIMIT_KEYS = tuple(item.name for item in fields(Limits))


def loosens(rule: Rule) -> bool:
    """Return whether a rule can only loosen: what no rule names is denied to `fetch`, so asking opens it too."""
    return rule.verdict != "deny" if isinstance(rule, EgressRule) else rule.verdict == "allow"


def stated_rules(layer: SettingsFile) -> list[Rule | Budget]:
    """Return the rules and budgets of one file."""
    found: list[Rule | Budget] = []
    for name, read in (("rules", read_rule), ("egress", read_egress_rule)):
        tables = layer.values.get(name, [])
        if not isinstance(tables, list):
            raise OptionError(f"{layer.place((name,))}: {name} must be a list of tables: [[{name}]]")
        for number, table in enumerate(tables):
            place = layer.place((name, str(number), next(iter(as_table(table)), "")))
            try:
                found += read(table, place)
            except OptionError as error:
                raise OptionError(f"{place}: {error.message}", hint=error.hint) from None
    return found


def read_agent(name: str, table: Any, origins: Mapping[str, str]) -> tuple[AgentConfig, list[Rule], list[Budget]]:
    """Return an agent with its rules and budgets."""
    where = f"agents.{name}"
    if not isinstance(table, Mapping):
        raise OptionError(f"{place_prefix(origins, where)}{where} must be a table: [{where}]")
    if not AGENT_NAME.fullmatch(name):
        raise OptionError(f"{place_prefix(origins, where)}an agent can't be called {name!r:.60}", hint=AGENT_NAME_HINT)
    for key in table:
        if key not in AGENT_KEYS:
            raise unknown_key(where, key, AGENT_KEYS, origins)

    def read() -> tuple[AgentConfig, list[Rule], list[Budget]]:
        rules: list[Rule] = []
        for verdict in VERDICTS:
            if verdict in table:
                place = origins.get(f"{where}.{verdict}", "")
                rules += [
                    one for one in read_rule({verdict: table[verdict], "agent": name}, place) if isinstance(one, Rule)
                ]
        counts = {key: table[key] for key in BUDGET_KEYS if key in table}
        place = place_prefix(origins, where).removesuffix(": ")
        budgets = [Budget("*", name, **counts, place=place)] if counts else []
        tools, limits, elicitation = table.get("tools", ["*"]), table.get("limits", {}), table.get("elicitation", False)
        direct = table.get("direct", [])
        for key, value in (("tools", tools), ("direct", direct)):
            if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
                raise OptionError(f"{key} of [{where}] must be a list of patterns, not {value!r:.60}")
        if not isinstance(elicitation, bool):
            raise OptionError(f"elicitation of [{where}] must be true or false, not {elicitation!r:.60}")
        if not isinstance(limits, Mapping):
            raise OptionError(f"limits of [{where}] must be a table")
        for key in limits:
            if key not in LIMIT_KEYS:
                raise unknown_key(f"{where}.limits", key, LIMIT_KEYS, origins)
        Limits(**limits)
        packages = package_names(table.get("packages"), f"packages of [{where}]")
        return AgentConfig(name, tuple(tools), limits, elicitation, tuple(direct), packages), rules, budgets

    return checked(origins, where, read)
