"""A change of the rules in a settings file: worked out and shown first, then made."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from gloveport.config import Config
from gloveport.errors import OptionError
from gloveport.loosening import trust_settings
from gloveport.rules.conditions import compile_condition
from gloveport.rules.rule import VERDICTS
from gloveport.rules.tables import read_rule
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.file_change import FileChange, read_text
from gloveport.surfaces.policy.rules_text import StatedRule, patterns_of, rules_in, with_rule, without_rule
from gloveport.types import DEFAULT_AGENT


@dataclass(frozen=True, slots=True)
class RuleChange:
    """What a settings file would become with a rule, or without it, and what to know about that."""

    rule: StatedRule
    file: FileChange
    warnings: tuple[str, ...]

    @property
    def changes(self) -> bool:
        """Whether the file has not been like this already."""
        return self.file.after != self.file.before

    def make(self, settings: Config) -> list[str]:
        """Write the file. A project's file stays trusted if all of it was; return what has no effect otherwise."""
        self.file.make()
        after = settings.reloaded()
        if after.project is None or not after.ignored:
            return []
        if settings.ignored:
            return [
                f"{after.project} has settings that you have not trusted: `gloveport config trust` lets them take effect"
            ]
        trust_settings(after.project, after.loosening)
        return []


def change_of(path: Path, rule: StatedRule, settings: Config, *, remove: bool) -> RuleChange:
    """Return the change that writes a rule to a file, or removes it there.

    Raises OptionError for a rule that is none, and ConditionError for a condition that is none.
    """
    if rule.when is not None:
        compile_condition(rule.when)
    read_rule(rule.table)
    text = read_text(path)
    if remove:
        return RuleChange(rule, FileChange(path, text, _without(path, text or "", rule)), ())
    change = FileChange(path, text, with_rule(path, text or "", rule))
    return RuleChange(rule, change, tuple(_warnings(rule, settings)))


def _without(path: Path, text: str, rule: StatedRule) -> str:
    tables = rules_in(path, text)
    if any(rule.is_in(table) for table in tables):
        return without_rule(path, text, rule)
    similar = [table for table in tables if isinstance(table, dict) and rule.pattern in patterns_of(table)]
    there = "; ".join(", ".join(f"{key} = {value!r}" for key, value in table.items()) for table in similar)
    hint = f"it has {there}" if similar else "`gloveport policy list` shows the rules and their places"
    raise OptionError(f"{path} has no rule {rule.verdict} = {rule.pattern!r} of this kind", code="not-found", hint=hint)


def _warnings(rule: StatedRule, settings: Config) -> Iterator[str]:
    """Warn of an agent that does not exist, and of stricter rules that win over the new one."""
    agents = (*settings.governance.agents, DEFAULT_AGENT)
    if not any(re.match(translate(rule.agent), agent) for agent in agents):
        meant = did_you_mean(rule.agent, agents)
        yield f"there is no agent {rule.agent}{f'; {meant}' if meant else ''}: the rule applies to nobody now"
    stricter = VERDICTS[: VERDICTS.index(rule.verdict)]
    for other in settings.governance.rules:
        same = (other.pattern, other.agent) == (rule.pattern, rule.agent)
        covers = re.match(translate(other.pattern), rule.pattern) and re.match(translate(other.agent), rule.agent)
        if other.verdict in stricter and covers and not same:
            yield f"`{other}` in {other.place} wins over it"
