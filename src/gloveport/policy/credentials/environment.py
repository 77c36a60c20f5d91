"""Secrets from the environment of this process."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping

from gloveport.errors import ToolError
from gloveport.policy.credentials import Secret


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

    def variable(self, source: str, slot: str) -> str:
        """Return the name of the environment variable that fills a slot."""
        return self._configured.get((source, slot), "").removeprefix("env:") or default_variable(source, slot)

    def wanted(self, source: str, slot: str) -> str:
        """Return which variable to set, or how to name one where the default may be meant for another source."""
        variable = self.variable(source, slot)
        rival = None if (source, slot) in self._configured else self._rival(source, variable)
        if rival is None:
            return f"set {variable}"
        named = f'credentials = {{ {slot} = "env:NAME" }} under [sources.{source}]'
        return f"set a variable that you name with {named} ({variable} may be meant for the source {rival})"

    async def find(self, source: str, slot: str, origin: str = "") -> Secret | None:
        """Return the secret, or None when its variable is not set. Raise ToolError when the variable is ambiguous."""
        variable = self.variable(source, slot)
        text = self._environment.get(variable)
        if text and (source, slot) not in self._configured and (rival := self._rival(source, variable)):
            message = f"{variable} is set and may be meant for the source {rival} or for {source}"
            setting = f'decide under [sources.{source}]: credentials = {{ {slot} = "env:{variable}" }}, or another variable'
            raise ToolError(message, code="auth-required", setting=setting)
        return Secret(text, f"{source}.{slot}") if text else None

    async def renew(self, refused: Secret, origin: str = "") -> Secret | None:
        """Return the secret of the same slot if its variable has another value by now."""
        source, _, slot = refused.label.partition(".")
        found = await self.find(source, slot, origin)
        return found if found and found.reveal() != refused.reveal() else None

    def _rival(self, source: str, variable: str) -> str | None:
        """Return another source whose default variables match at least as well: GLOVEPORT_SHOP_EU_TOKEN fits `shop_eu`."""
        own = len(default_variable(source, ""))
        starts = {other: default_variable(other, "") for other in self._sources if other != source}
        return next((other for other, start in starts.items() if variable.startswith(start) and len(start) >= own), None)


def default_variable(source: str, slot: str) -> str:
    """Return the variable that fills a slot when nothing is configured for it."""
    return f"GLOVEPORT_{source}_{slot}".upper()
