"""The rules that a person states: over the tools that programs call, and over the addresses that `fetch` may reach."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase

from gloveport.errors import OptionError
from gloveport.rules.conditions import Condition, ConditionError, compile_condition
from gloveport.types import Verdict
from gloveport.urls import Url

VERDICTS: tuple[Verdict, ...] = ("deny", "ask", "allow")
"""The strictest first."""

# `https://api.example.com`, `https://*.example.com`, `http://127.0.0.1:8000`, `https://*:*`, or `*` for every address.
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\*|(?:\*\.)?[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])"
    r"(?::(?P<port>[0-9]{1,5}|\*))?"
)
_METHOD = re.compile(r"[A-Z]{1,32}")
_PORTS = {"http": "80", "https": "443"}


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: a pattern over tool addresses (`*` crosses dots), one over agents, and a condition on the arguments.

    `reason` is shown to agents and people. `place` is the file and line of the rule. `when` may be given as text.
    """

    pattern: str
    verdict: Verdict
    agent: str = "*"
    when: Condition | str | None = None
    reason: str = ""
    place: str = ""

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise OptionError(f"a rule is one of {', '.join(reversed(VERDICTS))}, not {self.verdict!r:.40}")
        if isinstance(self.when, str):
            try:
                object.__setattr__(self, "when", compile_condition(self.when))
            except ConditionError as error:
                message = f"the condition of the rule for {self.pattern} is wrong at column {error.column}: {error.message}"
                raise OptionError(message, hint=error.hint) from None

    @property
    def condition(self) -> Condition | None:
        """The compiled condition."""
        return self.when if isinstance(self.when, Condition) else None

    def __str__(self) -> str:
        parts = [f'{self.verdict} = "{self.pattern}"']
        parts += [f'agent = "{self.agent}"'] if self.agent != "*" else []
        parts += [f"when = '{self.condition.text}'"] if self.condition else []
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class EgressRule(Rule):
    """A rule over the addresses that `fetch` may reach: a pattern over origins, and the methods (none: all of them).

    Only a rule with `allow_private` lets it reach loopback and private addresses; its pattern is one host and one port.
    """

    methods: tuple[str, ...] = ()
    allow_private: bool = False

    def __post_init__(self) -> None:
        Rule.__post_init__(self)
        self._parts()
        if unknown := [one for one in self.methods if not _METHOD.fullmatch(one)]:
            raise OptionError(f"{unknown[0]!r:.40} is not an HTTP method", hint='write methods = ["GET", "POST"]')
        if self.allow_private and (self.verdict == "deny" or "*" in self.pattern or not _names_port(self.pattern)):
            hint = 'write the whole origin: allow = "http://127.0.0.1:8000"'
            raise OptionError("allow_private stands in a rule that allows or asks about one host and one port", hint=hint)

    def covers(self, url: Url, method: str, agent: str) -> bool:
        """Return whether it is about a request of an agent."""
        if (self.methods and method not in self.methods) or not fnmatchcase(agent, self.agent):
            return False
        if self.pattern == "*":
            return True
        scheme, host, port = self._parts()
        named = host == "*" or (url.host.endswith(host[1:]) if host.startswith("*.") else url.host == host)
        return named and scheme == url.scheme and port in ("*", str(url.port))

    def _parts(self) -> tuple[str, str, str]:
        if self.pattern == "*":
            return "*", "*", "*"
        found = _ORIGIN.fullmatch(self.pattern)
        if found is None:
            raise OptionError(f"{self.pattern!r:.60} is not a pattern over origins", hint=_origin_hint(self.pattern))
        return found["scheme"], found["host"].strip("[]"), found["port"] or _PORTS[found["scheme"]]

    def __str__(self) -> str:
        parts = [f'{self.verdict} = "{self.pattern}"']
        parts += [f"methods = [{', '.join(map(repr, self.methods))}]".replace("'", '"')] if self.methods else []
        parts += [f'agent = "{self.agent}"'] if self.agent != "*" else []
        parts += ["allow_private = true"] if self.allow_private else []
        return ", ".join(parts)


def _names_port(pattern: str) -> bool:
    return pattern.rpartition(":")[2].isdecimal()


def _origin_hint(pattern: str) -> str:
    scheme, separator, rest = pattern.partition("://")
    if not separator:
        return f'write the scheme: "https://{scheme[:60]}"'
    if "/" in rest:
        return f'write the origin without a path: "{scheme}://{rest.partition("/")[0][:60]}"'.lower()
    return 'write it as "https://api.example.com", "https://*.example.com", "http://127.0.0.1:8000" or "*"'
