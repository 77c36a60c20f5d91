"""The settings that govern calls: `[[rules]]`, `[[egress]]`, `[policy]`, `[agents.NAME]`, `[approvals]` and `[store]`.

The rules of the user's file and of the project's hold together. A rule that loosens, and whatever a project's file says
about agents, approvals and the store, has no effect until the user has trusted it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from gloveport.config.layers import SettingsFile, as_table, place_prefix
from gloveport.config.sessions import SessionsConfig, sessions_from
from gloveport.config.store import StoreConfig, store_from
from gloveport.errors import OptionError
from gloveport.folders import store_file
from gloveport.loosening import LooseningSetting

if TYPE_CHECKING:
    from gloveport.rules.budgets import Budget
    from gloveport.rules.rule import Rule
    from gloveport.rules.rules import Preset

RULE_TABLES = frozenset({"rules", "egress"})
MAX_RULES = 2000
MAX_AGENTS = 1000
MAX_EXPIRY_MINUTES = 60 * 24 * 30
DEFAULT_HOLD_SECONDS = 60.0
MAX_HOLD_SECONDS = 7 * 86400
AGENT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
AGENT_NAME_HINT = "use up to 64 letters, digits, - and _"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AgentConfig:
    """One `[agents.NAME]`: the tools that it sees, and limits of its runs.

    Its rules and budgets are among those of `GovernanceConfig`. With `elicitation`, its client is trusted to ask its user.
    `direct` are patterns of tools that it gets as MCP tools of their own, in place of `execute`. `packages` are those that
    its programs may import; None for all that the settings allow.
    """

    name: str
    tools: tuple[str, ...] = ("*",)
    limits: Mapping[str, Any] = field(default_factory=dict)
    elicitation: bool = False
    direct: tuple[str, ...] = ()
    packages: frozenset[str] | None = None


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
    sessions: SessionsConfig = field(default_factory=SessionsConfig)

    @property
    def store_path(self) -> Path:
        """The file of the store for hosts that always have one: `[store] path`, else the user's own."""
        return self.store or store_file()


def governance_from(
    values: Mapping[str, Any], origins: Mapping[str, str], layers: Sequence[SettingsFile], untrusted: SettingsFile | None
) -> GovernanceConfig:
    """Return the settings that govern calls. Rules of an `untrusted` file that loosen are left out."""
    rules, budgets, agents = _rules(values, origins, layers, untrusted)
    approvals = values.get("approvals", {})
    return GovernanceConfig(
        rules,
        budgets,
        _preset(values.get("policy", {}).get("preset"), origins),
        agents,
        _expiry(approvals.get("expiry_minutes"), origins),
        _hold(approvals.get("hold_seconds"), origins),
        _notify(approvals.get("notify"), origins),
        _store(values.get("store", {}).get("path"), origins, layers),
        store_from(values.get("store", {}), origins),
        sessions_from(values.get("sessions", {}), origins),
    )


def _rules(
    values: Mapping[str, Any], origins: Mapping[str, str], layers: Sequence[SettingsFile], untrusted: SettingsFile | None
) -> tuple[tuple[Rule, ...], tuple[Budget, ...], dict[str, AgentConfig]]:
    """Return the rules, the budgets and the agents, whose own rules and budgets are among them."""
    if not values.get("agents") and not any(layer.values.keys() & RULE_TABLES for layer in layers):
        return (), (), {}
    from gloveport.config.rule_tables import loosens, read_agent, stated_rules
    from gloveport.rules.budgets import Budget

    rules: list[Rule] = []
    budgets: list[Budget] = []
    for layer in layers:
        for one in stated_rules(layer):
            if isinstance(one, Budget):
                budgets.append(one)
            elif layer is not untrusted or not loosens(one):
                rules.append(one)
    agents: dict[str, AgentConfig] = {}
    for name, table in values.get("agents", {}).items():
        agents[name], own_rules, own_budgets = read_agent(name, table, origins)
        rules += own_rules
        budgets += own_budgets
    if len(rules) + len(budgets) > MAX_RULES or len(agents) > MAX_AGENTS:
        raise OptionError(f"there are more than {MAX_RULES:,} rules or {MAX_AGENTS:,} agents", hint="use patterns")
    return tuple(rules), tuple(budgets), agents


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


def _preset(stated: Any, origins: Mapping[str, str]) -> Preset:
    if stated is None:
        return "standard"
    from gloveport.rules.rules import check_preset

    return checked(origins, "policy.preset", lambda: check_preset(stated))


def checked(origins: Mapping[str, str], key: str, read: Callable[[], T]) -> T:
    """Return what `read` returns; its OptionError gets the place of the key."""
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
