"""Where an operation's requests go: a server's template with its variables filled, once, when the source is opened.

Variables come from the configuration, or from what the definition declares; never from a call's arguments, so that no
program can choose the host that credentials are sent to.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

from gloveport.config import SourceConfig
from gloveport.errors import SourceError

VARIABLE = re.compile(r"\{([^{}]*)\}")
# One reading only: no userinfo, backslash, space, query or fragment, over which two parsers could differ (N8).
BASE = re.compile(r"https?://[^\s/?#@\\\x00-\x20\x7f]+(/[^\s?#@\\\x00-\x20\x7f]*)?", re.IGNORECASE)
NESTED = re.compile(r"%(?:25)+")
PORTS = {"http": 80, "https": 443}

Variables = Mapping[str, Mapping[str, Any]]


def choose_base(config: SourceConfig, templates: Sequence[str], declared: Mapping[str, Variables]) -> str:
    """The URL that an operation's path is added to, without a slash at its end: `base_url`, or the first server."""
    if config.base_url is not None:
        return _checked(config, config.base_url)
    template = templates[0] if templates else "/"
    return _checked(config, _placed(config, fill(config, template, declared.get(template, {}))))


def fill(config: SourceConfig, template: str, variables: Variables) -> str:
    """The template with its variables: from the configuration, else their default, else the first that is allowed."""

    def value(found: re.Match[str]) -> str:
        name = found[1]
        declared = variables.get(name, {})
        choices = [str(choice) for choice in declared.get("enum") or ()]
        default = declared.get("default")
        if name in config.variables:
            return config.variables[name]
        if default is not None and (not choices or str(default) in choices):
            return str(default)
        if choices:
            return choices[0]
        hint = f'set {name} = "…" under [sources.{config.name}.variables], or base_url'
        raise SourceError(f"the server {template} of the source {config.name} needs a value for {{{name}}}", hint=hint)

    return VARIABLE.sub(value, template)


def origin_of(url: str) -> str:
    """`scheme://host[:port]` in lower case, without a default port."""
    parts = urlsplit(url)
    host = parts.hostname or ""
    host = f"[{host}]" if ":" in host else host
    port = parts.port
    return f"{parts.scheme.lower()}://{host}" + (f":{port}" if port and port != PORTS.get(parts.scheme.lower()) else "")


def lies_below(url: str, base: str) -> bool:
    """True for a URL that a server can only read as one below the base, however often it decodes the path (N6)."""
    rest = url.removeprefix(base)
    if len(rest) == len(url) or rest[:1] not in {"/", "?", ""}:
        return False
    path = rest.partition("?")[0]
    if "." not in path and "%" not in path:
        return True
    steps = re.split(r"[/\\]", unquote(NESTED.sub("%", path)))
    return not any(step.partition(";")[0] in {".", ".."} for step in steps)


def _placed(config: SourceConfig, url: str) -> str:
    """A relative server is one beside the document."""
    if "://" in url:
        return url
    location = config.location if isinstance(config.location, str) else ""
    if url.startswith("//") or not location.lower().startswith(("http://", "https://")):
        hint = f'set base_url = "https://…" under [sources.{config.name}]'
        raise SourceError(f"the source {config.name} names no server: its definition says only {url!r}", hint=hint)
    return urljoin(location.partition("?")[0], url)


def _checked(config: SourceConfig, url: str) -> str:
    url = url.rstrip("/")
    try:
        valid = bool(BASE.fullmatch(url)) and bool(urlsplit(url).hostname) and urlsplit(url).port != 0
    except ValueError:
        valid = False
    if not valid or not lies_below(f"{url}/", origin_of(url) if url.count("/") == 2 else url[: url.index("/", 8)]):
        hint = "a server is http:// or https://, a host, and a path without dots, query or fragment; base_url replaces it"
        raise SourceError(f"{url[:200]!r} can't be a server of the source {config.name}", hint=hint)
    return url
