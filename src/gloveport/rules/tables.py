"""Reads a `[[rules]]` table: `ask = "stripe.refunds.*"` with `agent`, `when` and `reason`, or `limit = …` with a budget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.errors import OptionError
from gloveport.rules.budgets import BUDGET_KEYS, Budget
from gloveport.rules.rules import VERDICTS, Rule
from gloveport.suggestions import did_you_mean
from gloveport.types import Verdict

RULE_KEYS = (*reversed(VERDICTS), "limit", "agent", "when", "reason", *BUDGET_KEYS)
MAX_PATTERN_CHARS = 200


def read_rule(table: Any, place: str = "") -> tuple[Rule | Budget, ...]:
    """Return the rules of one table, one for each of its patterns; raise OptionError without the place."""
    if not isinstance(table, Mapping):
        raise OptionError("a rule must be a table: [[rules]]")
    for key in table:
        if key not in RULE_KEYS:
            meant = did_you_mean(str(key), RULE_KEYS)
            message = f"there is no key `{key}` in [[rules]]{f'; {meant}' if meant else ''}"
            raise OptionError(message, hint=f"the keys are {', '.join(RULE_KEYS)}")
    kinds = [kind for kind in (*VERDICTS, "limit") if kind in table]
    if len(kinds) != 1:
        problem = f"has both {' and '.join(kinds)}" if kinds else "says neither allow nor ask nor deny"
        raise OptionError(f"a rule {problem}", hint='write one of them with a pattern: ask = "stripe.refunds.*"')
    texts = {key: _text(table, key) for key in ("agent", "when", "reason") if key in table}
    if kinds[0] == "limit":
        if unfit := [key for key in ("when", "reason") if key in table]:
            raise OptionError(f"a rule that limits has no `{unfit[0]}`", hint=f"it has {', '.join(BUDGET_KEYS)} and agent")
        counts = {key: table[key] for key in BUDGET_KEYS if key in table}
        agent = texts.get("agent", "*")
        return tuple(Budget(pattern, agent, **counts, place=place) for pattern in _patterns(table["limit"]))
    if unfit := [key for key in BUDGET_KEYS if key in table]:
        hint = 'write limit = "stripe.*" in a [[rules]] of its own'
        raise OptionError(f"`{unfit[0]}` stands in a rule that limits", hint=hint)
    verdict: Verdict = next(verdict for verdict in VERDICTS if verdict == kinds[0])
    return tuple(Rule(pattern, verdict, **texts, place=place) for pattern in _patterns(table[kinds[0]]))


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value:
        raise OptionError(f"`{key}` of a rule must be a text, not {value!r:.60}")
    return value


def _patterns(value: Any) -> tuple[str, ...]:
    patterns = value if isinstance(value, list | tuple) else [value]
    if not patterns or not all(isinstance(one, str) and 0 < len(one) <= MAX_PATTERN_CHARS for one in patterns):
        raise OptionError(f"a rule has a pattern over tool addresses, or a list of them, not {value!r:.60}")
    return tuple(patterns)
