"""`gloveport auth login`: finds the authorization server of a source, asks whether to use it, and signs in."""

from __future__ import annotations

import asyncio
import time
import webbrowser
from dataclasses import dataclass, replace

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import GloveportError, OptionError
from gloveport.host.port import Gloveport
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.egress import Egress
from gloveport.policy.oauth.accounts import account_value
from gloveport.policy.oauth.discovery import (
    OFFLINE_ACCESS,
    AuthorizationServer,
    NoServerMetadata,
    declared_server,
    discover,
    mcp_probe,
    safe_url,
)
from gloveport.policy.oauth.grants import GrantError, Grants, OAuthClient, PendingSignIn, Tokens
from gloveport.surfaces.cli.auth.callback import CallbackServer
from gloveport.surfaces.cli.auth.command import place_of, read_secret, report, source_and_slot
from gloveport.surfaces.cli.file_change import ask
from gloveport.surfaces.cli.tools.command import with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.terminal import visible_line

SIGN_IN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class LoginOptions:
    """The options of `gloveport auth login`."""

    issuer: str | None = None
    client_id: str | None = None
    client_secret: bool = False
    scopes: tuple[str, ...] = ()
    more_scopes: tuple[str, ...] = ()
    device: bool = False
    client_credentials: bool = False
    no_browser: bool = False
    yes: bool = False


def login_command(view: ViewOptions, name: str, options: LoginOptions) -> int:
    """Sign in to the account of a source; return the exit code."""
    config, slot = source_and_slot(view, name)
    (origin, *_), slot = place_of(view, config, slot, ())
    if options.client_credentials and not options.client_id:
        raise OptionError("--client-credentials needs a client", hint="give --client-id and --client-secret")
    if options.client_secret and options.yes and not options.issuer:
        # A service names its own authorization server: without a person, it would decide who gets the secret (M9).
        raise OptionError("--client-secret with --yes needs --issuer", hint="name the server that may get the secret")
    secret = read_secret(view, "the client's secret") if options.client_secret else ""
    declared = _declared(view, config, slot) if config.kind == "openapi" and not options.issuer else None
    signing_in = _login(view, config, f"{config.name}.{slot}", origin, options=options, secret=secret, declared=declared)
    return run_interruptible(signing_in)


def _declared(view: ViewOptions, config: SourceConfig, slot: str) -> AuthorizationServer | None:
    """Return the authorization server that the definition of a source names for a slot."""
    found: list[AuthorizationServer] = []

    async def look(port: Gloveport) -> int:
        opened = port.opened_source(config.name)
        for one in opened.info.slots if opened is not None else ():
            if one.name == slot and one.token_url:
                found.append(declared_server(one.authorization_url, one.token_url))
        return 0

    with_port(view, look, only=[config.name])
    return found[0] if found else None


async def _login(
    view: ViewOptions,
    config: SourceConfig,
    name: str,
    origin: str,
    *,
    options: LoginOptions,
    secret: str,
    declared: AuthorizationServer | None,
) -> int:
    egress = Egress()
    at = config.base_url or (config.location if config.kind in ("mcp", "graphql") else origin)
    assert isinstance(at, str)
    try:
        try:
            probe = mcp_probe(at) if config.kind == "mcp" else None
            server = await discover(
                egress, at, allow_private=config.allow_private, issuer=options.issuer or "", probe=probe
            )
            _check_pkce(config, server, options)
            _confirm(view, config, server, options)
        except NoServerMetadata:
            if declared is None:
                raise
            server = declared
            _confirm_declared(view, config, server)
        scope = await _scope(name, server, options)
        client = _client(server, options, secret)
        grants = Grants(egress, server, client, allow_private=config.allow_private)
        if options.client_credentials:
            grant, tokens = "client_credentials", await grants.by_client(scope)
        elif options.device:
            grant, tokens = "device_code", await _by_device(view, server, grants, scope)
        else:
            grant, tokens = "authorization_code", await _by_browser(view, server, grants, scope, options)
        about = StoredCredential(name, "oauth", (origin,), time.time(), tokens.expires, issuer=server.issuer)
        value = account_value(server, grants.client, tokens, grant=grant, scope=scope, allow_private=config.allow_private)
        await asyncio.to_thread(Vault().write, about, value)
    finally:
        await egress.close()
    return report(view, about, "signed in")


def _check_pkce(config: SourceConfig, server: AuthorizationServer, options: LoginOptions) -> None:
    """Refuse an MCP server's authorization server that does not state PKCE, as the protocol demands (M9)."""
    needed = config.kind == "mcp" and not (options.issuer or options.client_credentials or options.device)
    if needed and not server.supports_pkce:
        message = f"{visible_line(server.issuer)} does not state that it supports PKCE: a code could be stolen"
        raise OptionError(message, hint="name it with --issuer if you know that it does")


def _confirm(view: ViewOptions, config: SourceConfig, server: AuthorizationServer, options: LoginOptions) -> None:
    """Ask whether the source may reach its authorization server, and show where that is."""
    origins = ", ".join(sorted(server.origins))
    page = urls.parse(server.authorization_endpoint).origin if server.authorization_endpoint else ""
    # A server that shows the page of another one would get the code of an account there (mix-up, M9).
    elsewhere = f"shows the page of {page}; " if page and page != urls.parse(server.issuer).origin else ""
    question = f"{config.name} signs in at {visible_line(server.issuer)} ({elsewhere}tokens come from {origins}). Go on?"
    ask(question, view.err, yes=options.yes, as_json=view.as_json)


def _confirm_declared(view: ViewOptions, config: SourceConfig, server: AuthorizationServer) -> None:
    """Ask whether a person knows the URLs that a definition names. No option agrees in advance."""
    page = f"the page {visible_line(server.authorization_endpoint)}, and " if server.authorization_endpoint else ""
    question = (
        f"the definition of {config.name} alone names {page}tokens from {visible_line(server.token_endpoint)}. Go on?"
    )
    try:
        ask(question, view.err, yes=False, as_json=view.as_json)
    except OptionError as error:
        raise OptionError(error.message, hint="a person confirms it in a terminal, or --issuer names a server") from None


async def _scope(name: str, server: AuthorizationServer, options: LoginOptions) -> str:
    """Return what to ask for: what was named, and with --more-scope also what was asked for before."""
    known = await asyncio.to_thread(Vault().read, name) if options.more_scopes else None
    before = known[1]["scope"].split() if known and known[0].issuer == server.issuer else ()
    scopes = [*(options.scopes or before or server.scopes), *options.more_scopes]
    if server.offline_access and scopes and not options.scopes and not options.client_credentials:
        scopes.append(OFFLINE_ACCESS)  # without it, such a server gives no refresh token
    return " ".join(dict.fromkeys(scopes))


def _client(server: AuthorizationServer, options: LoginOptions, secret: str) -> OAuthClient:
    if not options.client_id:
        return OAuthClient("")
    if options.client_id.startswith("https://") and not server.takes_metadata_documents:
        hint = "register a client there, and give its id"
        raise OptionError(f"{visible_line(server.issuer)} does not take a client's metadata document as its id", hint=hint)
    if not secret:
        return OAuthClient(options.client_id)
    post = "client_secret_post" in server.auth_methods and "client_secret_basic" not in server.auth_methods
    return OAuthClient(options.client_id, secret, "client_secret_post" if post else "client_secret_basic")


async def _registered(server: AuthorizationServer, grants: Grants, redirect_uri: str, scope: str) -> None:
    """Register a client where none was given."""
    if grants.client.id:
        return
    if not server.registration_endpoint:
        hint = "register a client there, and give --client-id"
        raise OptionError(f"{visible_line(server.issuer)} registers no clients by itself", hint=hint)
    await grants.register(redirect_uri, scope)


async def _by_browser(
    view: ViewOptions, server: AuthorizationServer, grants: Grants, scope: str, options: LoginOptions
) -> Tokens:
    if not server.authorization_endpoint:
        raise OptionError(f"{visible_line(server.issuer)} has no page to sign in", hint="try --device")
    async with CallbackServer() as callback:
        await _registered(server, grants, callback.redirect_uri, scope)
        pending = PendingSignIn(server, grants.client, callback.redirect_uri, scope)
        callback.check = pending.code_from
        view.err.line(f"open this link to sign in: {pending.url}")
        if not options.no_browser:
            await asyncio.to_thread(open_in_browser, pending.url)
        try:
            code = await callback.code(SIGN_IN_SECONDS)
        except TimeoutError:
            raise GloveportError("nobody has signed in", code="cancelled", hint="run the command again") from None
        return await grants.by_code(code, pending)


async def _by_device(view: ViewOptions, server: AuthorizationServer, grants: Grants, scope: str) -> Tokens:
    if not server.device_endpoint:
        raise OptionError(f"{visible_line(server.issuer)} gives no device codes", hint="sign in without --device")
    await _registered(server, grants, "", scope)
    device = await grants.device_code(scope)
    view.err.line(f"open {device.url} on any device, and type the code {visible_line(device.user_code)}")
    while time.time() < device.expires:
        await asyncio.sleep(device.interval)
        try:
            return await grants.by_device(device)
        except GrantError as error:
            if error.reason == "slow_down":
                device = replace(device, interval=device.interval + 5)
            elif error.reason != "authorization_pending":
                raise
    raise GloveportError("nobody has typed the code in time", code="cancelled", hint="run the command again")


def open_in_browser(url: str) -> bool:
    """Open a link in the user's browser; return whether that worked. Anything but https (http on loopback) is refused."""
    return webbrowser.open(safe_url(url, "the link"))
