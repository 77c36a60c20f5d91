"""Puts a server's entry into the text of a client's file with the smallest change, or refuses.

Every change is checked by parsing the new text: it must have all old values and comments, and the new entry.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Mapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from gloveport.errors import OptionError
from gloveport.surfaces.cli.connect import jsonc
from gloveport.surfaces.mcp_clients import Format

# The keys of an entry that define the server. Other keys, which a person added, are kept.
SERVER_KEYS = frozenset(
    {"type", "command", "args", "env", "env_vars", "cwd", "url", "httpUrl", "headers", "http_headers", "env_http_headers"}
    | {"bearer_token_env_var", "envFile"}
)


def with_entry(text: str, format: Format, path: tuple[str, str], entry: Mapping[str, Any]) -> tuple[str, bool]:
    """Return the text with the entry at `servers.name`, and whether it replaces another; raise if that is not safe."""
    return _edit_toml(text, *path, entry) if format == "toml" else _edit_json(text, *path, entry)


def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return the new entry with what a person added to the old one."""
    other = ("url", "httpUrl") if "command" in new else ("command",)
    if any(key in old for key in other):  # the other kind of server: some clients refuse an entry with the keys of both
        return {**{key: value for key, value in old.items() if key not in SERVER_KEYS}, **new}
    joined = dict(old)
    for key, value in new.items():
        had = old.get(key)
        joined[key] = {**had, **value} if isinstance(had, Mapping) and isinstance(value, Mapping) else value
    return joined


def _edit_json(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> tuple[str, bool]:
    before = jsonc.parse(text)
    root = before.root.data
    if not isinstance(root, dict):
        raise OptionError("it is not a JSON object")
    listed = root.get(servers, {})
    if not isinstance(listed, dict):
        raise OptionError(f"`{servers}` is not an object")
    old = listed.get(name)
    wanted = merged(old, entry) if isinstance(old, dict) else dict(entry)
    changed = _rewritten(text, (servers, name), old, wanted)
    after = jsonc.parse(changed)
    if after.root.data != {**root, servers: {**listed, name: wanted}} or Counter(after.comments) != Counter(
        before.comments
    ):
        raise OptionError("a comment is in the way of the change")
    return changed, name in listed and old != wanted


def _rewritten(text: str, path: tuple[str, ...], old: Any, new: Any) -> str:
    """Return the text with the smallest change that gives the path its new value."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return text if old == new else jsonc.put(text, path, new)
    for key in old:
        if key not in new:
            text = jsonc.remove(text, (*path, key))
    for key, value in new.items():
        text = _rewritten(text, (*path, key), old.get(key), value)
    return text


def _edit_toml(text: str, servers: str, name: str, entry: Mapping[str, Any]) -> tuple[str, bool]:
    try:
        before = tomllib.loads(text)
        document = tomlkit.parse(text)
    except (ValueError, TOMLKitError) as error:
        raise OptionError(f"it is not valid TOML: {error}") from None
    table = before.get(servers, {})
    if not isinstance(table, dict):
        raise OptionError(f"`{servers}` is not a table")
    old = table.get(name)
    wanted = merged(old, entry) if isinstance(old, dict) else dict(entry)
    if old == wanted:
        return text, False
    try:
        _put_table(document, servers, name, old, wanted)
        changed = tomlkit.dumps(document)
    except (TOMLKitError, ValueError) as error:
        raise OptionError(f"the entry can't be added: {error}") from None
    if tomllib.loads(changed) != {**before, servers: {**table, name: wanted}}:
        raise OptionError("the entry can't be added")
    return changed, old is not None


def _put_table(document: tomlkit.TOMLDocument, servers: str, name: str, old: Any, wanted: dict[str, Any]) -> None:
    home: Any = document.setdefault(servers, tomlkit.table(is_super_table=True))
    if not isinstance(old, dict):
        home[name] = wanted
        return
    for key in old.keys() - wanted.keys():
        del home[name][key]
    for key, value in wanted.items():
        if old.get(key) != value:
            home[name][key] = value
