"""What `gloveport auth add`, `list`, `test`, `remove` and `logout` do."""

from __future__ import annotations

import getpass
import re
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import OptionError, ToolError
from gloveport.host.port import Gloveport
from gloveport.policy.credentials.configured import TOKEN_SLOT, ConfiguredCredentials
from gloveport.policy.credentials.providers import MAX_SECRET_BYTES
from gloveport.policy.credentials.vault import StoredCredential, Vault
from gloveport.policy.egress import Egress
from gloveport.sources.trust import needs_trust, untrusted_error
from gloveport.suggestions import did_you_mean
from gloveport.surfaces.cli.tools.command import with_port
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.sources.credential_rows import document
from gloveport.surfaces.terminal import visible_line

SLOT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
_UNSENDABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
DAY_SECONDS = 86_400.0


def add_command(view: ViewOptions, name: str, origins: Sequence[str], expires: str | None) -> int:
    """Store the credential of a source; return the exit code."""
    config, slot = source_and_slot(view, name)
    at = _time_of(expires)
    chosen, slot = place_of(view, config, slot, origins)
    secret = read_secret(view, f"{config.name}.{slot}")
    about = StoredCredential(f"{config.name}.{slot}", "secret", chosen, time.time(), at)
    Vault().write(about, {"secret": secret})
    return report(view, about, "stored")


def list_command(view: ViewOptions) -> int:
    """List what is stored; return the exit code."""
    rows = Vault().stored()
    if view.as_json:
        write_document(view.out, {"ok": True, "credentials": [document(about) for about in rows]})
        return 0
    width = max((len(about.name) for about in rows), default=0)
    for about in rows:
        name = view.out.paint(f"{visible_line(about.name):<{width}}", "bold")
        view.out.line(f"{name}  {about.kind:<6}  {expiry(about):<22}  {visible_line(', '.join(about.origins))}")
    if not rows:
        text = "nothing is stored: `gloveport auth add SOURCE` stores a credential, `auth login SOURCE` signs in"
        view.err.line(view.err.fold(as_typed(text)))
    return 0


def check_command(view: ViewOptions, name: str) -> int:
    """Find a credential as a call would, and use it where that changes nothing; return the exit code."""
    config, slot = source_and_slot(view, name)
    (origin, *_), slot = place_of(view, config, slot, ())
    run_interruptible(_find(view, config, slot, origin))
    # An MCP server is asked for its tools. Of another service it is not known which request is harmless.
    used = config.kind == "mcp" and with_port(view, lambda port: _opened(port, config), only=[config.name]) == 0
    if view.as_json:
        write_document(view.out, {"ok": True, "credential": f"{config.name}.{slot}", "origin": origin, "used": used})
    else:
        works = (
            f"works: {origin} takes it" if used else f"is there, for {origin}; a call shows whether the service takes it"
        )
        view.err.line(f"{view.err.paint('✓', 'green')} {config.name}.{slot} {works}")
    return 0


async def _opened(port: Gloveport, config: SourceConfig) -> int:
    for problem in port.problems:
        if problem.source == config.name and problem.broken:
            code = "auth-required" if problem.code == "auth-required" else "source-unreachable"
            raise ToolError(problem.message, code=code, setting=problem.hint)
    return 0


async def _find(view: ViewOptions, config: SourceConfig, slot: str, origin: str) -> int:
    egress = Egress()
    configured = {(config.name, each): reference for each, reference in config.credentials.items()}
    names = [each.name for each in view.settings(quiet=True).sources]
    credentials = ConfiguredCredentials(configured, egress=egress, sources=names)
    try:
        found = await credentials.find(config.name, slot, origin)
    finally:
        await egress.close()
    if found is None:
        message = f"the source {config.name} has no credential {slot}"
        raise ToolError(message, code="auth-required", setting=credentials.wanted(config.name, slot))
    return 0


def remove_command(view: ViewOptions, name: str, *, revoke: bool) -> int:
    """Delete a credential, and revoke its tokens if asked to; return the exit code."""
    vault = Vault()
    names = {about.name: about for about in vault.stored()}
    known = name if name in names else f"{name}.{TOKEN_SLOT}" if f"{name}.{TOKEN_SLOT}" in names else None
    if known is None:
        mine = [each for each in names if each.startswith(f"{name}.")]
        known = mine[0] if len(mine) == 1 else None
    if known is None:
        hint = did_you_mean(name, names) or "`gloveport auth list` shows what is stored"
        raise OptionError(f"no credential `{visible_line(name)}` is stored", hint=hint)
    revoked = run_interruptible(_revoke(vault, known)) if revoke and names[known].kind == "oauth" else 0
    vault.remove(known)
    if view.as_json:
        write_document(view.out, {"ok": True, "removed": known, "revoked": bool(revoked)})
    else:
        view.err.line(f"{known} is deleted{', and its tokens are revoked' if revoked else ''}")
    return 0


async def _revoke(vault: Vault, name: str) -> int:
    """Revoke the tokens of an account; return how many the server was told of."""
    from gloveport.policy.oauth.accounts import grants_of

    found = vault.read(name)
    if found is None or not found[1]["server"]["revocation_endpoint"]:
        return 0
    egress = Egress()
    done = 0
    try:
        for token in filter(None, (found[1]["tokens"]["refresh"], found[1]["tokens"]["access"])):
            with suppress(ToolError):  # signing out here must work without the server, too
                await grants_of(egress, found[1]).revoke(token)
                done += 1
    finally:
        await egress.close()
    return done


def source_and_slot(view: ViewOptions, name: str) -> tuple[SourceConfig, str]:
    """Return the configured source that a name means, and its slot (empty: its only one); raise OptionError."""
    source, _, slot = name.partition(".")
    if slot and not SLOT_NAME.fullmatch(slot):
        raise OptionError(f"{visible_line(slot)!r:.80} can't be the name of a credential slot")
    config = view.source(source)
    if needs_trust(config):
        raise untrusted_error(config)
    return config, slot


def place_of(view: ViewOptions, config: SourceConfig, slot: str, origins: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the origins that a source's credential goes to, and its slot; the source is opened where that must be."""
    if origins:
        return tuple(_origin(text) for text in origins), slot or TOKEN_SLOT
    if not isinstance(config.location, str):
        raise OptionError(
            f"the source {config.name} is a command", hint='give it secrets with env = { NAME = "env:OTHER" }'
        )
    url = config.base_url or (config.location if config.kind in ("mcp", "graphql") else "")
    if url and config.kind in ("mcp", "graphql"):
        _check_slot(config, slot or TOKEN_SLOT, [TOKEN_SLOT, *config.credentials])
        return (_origin(url),), slot or TOKEN_SLOT
    found: dict[str, Any] = {}

    async def look(port: Gloveport) -> int:
        opened = port.opened_source(config.name)
        if opened is not None:
            found.update(server=opened.info.server, slots=[each.name for each in opened.info.slots])
        return 0

    with_port(view, look, only=[config.name])
    slots: list[str] = found.get("slots") or [TOKEN_SLOT]
    if not slot and len(slots) > 1 and TOKEN_SLOT not in slots:
        names = ", ".join(f"{config.name}.{each}" for each in slots)
        raise OptionError(f"the source {config.name} has several credentials", hint=f"name one: {visible_line(names)}")
    if slot and found.get("slots"):
        _check_slot(config, slot, slots)
    server = url or found.get("server") or ""
    if not server:
        raise OptionError(f"it is not known where the source {config.name} sends requests", hint="give --origin https://…")
    return (_origin(server),), slot or (TOKEN_SLOT if TOKEN_SLOT in slots else slots[0])


def _check_slot(config: SourceConfig, slot: str, known: Sequence[str]) -> None:
    """Raise OptionError for a slot that the source does not have: its credential would never be sent."""
    if slot not in known:
        names = ", ".join(f"`{config.name}.{each}`" for each in dict.fromkeys(known))
        hint = did_you_mean(slot, known) or f"it has {visible_line(names)}"
        raise OptionError(f"the source {config.name} has no credential slot `{slot}`", hint=hint)


def read_secret(view: ViewOptions, what: str) -> str:
    """Return a secret that a person types without echo, or that stdin contains; raise OptionError for an unusable one."""
    if sys.stdin.isatty():
        text = getpass.getpass(f"{what} (not shown): ", stream=sys.stderr)
    else:
        raw = sys.stdin.buffer.read(MAX_SECRET_BYTES + 1)
        if len(raw) > MAX_SECRET_BYTES:
            raise OptionError(f"a credential has at most {MAX_SECRET_BYTES:,} bytes")
        text = raw.decode("utf-8", "surrogateescape")
        text = text.removesuffix("\n").removesuffix("\r")
    if not text.strip():
        raise OptionError("no credential was given", hint="type it, or pipe it into the command")
    if _UNSENDABLE.search(text):
        raise OptionError("the credential has a line break or a control character inside", hint="give it on one line")
    return text


def report(view: ViewOptions, about: StoredCredential, done: str) -> int:
    """Show what was stored, without its value; return the exit code."""
    if view.as_json:
        write_document(view.out, {"ok": True, "credential": document(about)})
    else:
        origins = ", ".join(about.origins)
        view.err.line(f"{view.err.paint('✓', 'green')} {about.name} is {done}; it is sent to {origins} and nowhere else")
    return 0


def expiry(about: StoredCredential) -> str:
    """Return when a credential expires, for people."""
    if about.sign_in:
        return "sign in again"
    if about.expires is None:
        return "no expiry"
    if about.kind == "oauth":
        return "renewed when needed"
    if about.is_expired:
        return "expired"
    days = int((about.expires - time.time()) / DAY_SECONDS)
    return f"expires in {days} day{'s' * (days != 1)}" if days else "expires today"


def _time_of(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise OptionError(f"--expires takes a date, not {text!r:.40}", hint="for example 2027-01-31") from None
    found = at.replace(tzinfo=at.tzinfo or UTC).timestamp()
    if found < time.time():
        raise OptionError(f"--expires {text} is in the past", hint="give the date from which it is not valid any more")
    return found


def _origin(text: str) -> str:
    try:
        return urls.parse(text).origin
    except ToolError as error:
        raise OptionError(error.message, hint="an origin is https://host or https://host:port") from None
