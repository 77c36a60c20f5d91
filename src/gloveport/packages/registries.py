"""The registries that a user's own pip and npm use, and how files are fetched from them.

What a project's folder says (an `.npmrc`, a `pip.conf`) is ignored: it may be somebody else's. A registry may be private
and may want a password or token. Nothing else that a registry names may be private or gets a credential.
"""

from __future__ import annotations

import base64
import configparser
import hashlib
import hmac
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from gloveport import bounded_json, urls
from gloveport.errors import OptionError, PackageError, ToolError
from gloveport.large_values import off_loop_if
from gloveport.packages.package import Ecosystem
from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Reach, Reply, Request
from gloveport.types import MIB

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

PUBLIC: Mapping[Ecosystem, str] = {"npm": "https://registry.npmjs.org/", "pypi": "https://pypi.org/simple/"}
PUBLIC_FILES = "https://files.pythonhosted.org"
MAX_ARCHIVE_BYTES = 256 * MIB
MAX_INDEX_BYTES = 64 * MIB
INDEX_LIMITS = bounded_json.JsonLimits(containers=1_000_000, items=5_000_000, keys=500_000, depth=30)
MAX_INDEXES = 8
SLOW_BYTES = 256 * 1024
_HASHES = ("sha512", "sha384", "sha256")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
_NPM_PLACES = ("/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc")


@dataclass(frozen=True, slots=True)
class Registry:
    """A registry: its URL, which ends with `/`, and the credential that it wants, if any."""

    url: str
    credential: Attachment | None = None

    @property
    def origin(self) -> str:
        """The origin of its own files."""
        return urls.parse(self.url).origin

    @staticmethod
    def at(text: str, of: str) -> Registry:
        """Return the registry at a URL, which may have a user and a password."""
        scheme, _, rest = text.strip().partition("://")
        authority, slash, path = rest.partition("/")
        user, at, host = authority.rpartition("@")
        url = f"{scheme}://{host}{slash}{path}"
        try:
            url = str(urls.parse(url if url.endswith("/") else f"{url}/"))
            origin = urls.parse(url).origin
        except ToolError:
            raise OptionError(f"the registry that {of} names can't be used: it is no plain http or https URL") from None
        if not at:
            return Registry(url)
        secret = Secret(":".join(unquote(part) for part in f"{user}:".split(":")[:2]), f"registry.{host}")
        return Registry(url, Attachment("basic", "Authorization", secret, frozenset({origin})))


def pypi_indexes() -> tuple[Registry, ...]:
    """Return the indexes that this user's pip uses. Extra ones come first: the first that has a package is asked alone."""
    main, extra = os.environ.get("PIP_INDEX_URL"), os.environ.get("PIP_EXTRA_INDEX_URL")
    for options in _pip_options():
        main = options.get("index-url") if main is None else main
        extra = options.get("extra-index-url") if extra is None else extra
    stated = [*(extra or "").split(), main or PUBLIC["pypi"]]
    return tuple(Registry.at(url, "pip's configuration") for url in stated if not url.startswith("file:"))[-MAX_INDEXES:]


def _pip_options() -> Iterator[Mapping[str, str]]:
    """Yield the options of pip's files; those that win come first."""
    home, named = Path.home(), os.environ.get("PIP_CONFIG_FILE")
    settings = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    places = [Path(sys.prefix, "pip.conf"), settings / "pip/pip.conf", home / ".pip/pip.conf", Path("/etc/pip.conf")]
    for place in ([Path(named)] if named else []) + ([] if named == os.devnull else places):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(place, encoding="utf-8")
        except (configparser.Error, OSError, UnicodeDecodeError):
            continue
        for section in ("install", "global"):
            if parser.has_section(section):
                yield dict(parser.items(section))


def npm_registry(name: str) -> Registry:
    """Return the registry that this user's npm uses for a package."""
    options = _npm_options()
    scope = name.partition("/")[0] if name.startswith("@") else ""
    stated = options.get(f"{scope}:registry") if scope else None
    chosen = stated or _npm_variable("registry") or options.get("registry") or PUBLIC["npm"]
    registry = Registry.at(chosen, "npm's configuration")
    place = registry.url.partition("://")[2]
    while place:
        for key, template in (("_authToken", "Bearer {}"), ("_auth", "Basic {}")):
            if token := options.get(f"//{place}:{key}") or options.get(f"//{place.rstrip('/')}:{key}"):
                secret = Secret(token, f"registry.{place.partition('/')[0]}")
                origins = frozenset({registry.origin})
                return Registry(registry.url, Attachment("header", "Authorization", secret, origins, template))
        place = place.rstrip("/").rpartition("/")[0]
    return registry


def _npm_options() -> Mapping[str, str]:
    named = _npm_variable("userconfig")
    options: dict[str, str] = {}
    for place in (*_NPM_PLACES, named or Path.home() / ".npmrc"):
        try:
            lines = Path(place).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError):
            continue
        for line in lines:
            key, equals, value = line.partition("=")
            if equals and not key.lstrip().startswith((";", "#")):
                text = _VARIABLE.sub(lambda found: os.environ.get(found[1], ""), value.strip().strip("\"'"))
                options[key.strip()] = text
    return options


def _npm_variable(name: str) -> str | None:
    """Return an option of npm in the environment, in capitals or not."""
    return next((text for key, text in os.environ.items() if key.lower() == f"npm_config_{name}" and text), None)


class RegistryClient:
    """Fetches from registries through egress."""

    def __init__(self, egress: Egress) -> None:
        self._egress = egress

    async def get(self, url: str, registry: Registry, *, accept: str = "*/*", max_bytes: int = MAX_INDEX_BYTES) -> Reply:
        """Return the reply to a GET; raise PackageError if there is none, or a status that is neither 200 nor 404."""
        parsed, own = urls.parse(url), registry.origin
        if parsed.scheme == "http" and parsed.origin != own:
            raise PackageError(f"{own} names a file at {parsed.origin}, which is not https")
        known = frozenset({own, PUBLIC_FILES}) if registry.url == PUBLIC["pypi"] else frozenset({own})
        near = parsed.origin in known
        reach = Reach(known if near else frozenset(), allow_private=near, total_seconds=300, max_bytes=max_bytes)
        credentials = [registry.credential] if registry.credential is not None and parsed.origin == own else []
        try:
            reply = await self._egress.send(Request("GET", url, (("Accept", accept),)), reach, credentials)
        except ToolError as error:
            raise PackageError(f"{urls.shown(url)} can't be fetched: {error.message}", hint=error.hint) from None
        if reply.status not in (200, 404):
            hint = "check the user or token of the registry" if reply.status in (401, 403) else "try again later"
            raise PackageError(f"{urls.shown(url)} answers {reply.status}", hint=hint)
        return reply

    async def archive(self, url: str, registry: Registry, integrity: str) -> bytes:
        """Return an archive; raise PackageError `package-changed` unless it has the hash that the registry states."""
        reply = await self.get(url, registry, max_bytes=MAX_ARCHIVE_BYTES)
        if reply.status != 200:
            raise PackageError(f"{urls.shown(url)} does not exist")
        algorithm, _, stated = integrity.partition("-")
        found = await off_loop_if(len(reply.body) > SLOW_BYTES, _hash, algorithm, reply.body)
        if not hmac.compare_digest(found, stated):
            message = f"{urls.shown(url)} does not have the hash that its registry states"
            raise PackageError(
                message, code="package-changed", hint="try again; if it happens again, don't use the package"
            )
        return reply.body


def _hash(algorithm: str, data: bytes) -> str:
    return base64.b64encode(hashlib.new(algorithm, data).digest()).decode()


def integrity_of(algorithm: str, hexadecimal: str) -> str:
    """Return a hash in the form of the lock: `sha256-…` in base64."""
    return f"{algorithm}-{base64.b64encode(bytes.fromhex(hexadecimal)).decode()}"


def strongest(integrity: str) -> str | None:
    """Return the strongest hash of an `integrity` of npm; None if it has none that is strong enough."""
    stated = {part.partition("-")[0]: part.partition("?")[0] for part in integrity.split()}
    return next((stated[name] for name in _HASHES if name in stated), None)


def read_json(data: bytes) -> Any:
    """Return the value of a registry's JSON; raise ValueError for other text, or for too much of it."""
    try:
        return bounded_json.read(data, INDEX_LIMITS)
    except (bounded_json.JsonLimitError, RecursionError) as problem:
        raise ValueError(str(problem)) from None


def texts(value: Any, limit: int = 1000) -> Mapping[str, str]:
    """Return the texts of an object from a registry by their keys; nothing of other values."""
    items = list(value.items())[:limit] if isinstance(value, dict) else []
    return {key: text for key, text in items if isinstance(text, str)}


def one_of(value: Any, kinds: Sequence[type], default: Any) -> Any:
    """Return a value from a registry if it is of one of these types; otherwise the default."""
    return value if isinstance(value, tuple(kinds)) else default
