"""`gloveport auth login`: finds the authorization server of a source, asks whether to use it, and signs in."""

from __future__ import annotations

import asyncio
import webbrowser
from dataclasses import dataclass

from gloveport.config import SourceConfig
from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.policy.oauth.discovery import AuthorizationServer, safe_url
from gloveport.policy.oauth.grants import DeviceCode
from gloveport.surfaces.cli.auth.command import place_of, read_secret, report, source_and_slot
from gloveport.surfaces.cli.tools.command import with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.sources.sign_in import SignIn, SignInOptions, declared_by
from gloveport.surfaces.terminal import visible_line


@dataclass(frozen=True, slots=True)
class LoginOptions(SignInOptions):
    """The options of `gloveport auth login`."""

    client_secret: bool = False
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

    async def sign_in() -> int:
        return await _login(view, SignIn(config, slot, origin, options, secret=secret, declared=declared), options)

    return run_interruptible(sign_in())


def _declared(view: ViewOptions, config: SourceConfig, slot: str) -> AuthorizationServer | str | None:
    """Return the authorization server that the definition of a source names for a slot, or its issuer."""
    found: list[AuthorizationServer | str | None] = [None]

    async def look(port: Gloveport) -> int:
        opened = port.opened_source(config.name)
        found.append(declared_by(config, opened.info if opened else None, slot))
        return 0

    with_port(view, look, only=[config.name])
    return found[-1]


async def _login(view: ViewOptions, sign_in: SignIn, options: LoginOptions) -> int:
    try:
        question = await sign_in.find()
        _confirm(view, question, options, is_declared=sign_in.is_declared)
        if options.client_credentials:
            about = await sign_in.by_client()
        elif options.device:
            about = await sign_in.by_device(lambda device: _show_code(view, device))
        else:
            about = await sign_in.by_browser(lambda url: _show_link(view, url, options))
    finally:
        await sign_in.close()
    return report(view, about, "signed in")


def _confirm(view: ViewOptions, question: str, options: LoginOptions, *, is_declared: bool) -> None:
    """Ask whether the source may reach its authorization server. No option agrees to one that a definition alone names."""
    try:
        ask(question, view.err, yes=options.yes and not is_declared, as_json=view.as_json)
    except OptionError as error:
        if not is_declared:
            raise
        raise OptionError(error.message, hint="a person confirms it in a terminal, or --issuer names a server") from None


async def _show_link(view: ViewOptions, url: str, options: LoginOptions) -> None:
    view.err.line(f"open this link to sign in: {url}")
    if not options.no_browser:
        await asyncio.to_thread(open_in_browser, url)


def _show_code(view: ViewOptions, device: DeviceCode) -> None:
    view.err.line(f"open {device.url} on any device, and type the code {visible_line(device.user_code)}")


def open_in_browser(url: str) -> bool:
    """Open a link in the user's browser; return whether that worked. Anything but https (http on loopback) is refused."""
    return webbrowser.open(safe_url(url, "the link"))
