"""The inverses that tools declare: `"orders.create" = "orders.delete(id = result.id)"`, read and checked.

An argument of the inverse is a constant in JSON, or a place in the call: `result` or `args`, then `.name` and `[0]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from gloveport.errors import OptionError
from gloveport.suggestions import did_you_mean
from gloveport.types import Tool
from gloveport.undo import Place, Undo

EXAMPLE = 'for example "orders.delete(id = result.id)"'
MAX_TEXT_CHARS = 2000
_CALL = re.compile(r"\s*([\w.]{1,500})\s*\((.*)\)\s*", re.DOTALL)
_PLACE = re.compile(r"(result|args)((?:\.[A-Za-z_$][\w$-]*|\[\d{1,6}\])*)")
_PART = re.compile(r"\.([^.\[]+)|\[(\d+)\]")
_ARGUMENT = re.compile(r"\s*([\w$-]{1,200})\s*=\s*(\"(?:[^\"\\]|\\.)*\"|[^,\"]+?)\s*(?:,|$)")


def inverses(source: str, tools: Sequence[Tool], declared: Mapping[str, str]) -> dict[str, Undo]:
    """Return the inverse of each tool by address; raise OptionError for a declaration that can't be followed."""
    if not declared:
        return {}
    by_path = {tool.address.partition(".")[2]: tool for tool in tools}
    return {
        f"{source}.{path}": _inverse(source, path, text, by_path)
        for path, text in declared.items()
        if _known(source, path, by_path)
    }


def _inverse(source: str, path: str, text: str, tools: Mapping[str, Tool]) -> Undo:
    found = _CALL.fullmatch(text) if len(text) <= MAX_TEXT_CHARS else None
    if found is None:
        raise OptionError(f"undo of {source}.{path} must be a call, not {text!r:.80}", hint=EXAMPLE)
    name = found[1].removeprefix(f"{source}.")
    _known(source, name, tools)
    tool = tools[name]
    if not tools[path].writes or not tool.writes:
        read = path if not tools[path].writes else name
        hint = "only writes are undone, by writes"
        raise OptionError(f"undo of {source}.{path}: {source}.{read} does not write", hint=hint)
    places: dict[str, Place] = {}
    constants: dict[str, Any] = {}
    for argument, value in _arguments(f"{source}.{path}", found[2]):
        if argument not in tool.parameters:
            hint = did_you_mean(argument, tool.parameters) or f"it takes {', '.join(tool.parameters) or 'no arguments'}"
            raise OptionError(f"undo of {source}.{path}: {source}.{name} has no argument `{argument}`", hint=hint)
        if place := _PLACE.fullmatch(value):
            parts = _PART.findall(place[2])
            places[argument] = (place[1], *(int(index) if index else key for key, index in parts))
        else:
            constants[argument] = _constant(f"{source}.{path}", value)
    return Undo(tool.address, places, constants)


def _arguments(where: str, text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while text[at:].strip():
        match = _ARGUMENT.match(text, at)
        if match is None:
            raise OptionError(f"undo of {where}: {text[at:].strip()!r:.60} is no argument", hint=EXAMPLE)
        found.append((match[1], match[2]))
        at = match.end()
    return found


def _constant(where: str, text: str) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        hint = f"begin with `result` or `args`, or write a constant as JSON; {EXAMPLE}"
        raise OptionError(f"undo of {where}: {text!r:.60} is no place and no constant", hint=hint) from None


def _known(source: str, path: str, tools: Mapping[str, Tool]) -> bool:
    if path not in tools:
        hint = did_you_mean(path, tools) or f"`gloveport tools list {source}` lists its tools"
        raise OptionError(f"undo of the source {source}: it has no tool `{path[:200]}`", hint=hint)
    return True


def inverse_arguments(undo: Undo, args: Any, result: Any) -> dict[str, Any]:
    """Return the arguments of the inverse of a call; raise LookupError for a place that the call does not have."""
    found = dict(undo.constants)
    for name, (root, *parts) in undo.places.items():
        value = result if root == "result" else args
        for part in parts:
            if isinstance(part, str):
                value = value.get(part) if isinstance(value, Mapping) else None
            else:
                value = value[part] if isinstance(value, list) and part < len(value) else None
        if value is None:
            raise LookupError(_shown(root, parts))
        found[name] = value
    return found


def _shown(root: str | int, parts: Sequence[str | int]) -> str:
    return str(root) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
