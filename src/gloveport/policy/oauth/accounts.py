"""Stored OAuth accounts: gives access tokens, and refreshes them once, whoever asks, in whatever process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import msgspec

from gloveport.errors import SealError, ToolError
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.oauth.discovery import AuthorizationServer
from gloveport.policy.oauth.grants import GrantError, Grants, OAuthClient, Tokens

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

REFRESH_AHEAD_SECONDS = 30.0
MAX_LOCK_SECONDS = 60.0
# Errors after which a refresh token never works again. Any other refusal may be a fault that passes.
_ENDED = frozenset({"invalid_grant", "invalid_client", "unauthorized_client", "unsupported_grant_type", "invalid_scope"})


def account_value(
    server: AuthorizationServer, client: OAuthClient, tokens: Tokens, *, grant: str, scope: str, allow_private: bool
) -> dict[str, Any]:
    """Return what the vault seals of an account."""
    return {
        "server": asdict(server),
        "client": asdict(client),
        "tokens": asdict(tokens),
        "grant": grant,
        "scope": scope,
        "allow_private": allow_private,
    }


def grants_of(egress: Egress, value: Mapping[str, Any]) -> Grants:
    """Return the requests of a stored account."""
    server = msgspec.convert(value["server"], AuthorizationServer)
    return Grants(egress, server, OAuthClient(**value["client"]), allow_private=value["allow_private"])


def sign_in_error(name: str, problem: str) -> ToolError:
    """Return the error of an account that a person has to sign in to again."""
    source = name.removesuffix(".token")
    setting = f"run `gloveport auth login {source}`"
    return ToolError(f"the account {name} needs a sign-in: {problem}", code="auth-required", setting=setting)


class Accounts:
    """The OAuth accounts of a vault, in one event loop."""

    def __init__(self, vault: Vault, egress: Egress) -> None:
        self._vault = vault
        self._egress = egress
        self._refreshing: dict[str, asyncio.Task[str]] = {}

    async def access_token(self, about: StoredCredential, value: Mapping[str, Any], refused: str | None) -> str:
        """Return a token that is neither expired nor the refused one; raise ToolError `auth-required`."""
        if about.sign_in:
            raise sign_in_error(about.name, "its tokens were revoked or have expired")
        if _usable(value, refused):
            return value["tokens"]["access"]
        task = self._refreshing.get(about.name)
        if task is None:
            task = self._refreshing[about.name] = asyncio.ensure_future(self._refresh(about.name, refused))
            task.add_done_callback(lambda done: self._done(about.name, done))
        # A caller that gives up must not end the refresh: a rotated token that nobody stored would be lost.
        return await asyncio.shield(task)

    def _done(self, name: str, task: asyncio.Task[str]) -> None:
        self._refreshing.pop(name, None)
        if not task.cancelled():
            task.exception()  # mark it as retrieved: whoever waited may have gone

    async def _refresh(self, name: str, refused: str | None) -> str:
        lock = self._vault.exclusively(name, MAX_LOCK_SECONDS)
        try:
            await asyncio.to_thread(lock.__enter__)
        except TimeoutError:
            message = f"another process takes long to refresh the account {name}"
            raise ToolError(message, code="source-timeout", retryable=True) from None
        try:
            return await self._refresh_locked(name, refused)
        except SealError as error:
            raise ToolError(error.message, code=error.code, setting=error.hint) from None
        finally:
            await asyncio.to_thread(lock.__exit__, None, None, None)

    async def _refresh_locked(self, name: str, refused: str | None) -> str:
        found = await asyncio.to_thread(self._vault.read, name)
        if found is None or found[0].sign_in:
            raise sign_in_error(name, "it was signed out")
        about, value = found
        if _usable(value, refused):  # another process was faster
            return value["tokens"]["access"]
        grants = grants_of(self._egress, value)
        refresh = value["tokens"]["refresh"]
        if not refresh and value["grant"] != "client_credentials":
            await self._sign_in(about, value)
            raise sign_in_error(name, "its token has expired and it has no refresh token")
        try:
            tokens = await (grants.by_refresh(refresh) if refresh else grants.by_client(value["scope"]))
        except GrantError as error:
            if error.reason not in _ENDED:
                raise
            await self._sign_in(about, value)
            raise sign_in_error(name, f"the server refused to refresh it ({error.reason})") from None
        fresh = {**value, "tokens": asdict(tokens)}
        await asyncio.to_thread(self._vault.write, replace(about, expires=tokens.expires), fresh)
        return tokens.access

    async def _sign_in(self, about: StoredCredential, value: Mapping[str, Any]) -> None:
        """Record that a person has to sign in: no later request asks the server again."""
        await asyncio.to_thread(self._vault.write, replace(about, sign_in=True), value)


def _usable(value: Mapping[str, Any], refused: str | None) -> bool:
    tokens = value["tokens"]
    fresh = tokens["expires"] is None or tokens["expires"] > time.time() + REFRESH_AHEAD_SECONDS
    return tokens["access"] != refused and fresh
