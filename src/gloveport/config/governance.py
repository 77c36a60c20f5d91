"""The settings that govern calls: `[[rules]]`, `[[egress]]`, `[policy]`, `[agents.NAME]`, `[approvals]` and `[store]`.

The rules of the user's file and of the project's hold together. A rule that loosens, and whatever a project's file says
about agents, approvals and the store, has no effect until the user has trusted it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from gloveport.config.layers import SettingsFile, as_table, place_prefix, unknown_key
from gloveport.config.store import StoreConfig, store_from
from gloveport.errors import OptionError
from gloveport.folders import store_file
from gloveport.loosening import LooseningSetting
from gloveport.rules.budgets import BUDGET_KEYS, Budget
from gloveport.rules.rule import VERDICTS, EgressRule, Rule
from gloveport.rules.rules import Preset, check_preset
from gloveport.rules.tables import read_egress_rule, read_rule
from gloveport.types import Limits

MAX_RULES = 2000
MAX_AGENTS = 1000
AGENT_KEYS = ("tools", "direct", *reversed(VERDICTS), *BUDGET_KEYS, "limits", "elicitation")
MAX_EXPIRY_MINUTES = 60 * 24 * 30
DEFAULT_HOLD_SECONDS = 60.0
MAX_HOLD_SECONDS = 7 * 86400
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
AGENT_NAME_HINT = "use up to 64 letters, digits, - and _"
LIMIT_KEYS = tuple(item.name for item in fields(Limits))

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One `[agents.NAME]`: the tools that it sees, and limits of its runs.

    Its rules and budgets are among those of `GovernanceConfig`. With `elicitation`, its client is trusted to ask its user.
    `direct` are patterns of tools that it gets as MCP tools of their own, in place of `execute`.
    """

    name: str
    tools: tuple[str, ...] = ("*",)
    limits: Mapping[str, Any] = field(default_factory=dict)
    elicitation: bool = False
    direct: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GovernanceConfig:
    """What governs calls. `notify` gets each new request for approval: a URL, or a command as a list of texts."""

    rules: tuple[Rule, ...] = ()
    budgets: tuple[Budget, ...] = ()
    preset: Preset = "standard"
    agents: Mapping[str, AgentConfig] = field(default_factory=dict)
    expiry_minutes: float | None = None
    hold_seconds: float = DEFAULT_HOLD_SECONDS
    notify: str | tuple[str, ...] | None = None
    store: Path | None = None
    store_config: StoreConfig = field(default_factory=StoreConfig)

    @property
    def store_path(self) -> Path:
        """The file of the store for hosts that always have one: `[store] path`, else the user's own."""
        return self.store or store_file()


def governance_from(
    values: Mapping[str, Any], origins: Mapping[str, str], layers: Sequence[SettingsFile], untrusted: SettingsFile | None
) -> GovernanceConfig:
    """Return the settings that govern calls. Rules of an `untrusted` file that loosen are left out."""
    rules: list[Rule] = []
    budgets: list[Budget] = []
    for layer in layers:
        for one in _stated_rules(layer):
            if isinstance(one, Budget):
                budgets.append(one)
            elif layer is not untrusted or not _loosens(one):
                rules.append(one)
    agents: dict[str, AgentConfig] = {}
    for name, table in values.get("agents", {}).items():
        agents[name], own_rules, own_budgets = _agent(name, table, origins)
        rules += own_rules
        budgets += own_budgets
    if len(rules) + len(budgets) > MAX_RULES or len(agents) > MAX_AGENTS:
        raise OptionError(f"there are more than {MAX_RULES:,} rules or {MAX_AGENTS:,} agents", hint="use patterns")
    stated = values.get("policy", {}).get("preset", "standard")
    preset: Preset = _checked(origins, "policy.preset", lambda: check_preset(stated))
    approvals = values.get("approvals", {})
    return GovernanceConfig(
        tuple(rules),
        tuple(budgets),
        preset,
        agents,
        _expiry(approvals.get("expiry_minutes"), origins),
        _hold(approvals.get("hold_seconds"), origins),
        _notify(approvals.get("notify"), origins),
        _store(values.get("store", {}).get("path"), origins, layers),
        store_from(values.get("store", {}), origins),
    )


def loosening_rules(theirs: SettingsFile) -> list[LooseningSetting]:
    """Return the rules of a project's file that allow calls, or open an address to `fetch`."""
    found: list[LooseningSetting] = []
    for name, opening in (("rules", ("allow",)), ("egress", ("allow", "ask"))):
        tables = theirs.values.get(name, [])
        for number, table in enumerate(tables if isinstance(tables, list) else []):
            if key := next((key for key in opening if key in as_table(table)), None):
                what = "it allows calls" if name == "rules" else "it opens addresses to fetch"
                found.append(LooseningSetting(name, str(number), table, theirs.place((name, str(number), key)), what))
    return found


def _loosens(rule: Rule) -> bool:
    """Return whether a rule can only loosen: what no rule names is denied to `fetch`, so asking opens it too."""
    return rule.verdict != "deny" if isinstance(rule, EgressRule) else rule.verdict == "allow"


def _stated_rules(layer: SettingsFile) -> list[Rule | Budget]:
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


def _agent(name: str, table: Any, origins: Mapping[str, str]) -> tuple[AgentConfig, list[Rule], list[Budget]]:
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
        return AgentConfig(name, tuple(tools), limits, elicitation, tuple(direct)), rules, budgets

    return _checked(origins, where, read)


def _checked(origins: Mapping[str, str], key: str, read: Callable[[], T]) -> T:
    try:
        return read()
    except OptionError as error:
        prefix = place_prefix(origins, key)
        message = error.message if error.message.startswith(prefix) else f"{prefix}{error.message}"
        raise OptionError(message, hint=error.hint) from None


def _expiry(value: Any, origins: Mapping[str, str]) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_EXPIRY_MINUTES:
        limit = f"a number of minutes up to {MAX_EXPIRY_MINUTES:,}"
        place = place_prefix(origins, "approvals.expiry_minutes")
        raise OptionError(f"{place}expiry_minutes of [approvals] must be {limit}, not {value!r:.60}")
    return float(value)


def _hold(value: Any, origins: Mapping[str, str]) -> float:
    if value is None:
        return DEFAULT_HOLD_SECONDS
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_HOLD_SECONDS:
        place = place_prefix(origins, "approvals.hold_seconds")
        limit = f"a number of seconds up to {MAX_HOLD_SECONDS:,}"
        raise OptionError(f"{place}hold_seconds of [approvals] must be {limit}, not {value!r:.60}")
    return float(value)


def _notify(value: Any, origins: Mapping[str, str]) -> str | tuple[str, ...] | None:
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return tuple(value)
    if value is None or (isinstance(value, str) and value.startswith(("http://", "https://"))):
        return value
    place = place_prefix(origins, "approvals.notify")
    raise OptionError(f"{place}notify of [approvals] must be a URL, or a command as a list of texts, not {value!r:.60}")


def _store(value: Any, origins: Mapping[str, str], layers: Sequence[SettingsFile]) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value:
        raise OptionError(f"{place_prefix(origins, 'store.path')}path of [store] must be a file, not {value!r:.60}")
    base = next((layer.path.parent for layer in reversed(layers) if layer.get("store", "path") == value), Path())
    return (base / Path(value).expanduser()).resolve()
