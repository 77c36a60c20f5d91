"""The endpoints of rules: those in force with their places, the decision on a call, and changes of the settings file."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase, translate
from typing import Any

from gloveport.config import Config
from gloveport.errors import GloveportError, OptionError, ToolError
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.rules.conditions import MAX_CONDITION_CHARS, ConditionError
from gloveport.rules.rule import EgressRule, Rule
from gloveport.rules.tables import MAX_PATTERN_CHARS
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.file_change import read_text
from gloveport.surfaces.http.api import schemas
from gloveport.surfaces.http.api.endpoint import ADMINS, PEOPLE, ApiCall, ApiEndpoint, ApiReply
from gloveport.surfaces.policy.explanation import agent_named, explain_call
from gloveport.surfaces.policy.rule_change import RuleChange, change_of
from gloveport.surfaces.policy.rule_documents import policies_document, rules_in_force
from gloveport.surfaces.policy.rules_text import StatedRule, rules_in
from gloveport.surfaces.settings import chosen_file, settings_files
from gloveport.types import DEFAULT_AGENT, FETCH_TOOLS

MAX_RULE_CHARS = 2000
_VERDICT = {"enum": ["allow", "ask", "deny"]}
_NAME = {"type": "string", "minLength": 1, "maxLength": MAX_PATTERN_CHARS}
_TEXT = {"type": "string", "minLength": 1, "maxLength": MAX_RULE_CHARS}
_EXPLAIN = schemas.record({"tool": {**_TEXT, "description": "its name, or a URL"}}, args={"type": "object"}, agent=_NAME)
_CHANGE = schemas.record(
    {"verdict": _VERDICT, "pattern": _NAME},
    agent=_NAME,
    when={**_TEXT, "maxLength": MAX_CONDITION_CHARS, "format": "condition"},
    reason=_TEXT,
    remove={**schemas.FLAG, "default": False},
    file={"enum": ["project", "user"], "description": "which settings; the project's if there are any"},
    digest={**schemas.TEXT, "description": "that of the change that was shown: make it. Without, nothing is changed"},
)
_FOR = {"agent": {**_NAME, "description": "only what concerns this agent"}}
_RULE: schemas.Schema = {
    "type": "object",
    "properties": {
        "verdict": _VERDICT,
        "pattern": schemas.TEXT,
        "agent": schemas.TEXT,
        "when": schemas.OPTIONAL_TEXT,
        "reason": schemas.OPTIONAL_TEXT,
        "place": schemas.TEXT,
        "file": {"enum": ["user", "project", None], "description": "the settings from which a change can remove it"},
    },
    "required": ["verdict", "pattern", "agent", "when", "reason", "place"],
}
_POLICIES = schemas.found(
    preset=schemas.TEXT,
    meaning=schemas.TEXT,
    rules=schemas.rows(_RULE),
    budgets=schemas.rows({"type": "object"}),
    denied_writes=schemas.rows({"type": "object"}),
    ignored=schemas.rows({"type": "object"}),
    preset_place=schemas.TEXT,
    agents=schemas.rows(schemas.TEXT),
)
_EXPLANATION: schemas.Schema = {
    "type": "object",
    "properties": {"matches": schemas.rows(_RULE), "hidden": schemas.FLAG, "change": schemas.TEXT},
    "required": ["ok", "tool", "agent", "decision", "preset", "matches", "budgets", "labels", "reads", "hidden", "change"],
}
_CHANGED = schemas.found(
    file=schemas.TEXT,
    rule={"type": "object"},
    diff=schemas.rows(schemas.TEXT),
    changes=schemas.FLAG,
    made=schemas.FLAG,
    digest=schemas.TEXT,
    warnings=schemas.rows(schemas.TEXT),
)


class PoliciesApi:
    """The rules, for the people who decide. Only an admin changes them: in the settings file, as the command line does."""

    def __init__(self, port: Gloveport) -> None:
        self._port = port

    @property
    def endpoints(self) -> list[ApiEndpoint]:
        """The endpoints of rules."""
        return [
            ApiEndpoint("GET", "/v1/policies", PEOPLE, "List the rules.", self._list, {200: _POLICIES}, query=_FOR),
            ApiEndpoint(
                "POST", "/v1/policies", ADMINS, "Show or make a change.", self._change, {200: _CHANGED}, body=_CHANGE
            ),
            ApiEndpoint(
                "POST",
                "/v1/policies/explain",
                PEOPLE,
                "Explain the decision on a call.",
                self._explain,
                {200: _EXPLANATION},
                body=_EXPLAIN,
            ),
        ]

    async def _list(self, call: ApiCall) -> ApiReply:
        settings = self._port.settings
        place = settings.origins.get("policy.preset", "")
        agents = [DEFAULT_AGENT, *(name for name in settings.governance.agents if name != DEFAULT_AGENT)]
        found = policies_document(settings)
        files = await off_loop(_files_of, rules_in_force(settings), settings)
        rules = [{**rule, "file": file} for rule, file in zip(found["rules"], files, strict=True)]
        about = {**found, "rules": rules, "preset_place": place, "agents": agents}
        if (agent := call.query.get("agent")) is not None:
            about |= {key: [one for one in about[key] if fnmatchcase(agent, one["agent"])] for key in ("rules", "budgets")}
        return ApiReply({"ok": True, **about})

    async def _explain(self, call: ApiCall) -> ApiReply:
        settings = self._port.settings
        try:
            agent = agent_named(settings, call.body.get("agent", DEFAULT_AGENT))
            about = await explain_call(self._port, settings, call.body["tool"], call.body.get("args"), agent)
        except (OptionError, ToolError) as error:
            if isinstance(error, OptionError) or error.code == "unknown-tool":  # no such agent, or no such tool
                raise GloveportError(error.message, code="not-found", hint=error.hint) from None
            raise
        return ApiReply({"ok": True, **about.document})

    async def _change(self, call: ApiCall) -> ApiReply:
        body, settings = call.body, self._port.settings
        pattern = body["pattern"].removeprefix("tools.") or body["pattern"]
        rule = StatedRule(body["verdict"], pattern, body.get("agent", "*"), body.get("when"), body.get("reason"))
        path = chosen_file(settings, body.get("file"))
        try:
            change = await off_loop(lambda: change_of(path, rule, settings, remove=body.get("remove", False)))
        except ConditionError as error:
            message = f"`when` is no condition: {error.message} (column {error.column})"
            raise OptionError(message, hint=error.hint) from None
        digest, warnings, made = _digest(change), list(change.warnings), False
        if not body.get("remove", False):
            addresses = [*FETCH_TOOLS, *(tool.address for tool in self._port.catalog.tools)]
            warnings += await off_loop(lambda: list(_no_such_tools(pattern, addresses)))
        if "digest" in body:
            if body["digest"] != digest:
                hint = "look at the change again: the file is not as it was when you saw it; nothing was changed"
                raise OptionError(f"{path} was changed in the meantime", code="out-of-date", hint=hint)
            if change.changes:
                warnings += await off_loop(change.make, settings)
                made = True
        about: dict[str, Any] = {"file": str(path), "rule": rule.table, "diff": change.file.diff, "made": made}
        return ApiReply({"ok": True, **about, "changes": change.changes, "digest": digest, "warnings": warnings})


def _files_of(rules: Sequence[Rule], settings: Config) -> list[str | None]:
    """Return which settings have each rule as one of their `[[rules]]`, where a change can take it away."""
    paths = {name: path for name, path in settings_files(settings).items() if path is not None}
    tables = {name: rules_in(path, read_text(path) or "") for name, path in paths.items()}

    def file_of(rule: Rule) -> str | None:
        stated = StatedRule(rule.verdict, rule.pattern, rule.agent, rule.condition.text if rule.condition else None)
        places = (name for name, path in paths.items() if rule.place.startswith(f"{path}:"))
        return next((name for name in places if any(map(stated.is_in, tables[name]))), None)

    return [None if isinstance(rule, EgressRule) else file_of(rule) for rule in rules]


def _no_such_tools(pattern: str, addresses: Sequence[str]) -> Iterator[str]:
    """Warn of a pattern that covers no tool: one that is misspelt would deny nothing, unnoticed."""
    matches = re.compile(translate(pattern)).match
    if not any(map(matches, addresses)):
        meant = did_you_mean(pattern, addresses)
        yield f"no tool that is here now is called {pattern}{f': {meant}' if meant else ''}"


def _digest(change: RuleChange) -> str:
    """Return what identifies a change: the text before and after it, and the file."""
    parts = str(change.file.path), change.file.before or "", change.file.after
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()
