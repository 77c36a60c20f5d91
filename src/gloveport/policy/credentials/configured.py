"""The credentials of the configured sources: each slot's reference decides where its secret comes from.

Without a reference, a slot is filled from the environment, or else from the vault, under the name `SOURCE.SLOT`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from gloveport.config.credential_references import check_reference, split_reference
from gloveport.errors import SealError, ToolError
from gloveport.policy.credentials import Secret
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.credentials.providers import OWN_SCHEMES, PROVIDERS, CredentialProvider
from gloveport.policy.credentials.vault import Vault

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress
    from gloveport.policy.oauth.accounts import Accounts

TOKEN_SLOT = "token"


class ConfiguredCredentials:
    """Finds secrets in the environment, the vault, or through a provider. `sources` are as for the environment."""

    def __init__(
        self,
        configured: Mapping[tuple[str, str], str],
        *,
        egress: Egress,
        vault: Vault | None = None,
        sources: Collection[str] = (),
        environment: Mapping[str, str] = os.environ,
        providers: Mapping[str, CredentialProvider] = PROVIDERS,
    ) -> None:
        for (source, slot), reference in configured.items():
            check_reference(source, slot, reference, (*OWN_SCHEMES, *providers))
        self._references = {key: split_reference(reference) for key, reference in configured.items()}
        variables = {key: f"env:{name}" for key, (scheme, name) in self._references.items() if scheme == "env"}
        self._environment = EnvironmentCredentials(variables, environment, sources)
        self._egress = egress
        self._vault = vault or Vault()
        self._providers = providers
        self._accounts: Accounts | None = None
        # What a provider gave stays until a service refuses it: a command or a keyring takes too long for every request.
        self._given: dict[tuple[str, str], asyncio.Future[str | None]] = {}

    async def find(self, source: str, slot: str, origin: str) -> Secret | None:
        """Return the secret of a slot; raise ToolError `auth-required` when a person has to do something first."""
        label = f"{source}.{slot}"
        scheme, name = self._references.get((source, slot), ("", ""))
        if scheme in ("", "env"):
            found = await self._environment.find(source, slot)
            if found is not None or scheme:
                return found
        if scheme in ("", "stored"):
            text = await self._stored(name or label, origin, None)
        else:
            text = await self._provided(scheme, name)
        return Secret(text, label) if text else None

    async def renew(self, refused: Secret, origin: str) -> Secret | None:
        """Return another secret than the refused one: read anew, or refreshed; None when there is no other."""
        source, _, slot = refused.label.partition(".")
        scheme, name = self._references.get((source, slot), ("", ""))
        if scheme in ("", "env") and (scheme or await self._environment.find(source, slot)):
            return await self._environment.renew(refused)
        if scheme in ("", "stored"):
            text = await self._stored(name or refused.label, origin, refused.reveal())
        else:
            given = self._given.get((scheme, name))
            if given is not None and given.done() and given.result() == refused.reveal():
                del self._given[scheme, name]
            text = await self._provided(scheme, name)
        return Secret(text, refused.label) if text and text != refused.reveal() else None

    def wanted(self, source: str, slot: str) -> str:
        """Return the command to run, or the variable to set."""
        scheme, name = self._references.get((source, slot), ("", ""))
        if scheme == "env":
            return self._environment.wanted(source, slot)
        if scheme in ("", "stored"):
            named = name or (source if slot == TOKEN_SLOT else f"{source}.{slot}")
            if self._is_account(name or f"{source}.{slot}"):
                return f"run `gloveport auth login {named}`"
            run = f"run `gloveport auth add {named}`"
            return run if scheme else f"{run} or {self._environment.wanted(source, slot)}"
        return self._providers[scheme].wanted(name)

    def _is_account(self, name: str) -> bool:
        try:
            return any(about.name == name and about.kind == "oauth" for about in self._vault.stored())
        except SealError:
            return False

    async def _stored(self, name: str, origin: str, refused: str | None) -> str | None:
        try:
            known = self._vault.read_at_once(name)
            found = known[0] if known is not None else await asyncio.to_thread(self._vault.read, name)
        except SealError as error:
            raise ToolError(error.message, code=error.code, setting=error.hint) from None
        if found is None:
            return None
        about, value = found
        if origin not in about.origins:
            theirs = ", ".join(about.origins) or "no origin"
            message = f"the stored credential {name} is for {theirs}, not for {origin or 'a command'}"
            setting = f"add one for this origin with `gloveport auth add {name}`"
            raise ToolError(message, code="egress-denied", setting=setting)
        if about.is_expired:
            setting = f"run `gloveport auth add {name.removesuffix(f'.{TOKEN_SLOT}')}`"
            raise ToolError(f"the stored credential {name} has expired", code="auth-required", setting=setting)
        if about.kind == "secret":
            return value.get("secret")
        if self._accounts is None:
            from gloveport.policy.oauth.accounts import Accounts

            self._accounts = Accounts(self._vault, self._egress)
        return await self._accounts.access_token(about, value, refused)

    async def _provided(self, scheme: str, name: str) -> str | None:
        given = self._given.get((scheme, name))
        if given is None:
            given = self._given[scheme, name] = asyncio.ensure_future(self._providers[scheme].read(name))
            given.add_done_callback(lambda done: self._forget_failure((scheme, name), done))
        return await asyncio.shield(given)

    def _forget_failure(self, key: tuple[str, str], done: asyncio.Future[str | None]) -> None:
        if (done.cancelled() or done.exception() or not done.result()) and self._given.get(key) is done:
            del self._given[key]
