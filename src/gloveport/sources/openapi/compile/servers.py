"""Servers of a document, a path or an operation: absolute URL templates, and the values of their variables."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin, urlsplit

from gloveport.sources.openapi.frames import MAX_SERVERS, MAX_URL_CHARS, SERVER_URL, is_url

Variables = dict[str, dict[str, Any]]
"""The variables of each server URL by name: `{"default": …, "enum": [...]}`."""


def server_urls(nodes: Any, base: str, variables: Variables) -> tuple[tuple[str, ...], bool]:
    """Return the URLs, and True if one was left out because it needs a base_url. Adds their variables to `variables`."""
    found: dict[str, None] = {}
    left_out = False
    for node in nodes[:MAX_SERVERS] if isinstance(nodes, list) else ():
        url = node.get("url") if isinstance(node, dict) else None
        if not isinstance(url, str) or len(url) > MAX_URL_CHARS:
            continue
        whole = _absolute(url.strip(), base)
        if whole is None or not SERVER_URL.fullmatch(whole):
            left_out = True
            continue
        found[whole] = None
        declared = _declared_variables(node.get("variables"))
        if declared:
            variables[whole] = declared
    return tuple(found), left_out


def _declared_variables(node: Any) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for name, value in node.items() if isinstance(node, dict) else ():
        if isinstance(value, dict):
            default, enum = value.get("default"), value.get("enum")
            out[str(name)] = {} if default is None else {"default": str(default)}
            if isinstance(enum, list) and enum:
                out[str(name)]["enum"] = [str(one) for one in enum]
    return out


def _absolute(url: str, base: str) -> str | None:
    """Return a server's URL made absolute with the base of its document; None when that is not possible."""
    if re.match(r"https?://", url, re.IGNORECASE):
        return url
    # A server that begins with a variable (`{scheme}://…`) is absolute once the variable is filled.
    if re.match(r"\{[^{}]+\}(://|$|[./:])", url):
        return url
    if not is_url(base) or "://" in url:
        return None
    try:
        joined = urljoin(base, url)
        return joined if urlsplit(joined).scheme in ("http", "https") else None
    except ValueError:
        return None
