"""Reads the tables of rules.

`[[rules]]`: `ask = "stripe.refunds.*"` with `agent`, `when` and `reason`, or `limit = …` with a budget. `[[egress]]`:
`allow = "https://api.example.com"` with `methods`, `agent`, `reason` and `allow_private`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.errors import OptionError
from gloveport.rules.budgets import BUDGET_KEYS, Budget
from gloveport.rules.rule import VERDICTS, EgressRule, Rule
from gloveport.suggestions import did_you_mean
from gloveport.types import Verdict

RULE_KEYS = (*reversed(VERDICTS), "limit", "agent", "when", "reason", *BUDGET_KEYS)
EGRESS_KEYS = (*reversed(VERDICTS), "methods", "agent", "reason", "allow_private")
MAX_PATTERN_CHARS = 200


def read_rule(table: Any, place: str = "") -> tuple[Rule | Budget, ...]:
    """Return the rules of one table, one for each of its patterns; raise OptionError without the place."""
    table = _checked(table, "rules", RULE_KEYS)
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
        return tuple(
            Budget(pattern, agent, **counts, place=place) for pattern in _patterns(table["limit"], "tool addresses")
        )
    if unfit := [key for key in BUDGET_KEYS if key in table]:
        hint = 'write limit = "stripe.*" in a [[rules]] of its own'
        raise OptionError(f"`{unfit[0]}` stands in a rule that limits", hint=hint)
    verdict: Verdict = next(verdict for verdict in VERDICTS if verdict == kinds[0])
    return tuple(Rule(pattern, verdict, **texts, place=place) for pattern in _patterns(table[kinds[0]], "tool addresses"))


def read_egress_rule(table: Any, place: str = "") -> tuple[EgressRule, ...]:
    """Return the rules of one `[[egress]]` table, one for each of its patterns; raise OptionError without the place."""
    table = _checked(table, "egress", EGRESS_KEYS)
    kinds = [kind for kind in VERDICTS if kind in table]
    if len(kinds) != 1:
        problem = f"has both {' and '.join(kinds)}" if kinds else "says neither allow nor ask nor deny"
        raise OptionError(f"an egress rule {problem}", hint='write one of them: allow = "https://api.example.com"')
    texts = {key: _text(table, key) for key in ("agent", "reason") if key in table}
    methods, allow_private = table.get("methods", []), table.get("allow_private", False)
    if not isinstance(methods, list) or not all(isinstance(one, str) for one in methods):
        raise OptionError(f"`methods` of an egress rule must be a list of texts, not {methods!r:.60}")
    if not isinstance(allow_private, bool):
        raise OptionError(f"`allow_private` of an egress rule must be true or false, not {allow_private!r:.60}")
    verdict: Verdict = next(verdict for verdict in VERDICTS if verdict == kinds[0])
    return tuple(
        EgressRule(pattern, verdict, **texts, place=place, methods=tuple(methods), allow_private=allow_private)
        for pattern in _patterns(table[kinds[0]], "origins")
    )


def _checked(table: Any, name: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(table, Mapping):
        raise OptionError(f"a rule must be a table: [[{name}]]")
    for key in table:
        if key not in known:
            meant = did_you_mean(str(key), known)
            message = f"there is no key `{key}` in [[{name}]]{f'; {meant}' if meant else ''}"
            raise OptionError(message, hint=f"the keys are {', '.join(known)}")
    return table


def _text(table: Mapping[str, Any], key: str) -> str:
    value = table[key]
    if not isinstance(value, str) or not value:
        raise OptionError(f"`{key}` of a rule must be a text, not {value!r:.60}")
    return value


def _patterns(value: Any, over: str) -> tuple[str, ...]:
    patterns = value if isinstance(value, list | tuple) else [value]
    if not patterns or not all(isinstance(one, str) and 0 < len(one) <= MAX_PATTERN_CHARS for one in patterns):
        raise OptionError(f"a rule has a pattern over {over}, or a list of them, not {value!r:.60}")
    return tuple(patterns)
