"""`gloveport policy set`: shows the change to the rules of a settings file, asks, and makes it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from gloveport.config import Config, load_config
from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.loosening import trust_settings
from gloveport.rules.conditions import ConditionError, compile_condition
from gloveport.rules.rule import VERDICTS
from gloveport.rules.tables import read_rule
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.cli.file_change import FileChange, ask, read_text
from gloveport.surfaces.cli.policy.rules_text import StatedRule, patterns_of, rules_in, with_rule, without_rule
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import Stream, cells, stream, visible_line
from gloveport.types import DEFAULT_AGENT, Verdict


@dataclass(frozen=True, slots=True)
class SetRuleOptions:
    """The command line of `gloveport policy set`, not yet checked."""

    verdict: Verdict
    pattern: str
    agent: str | None
    when: str | None
    reason: str | None
    remove: bool
    user: bool
    yes: bool
    as_json: bool
    color: str


def set_rule_command(options: SetRuleOptions) -> int:
    """Change the rules of a settings file; return the exit code."""
    err, out = stream(sys.stderr, options.color), stream(sys.stdout, options.color)
    rule = _rule(options)
    settings = load_config()  # settings that can't be read are reported before anything is changed
    path = _file(options)
    text = read_text(path)
    changed = _without(path, text or "", rule) if options.remove else with_rule(path, text or "", rule)
    change = FileChange(path, text, changed)
    warnings = list(_warnings(rule, settings)) if not options.remove else []
    if changed != text:
        if not options.as_json:
            change.show(err)
        what = "Remove this rule from" if options.remove else "Write this rule to"
        ask(f"{what} {path}?", err, yes=options.yes, as_json=options.as_json)
        change.make()
        warnings += _trust(settings)
    if options.as_json:
        about = {"file": str(path), "rule": rule.table, "changed": changed != text, "removed": options.remove}
        write_document(out, {"ok": True, **about, "warnings": warnings})
    else:
        _show_end(err, path, warnings, changed=changed != text, remove=options.remove)
    return 0


def _show_end(err: Stream, path: Path, warnings: list[str], *, changed: bool, remove: bool) -> None:
    done = f"{'removed from' if remove else 'written to'} {path}" if changed else f"{path} has this rule already"
    err.line(f"{err.paint('✓', 'green')} {done}")
    for warning in warnings:
        err.line(f"{err.paint('!', 'yellow')} {visible_line(warning)}")


def _rule(options: SetRuleOptions) -> StatedRule:
    """Return the rule that the command line states; raise OptionError."""
    if options.when is not None:
        try:
            compile_condition(options.when)
        except ConditionError as error:
            raise OptionError(f"--when is no condition: {_marked(options.when, error)}", hint=error.hint) from None
    pattern = options.pattern.removeprefix("tools.")
    rule = StatedRule(options.verdict, pattern, options.agent or "*", options.when, options.reason)
    read_rule(rule.table)
    return rule


def _marked(text: str, error: ConditionError) -> str:
    """Return the message of an error in a condition, with a caret under its place."""
    caret = " " * cells(visible_line(text[: error.column - 1])) + "^"
    return f"{error.message} (column {error.column})\n{visible_line(text)}\n{caret}"


def _file(options: SetRuleOptions) -> Path:
    own = config_folder() / CONFIG_FILE
    return own if options.user else find_project() or own


def _without(path: Path, text: str, rule: StatedRule) -> str:
    tables = rules_in(path, text)
    if any(rule.is_in(table) for table in tables):
        return without_rule(path, text, rule)
    similar = [table for table in tables if isinstance(table, dict) and rule.pattern in patterns_of(table)]
    there = "; ".join(", ".join(f"{key} = {value!r}" for key, value in table.items()) for table in similar)
    hint = f"it has {there}" if similar else "`gloveport policy list` shows the rules and their places"
    raise OptionError(f"{path} has no rule {rule.verdict} = {rule.pattern!r} of this kind", hint=hint)


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


def _trust(before: Config) -> list[str]:
    """Trust the project's file as it is now, if the user has trusted all of it before; else say what has no effect."""
    after = load_config()
    if after.project is None or not after.ignored:
        return []
    if before.ignored:
        return [f"{after.project} has settings that you have not trusted: `gloveport config trust` lets them take effect"]
    trust_settings(after.project, after.loosening)
    return []
