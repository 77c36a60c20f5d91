"""The base URL of an operation's requests: a server's template with its variables filled.

Variables come from the configuration or from the definition. They never come from the arguments of a call, so that no
program can choose the host that receives the credentials.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import unquote

from gloveport import urls
from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError

TEMPLATE_VARIABLE = re.compile(r"\{([^{}]*)\}")
NESTED_ENCODING = re.compile(r"%(?:25)+")

Variables = Mapping[str, Mapping[str, Any]]


class BaseUrl(NamedTuple):
    """The URL, without a trailing slash, that an operation's path is appended to, and its origin."""

    url: str
    origin: str


def choose_base_url(config: SourceConfig, templates: Sequence[str], declared: Mapping[str, Variables]) -> BaseUrl:
    """Return the base of an operation's requests: `base_url` of the configuration, or else its first server."""
    template = templates[0] if templates else "/"
    filled = fill_variables(config, template, declared.get(template, {})) if config.base_url is None else config.base_url
    return _validated(config, filled)


def fill_variables(config: SourceConfig, template: str, variables: Variables) -> str:
    """Return the template with its variables filled: from the configuration, the default, or the first allowed value."""

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

    return TEMPLATE_VARIABLE.sub(value, template)


def is_below(url: str, base: str) -> bool:
    """Return True for a URL that every server reads as below the base, however often it decodes the path (N6)."""
    rest = url.removeprefix(base)
    if len(rest) == len(url) or rest[:1] not in {"/", "?", ""}:
        return False
    path = rest.partition("?")[0]
    if "." not in path and "%" not in path:
        return True
    steps = re.split(r"[/\\]", unquote(NESTED_ENCODING.sub("%", path)))
    return not any(step.partition(";")[0] in {".", ".."} for step in steps)


def _absolute(config: SourceConfig, server: str) -> str:
    """Resolve a relative server against the URL of the document."""
    if "://" in server:
        return server
    location = config.location if isinstance(config.location, str) else ""
    if server.startswith("//") or not location.lower().startswith(("http://", "https://")):
        hint = f'set base_url = "https://…" under [sources.{config.name}]'
        raise SourceError(f"the source {config.name} names no server: its definition has only {server!r}", hint=hint)
    return str(urls.join(urls.parse(location.partition("?")[0]), server))


def _validated(config: SourceConfig, server: str) -> BaseUrl:
    try:
        url = urls.parse(_absolute(config, server).rstrip("/"))
        base = BaseUrl(url.origin + url.path.rstrip("/"), url.origin)
        if not url.query and "#" not in server and is_below(f"{base.url}/", base.origin):
            return base
        problem = "a server's URL has no query, no fragment and no segment such as `..`"
    except ToolError as error:
        problem = str(error)
    hint = f"set base_url under [sources.{config.name}] to replace it"
    raise SourceError(f"{server[:200]!r} can't be a server of the source {config.name}: {problem}", hint=hint)
