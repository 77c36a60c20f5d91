"""Credentials: secrets that are revealed only on the last line before the socket, and where they come from."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn, Protocol

from gloveport.errors import OptionError, ToolError


class Secret:
    """A text that repr, logs, JSON and pickle never show. They show `label` instead."""

    __slots__ = ("_text", "label")

    def __init__(self, text: str, label: str) -> None:
        self._text = text
        self.label = label

    def reveal(self) -> str:
        """Return the text itself. Call it only on the last line before the socket."""
        return self._text

    def __repr__(self) -> str:
        return f"•••({self.label})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret can't be pickled")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A secret and how a request carries it. It is sent to `origins` (`https://api.github.com`) and nowhere else.

    `template` has one `{}` for the secret: `Bearer {}`. For `basic` the secret is `user:password`, sent in base64.
    """

    place: Literal["header", "query", "cookie", "basic"]
    name: str
    secret: Secret
    origins: frozenset[str]
    template: str = "{}"


class Credentials(Protocol):
    """A provider of secrets."""

    def find(self, source: str, slot: str) -> Secret | None:
        """Return the secret of a source's slot, or None when it is not configured."""
        ...

    def wanted(self, source: str, slot: str) -> str:
        """Return what a person must set so that `find` finds it: the variable, and any further setting."""
        ...


class EnvironmentCredentials:
    """Secrets from the environment of this process: `env:NAME` as configured, or GLOVEPORT_<SOURCE>_<SLOT>.

    `sources` are the names of all sources. A variable that may be meant for one source is not given to another.
    """

    def __init__(
        self,
        configured: Mapping[tuple[str, str], str],
        environment: Mapping[str, str] = os.environ,
        sources: Collection[str] = (),
    ) -> None:
        self._configured = dict(configured)
        self._environment = environment
        self._sources = sources  # the caller may add to it
        for (source, slot), origin in self._configured.items():
            if not origin.startswith("env:") or len(origin) == len("env:"):
                hint = f'write {slot} = "env:NAME_OF_A_VARIABLE": a configuration file must not hold secrets'
                raise OptionError(f"the credential {slot} of the source {source} is not `env:NAME`", hint=hint)

    def variable(self, source: str, slot: str) -> str:
        """Return the name of the environment variable that fills a slot."""
        return self._configured.get((source, slot), "").removeprefix("env:") or default_variable(source, slot)

    def wanted(self, source: str, slot: str) -> str:
        """Return the variable to set, or how to name one where the default may be meant for another source."""
        variable = self.variable(source, slot)
        rival = None if (source, slot) in self._configured else self._rival(source, variable)
        if rival is None:
            return variable
        named = f'credentials = {{ {slot} = "env:NAME" }} under [sources.{source}]'
        return f"a variable that you name with {named} ({variable} may be meant for the source {rival})"

    def find(self, source: str, slot: str) -> Secret | None:
        """Return the secret, or None when its variable is not set. Raise ToolError when the variable is ambiguous."""
        variable = self.variable(source, slot)
        text = self._environment.get(variable)
        if text and (source, slot) not in self._configured and (rival := self._rival(source, variable)):
            message = f"{variable} is set and may be meant for the source {rival} or for {source}"
            setting = f'decide under [sources.{source}]: credentials = {{ {slot} = "env:{variable}" }}, or another variable'
            raise ToolError(message, code="credential-missing", setting=setting)
        return Secret(text, f"{source}.{slot}") if text else None

    def _rival(self, source: str, variable: str) -> str | None:
        """Return another source whose default variables match at least as well: GLOVEPORT_SHOP_EU_TOKEN fits `shop_eu`."""
        own = len(default_variable(source, ""))
        starts = {other: default_variable(other, "") for other in self._sources if other != source}
        return next((other for other, start in starts.items() if variable.startswith(start) and len(start) >= own), None)


def default_variable(source: str, slot: str) -> str:
    """Return the variable that fills a slot when nothing is configured for it."""
    return f"GLOVEPORT_{source}_{slot}".upper()
