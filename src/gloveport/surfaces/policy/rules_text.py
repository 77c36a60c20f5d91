"""The `[[rules]]` of a settings file as text, edited line by line, so that comments and order stay.

Each edit is checked: the new text must have exactly the rules that were wanted, and everything else as it was.
"""

from __future__ import annotations

import copy
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import tomlkit

from gloveport.errors import OptionError
from gloveport.rules.rule import VERDICTS
from gloveport.surfaces.file_change import parse_toml
from gloveport.types import Verdict

_RULES_HEADER = re.compile(r"\s*\[\[\s*rules\s*\]\]")
_VERDICT_LINE = re.compile(r"(?P<indent>\s*)(?P<verdict>allow|ask|deny)(?P<sign>\s*=\s*)(?P<value>.*?)(?P<end>\s*(?:#.*)?)")


@dataclass(frozen=True, slots=True)
class StatedRule:
    """A rule as it stands in a file; `reason` does not tell two rules apart."""

    verdict: Verdict
    pattern: str
    agent: str = "*"
    when: str | None = None
    reason: str | None = None

    @property
    def table(self) -> dict[str, str]:
        """The rule as a `[[rules]]` table."""
        found = {self.verdict: self.pattern, "agent": self.agent, "when": self.when, "reason": self.reason}
        return {key: value for key, value in found.items() if value is not None and (key, value) != ("agent", "*")}

    def concerns_same(self, table: Any) -> bool:
        """Return whether a table has a rule for the same calls, whatever its verdict."""
        if not isinstance(table, Mapping) or self.pattern not in patterns_of(table):
            return False
        return (table.get("agent", "*"), table.get("when")) == (self.agent, self.when)

    def is_in(self, table: Any) -> bool:
        """Return whether a table has this rule."""
        return self.concerns_same(table) and self.verdict in table


def patterns_of(table: Mapping[str, Any]) -> list[str]:
    """Return the patterns of a `[[rules]]` table that allows, asks or denies."""
    value = next((table[verdict] for verdict in VERDICTS if verdict in table), [])
    return [value] if isinstance(value, str) else list(value)


def rules_in(path: Path, text: str) -> list[Any]:
    """Return the `[[rules]]` tables of a settings file."""
    tables = parse_toml(path, text).get("rules", [])
    if not isinstance(tables, list):
        raise OptionError(f"`rules` in {path} is not a list", hint="write [[rules]]; nothing was changed")
    return tables


def with_rule(path: Path, text: str, rule: StatedRule) -> str:
    """Return the text of a settings file with a rule, in place of those for the same calls."""
    wanted = copy.deepcopy(rules_in(path, text))
    edit, stated = _RulesText(text), False
    for at in reversed([at for at, table in enumerate(wanted) if rule.concerns_same(table)]):
        if len(patterns_of(wanted[at])) == 1 and not stated:
            stated = True
            kept = {key: value for key, value in wanted[at].items() if key not in VERDICTS}
            wanted[at] = {**kept, **rule.table}
            edit.change(at, rule)
        else:
            _take_out(edit, wanted, at, rule.pattern)
    if not stated:
        wanted.append(rule.table)
        edit.add(rule)
    return _checked(path, text, edit.text, wanted)


def without_rule(path: Path, text: str, rule: StatedRule) -> str:
    """Return the text of a settings file without a rule, which it must have."""
    wanted = copy.deepcopy(rules_in(path, text))
    edit = _RulesText(text)
    for at in reversed([at for at, table in enumerate(wanted) if rule.is_in(table)]):
        _take_out(edit, wanted, at, rule.pattern)
    return _checked(path, text, edit.text, wanted)


def _take_out(edit: _RulesText, wanted: list[Any], at: int, pattern: str) -> None:
    """Remove a pattern from a table, and the table with its last one."""
    left = [one for one in patterns_of(wanted[at]) if one != pattern]
    if not left:
        del wanted[at]
        edit.remove(at)
        return
    wanted[at][next(verdict for verdict in VERDICTS if verdict in wanted[at])] = left
    edit.set_patterns(at, left)


class _RulesText:
    """The lines of a settings file. A `[[rules]]` table ends with its last setting, before the comments of what follows."""

    def __init__(self, text: str) -> None:
        self._line_end = "\r\n" if "\r\n" in text else "\n"
        self._lines = text.splitlines()

    @property
    def text(self) -> str:
        return "".join(f"{line}{self._line_end}" for line in self._lines)

    @property
    def _tables(self) -> list[range]:
        headers = [at for at, line in enumerate(self._lines) if line.lstrip().startswith("[")]
        found = []
        for at, after in pairwise([*headers, len(self._lines)]):
            if _RULES_HEADER.match(self._lines[at]):
                last = max(one for one in range(at, after) if not _is_empty(self._lines[one]))
                found.append(range(at, last + 1))
        return found

    def add(self, rule: StatedRule) -> None:
        """Add a table after the other ones."""
        tables = self._tables
        at = tables[-1].stop if tables else len(self._lines)
        table = ["[[rules]]", *(f"{key} = {_quoted(value)}" for key, value in rule.table.items())]
        self._lines[at:at] = ["", *table] if any(line.strip() for line in self._lines[:at]) else table

    def remove(self, at: int) -> None:
        """Remove a table, and a blank line before it."""
        if at >= len(self._tables):
            return  # it is written in another way, which the check reports
        table = self._tables[at]
        before = table.start - 1
        blank = before >= 0 and not self._lines[before].strip()
        del self._lines[before if blank else table.start : table.stop]

    def change(self, at: int, rule: StatedRule) -> None:
        """Change the verdict of a table, and its reason if the rule has one."""
        self._edit_verdict(at, rule.verdict, None)
        table = self._tables[at] if at < len(self._tables) else range(0)
        if rule.reason is None or not table:
            return
        reasons = [line for line in table if re.match(r"\s*reason\s*=", self._lines[line])]
        for line in reversed(reasons):
            del self._lines[line]
        place = reasons[0] if reasons else table.stop
        self._lines.insert(place, f"reason = {_quoted(rule.reason)}")

    def set_patterns(self, at: int, patterns: list[str]) -> None:
        """Give a table other patterns."""
        shown = ", ".join(map(_quoted, patterns))
        self._edit_verdict(at, None, f"[{shown}]")

    def _edit_verdict(self, at: int, verdict: Verdict | None, value: str | None) -> None:
        for line in self._tables[at] if at < len(self._tables) else ():
            if found := _VERDICT_LINE.fullmatch(self._lines[line]):
                parts = found["indent"], verdict or found["verdict"], found["sign"], value or found["value"], found["end"]
                self._lines[line] = "".join(parts)


def _is_empty(line: str) -> bool:
    return not line.partition("#")[0].strip()


def _quoted(text: str) -> str:
    """Return a text as TOML, with single quotes where that reads better."""
    if '"' in text and "'" not in text and text.isprintable():
        return f"'{text}'"
    return tomlkit.item(text).as_string()


def _checked(path: Path, before: str, after: str, wanted: list[Any]) -> str:
    """Return the new text if it has exactly the wanted rules, and everything else as it was."""
    expected = {**parse_toml(path, before), "rules": wanted}
    try:
        found = tomllib.loads(after)
    except ValueError:
        found = {}
    if {"rules": [], **found} != expected:
        raise OptionError(f"the rules in {path} can't be changed without changing more", hint="change them by hand")
    return after
