"""`gloveport policy set`: shows the change to the rules of a settings file, asks, and makes it."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from gloveport.config import load_config
from gloveport.errors import OptionError
from gloveport.folders import CONFIG_FILE, config_folder, find_project
from gloveport.rules.conditions import ConditionError
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.policy.rule_change import change_of
from gloveport.surfaces.policy.rules_text import StatedRule
from gloveport.surfaces.terminal import Stream, cells, stream, visible_line
from gloveport.types import Verdict


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
    pattern = options.pattern.removeprefix("tools.")
    rule = StatedRule(options.verdict, pattern, options.agent or "*", options.when, options.reason)
    settings = load_config()  # settings that can't be read are reported before anything is changed
    try:
        change = change_of(_file(options), rule, settings, remove=options.remove)
    except ConditionError as error:
        raise OptionError(f"--when is no condition: {_marked(options.when or '', error)}", hint=error.hint) from None
    path, warnings = change.file.path, list(change.warnings)
    if change.changes:
        if not options.as_json:
            change.file.show(err)
        what = "Remove this rule from" if options.remove else "Write this rule to"
        ask(f"{what} {path}?", err, yes=options.yes, as_json=options.as_json)
        warnings += change.make(settings)
    if options.as_json:
        about = {"file": str(path), "rule": rule.table, "changed": change.changes, "removed": options.remove}
        write_document(out, {"ok": True, **about, "warnings": warnings})
    else:
        _show_end(err, path, warnings, changed=change.changes, remove=options.remove)
    return 0


def _show_end(err: Stream, path: Path, warnings: list[str], *, changed: bool, remove: bool) -> None:
    done = f"{'removed from' if remove else 'written to'} {path}" if changed else f"{path} has this rule already"
    err.line(f"{err.paint('✓', 'green')} {done}")
    for warning in warnings:
        err.line(f"{err.paint('!', 'yellow')} {visible_line(warning)}")


def _marked(text: str, error: ConditionError) -> str:
    """Return the message of an error in a condition, with a caret under its place."""
    caret = " " * cells(visible_line(text[: error.column - 1])) + "^"
    return f"{error.message} (column {error.column})\n{visible_line(text)}\n{caret}"


def _file(options: SetRuleOptions) -> Path:
    own = config_folder() / CONFIG_FILE
    return own if options.user else find_project() or own
