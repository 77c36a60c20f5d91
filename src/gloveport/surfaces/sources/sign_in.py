"""Signs in to the account of a source: finds its authorization server, gets tokens there, and stores them.

A person confirms the server between `find` and the grants: the service itself has named it (M9).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from urllib.parse import urljoin

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.egress import Egress, Request
from gloveport.policy.oauth.accounts import account_value
from gloveport.policy.oauth.discovery import (
    OFFLINE_ACCESS,
    AuthorizationServer,
    NoServerMetadata,
    declared_issuer,
    declared_server,
    discover,
    mcp_probe,
)
from gloveport.policy.oauth.grants import DeviceCode, GrantError, Grants, OAuthClient, PendingSignIn, Tokens
from gloveport.sources import SourceInfo
from gloveport.surfaces.sources.callback import CallbackServer
from gloveport.surfaces.terminal import visible_line

SIGN_IN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class SignInOptions:
    """What a person may say about a sign-in."""

    issuer: str | None = None
    client_id: str | None = None
    scopes: tuple[str, ...] = ()
    more_scopes: tuple[str, ...] = ()
    device: bool = False
    client_credentials: bool = False


class SignIn:
    """One sign-in to the account of a source. `origin` is where its tokens will be sent; `close` it at the end."""

    def __init__(
        self,
        config: SourceConfig,
        slot: str,
        origin: str,
        options: SignInOptions,
        *,
        secret: str = "",
        declared: AuthorizationServer | str | None = None,
    ) -> None:
        self._config = config
        self._name = f"{config.name}.{slot}"
        self._origin = origin
        self._options = options
        self._secret = secret
        self._declared = declared
        self._egress = Egress()
        self._server: AuthorizationServer | None = None
        self.is_declared = False
        """Whether the definition alone names the server: then nobody but a person can vouch for it."""

    @property
    def server(self) -> AuthorizationServer:
        """The authorization server that was found."""
        assert self._server is not None
        return self._server

    async def find(self) -> str:
        """Find the authorization server. Return what a person has to confirm about it; raise ToolError or OptionError."""
        config, options = self._config, self._options
        at = config.base_url or (config.location if config.kind in ("mcp", "graphql") else self._origin)
        assert isinstance(at, str)
        probe = mcp_probe(at) if config.kind == "mcp" else None
        try:
            found = await self._discover(at, options.issuer or "", probe)
        except NoServerMetadata:
            if self._declared is None:
                raise
            return await self._find_declared(at, self._declared)
        self._check_pkce(found)
        self._server = found
        origins = ", ".join(sorted(found.origins))
        page = urls.parse(found.authorization_endpoint).origin if found.authorization_endpoint else ""
        # A server that shows the page of another one would get the code of an account there (mix-up, M9).
        elsewhere = f"shows the page of {page}; " if page and page != urls.parse(found.issuer).origin else ""
        return f"{config.name} signs in at {visible_line(found.issuer)} ({elsewhere}tokens come from {origins}). Go on?"

    async def _find_declared(self, at: str, declared: AuthorizationServer | str) -> str:
        """Take the server that the definition alone names, by its URLs or as an issuer. Return what to confirm."""
        server = await self._discover(at, declared) if isinstance(declared, str) else declared
        self._server, self.is_declared = server, True
        page = f"the page {visible_line(server.authorization_endpoint)}, and " if server.authorization_endpoint else ""
        tokens = visible_line(server.token_endpoint)
        return f"the definition of {self._config.name} alone names {page}tokens from {tokens}. Go on?"

    async def _discover(self, at: str, issuer: str, probe: Request | None = None) -> AuthorizationServer:
        return await discover(self._egress, at, allow_private=self._config.allow_private, issuer=issuer, probe=probe)

    @property
    def digest(self) -> str:
        """A digest of the server that was found: what a person has confirmed."""
        stated = json.dumps([self._name, self._origin, asdict(self.server)], sort_keys=True)
        return hashlib.sha256(stated.encode()).hexdigest()

    def _check_pkce(self, server: AuthorizationServer) -> None:
        """Refuse an MCP server's authorization server that does not state PKCE, as the protocol demands (M9)."""
        options = self._options
        needed = self._config.kind == "mcp" and not (options.issuer or options.client_credentials or options.device)
        if needed and not server.supports_pkce:
            message = f"{visible_line(server.issuer)} does not state that it supports PKCE: a code could be stolen"
            raise OptionError(message, hint="name it with --issuer if you know that it does")

    async def by_client(self) -> StoredCredential:
        """Sign in as a client of its own, without a person."""
        scope = await self._scope()
        grants = self._grants()
        return await self._store(grants, "client_credentials", await grants.by_client(scope), scope)

    async def by_browser(self, show: Callable[[str], Awaitable[None]]) -> StoredCredential:
        """Sign in with a link, which `show` gets."""
        server, scope, grants = self.server, await self._scope(), self._grants()
        if not server.authorization_endpoint:
            other = "--device" if server.device_endpoint else "--client-credentials"
            raise OptionError(f"{visible_line(server.issuer)} has no page to sign in", hint=f"try {other}")
        async with CallbackServer() as callback:
            await self._registered(grants, callback.redirect_uri, scope)
            pending = PendingSignIn(server, grants.client, callback.redirect_uri, scope)
            callback.check = pending.code_from
            await show(pending.url)
            try:
                code = await callback.code(SIGN_IN_SECONDS)
            except TimeoutError:
                raise GloveportError("nobody has signed in", code="cancelled", hint="sign in again") from None
            tokens = await grants.by_code(code, pending)
        return await self._store(grants, "authorization_code", tokens, scope)

    async def by_device(self, show: Callable[[DeviceCode], None]) -> StoredCredential:
        """Sign in with a code that a person types elsewhere, which `show` gets."""
        server, scope, grants = self.server, await self._scope(), self._grants()
        if not server.device_endpoint:
            raise OptionError(f"{visible_line(server.issuer)} gives no device codes", hint="sign in without --device")
        await self._registered(grants, "", scope)
        device = await grants.device_code(scope)
        show(device)
        while time.time() < device.expires:
            await asyncio.sleep(device.interval)
            try:
                return await self._store(grants, "device_code", await grants.by_device(device), scope)
            except GrantError as error:
                if error.reason == "slow_down":
                    device = replace(device, interval=device.interval + 5)
                elif error.reason != "authorization_pending":
                    raise
        raise GloveportError("nobody has typed the code in time", code="cancelled", hint="sign in again")

    async def close(self) -> None:
        """Close the connections."""
        await self._egress.close()

    def _grants(self) -> Grants:
        return Grants(self._egress, self.server, self._client(), allow_private=self._config.allow_private)

    async def _scope(self) -> str:
        """Return what to ask for: what was named, and with more scopes also what was asked for before."""
        server, options = self.server, self._options
        known = await asyncio.to_thread(Vault().read, self._name) if options.more_scopes else None
        before = known[1]["scope"].split() if known and known[0].issuer == server.issuer else ()
        scopes = [*(options.scopes or before or server.scopes), *options.more_scopes]
        if server.offline_access and scopes and not options.scopes and not options.client_credentials:
            scopes.append(OFFLINE_ACCESS)  # without it, such a server gives no refresh token
        return " ".join(dict.fromkeys(scopes))

    def _client(self) -> OAuthClient:
        server, options, secret = self.server, self._options, self._secret
        if not options.client_id:
            return OAuthClient("")
        if options.client_id.startswith("https://") and not server.takes_metadata_documents:
            hint = "register a client there, and give its id"
            raise OptionError(
                f"{visible_line(server.issuer)} does not take a client's metadata document as its id", hint=hint
            )
        if not secret:
            return OAuthClient(options.client_id)
        post = "client_secret_post" in server.auth_methods and "client_secret_basic" not in server.auth_methods
        return OAuthClient(options.client_id, secret, "client_secret_post" if post else "client_secret_basic")

    async def _registered(self, grants: Grants, redirect_uri: str, scope: str) -> None:
        """Register a client where none was given."""
        if grants.client.id:
            return
        if not self.server.registration_endpoint:
            hint = "register a client there, and give its id (--client-id)"
            raise OptionError(f"{visible_line(self.server.issuer)} registers no clients by itself", hint=hint)
        await grants.register(redirect_uri, scope)

    async def _store(self, grants: Grants, grant: str, tokens: Tokens, scope: str) -> StoredCredential:
        server, private = self.server, self._config.allow_private
        about = StoredCredential(self._name, "oauth", (self._origin,), time.time(), tokens.expires, issuer=server.issuer)
        value = account_value(server, grants.client, tokens, grant=grant, scope=scope, allow_private=private)
        await asyncio.to_thread(Vault().write, about, value)
        return about


def declared_by(config: SourceConfig, info: SourceInfo | None, slot: str) -> AuthorizationServer | str | None:
    """Return the authorization server that the definition of a source names for a slot, or its issuer."""
    slots = info.slots if info is not None else ()
    named = next((one for one in slots if one.name == slot and (one.token_url or one.discovery_url)), None)
    if info is None or named is None:
        return None
    base = f"{(config.base_url or info.server).rstrip('/')}/"  # relative URLs are so to the server of the definition
    if named.discovery_url:
        return declared_issuer(urljoin(base, named.discovery_url))
    page = urljoin(base, named.authorization_url) if named.authorization_url else ""
    return declared_server(page, urljoin(base, named.token_url))
