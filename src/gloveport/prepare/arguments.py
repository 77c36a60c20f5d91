"""What can be said for certain about a call's arguments by reading them against a tool's schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from gloveport.types import Tool

if TYPE_CHECKING:
    from tree_sitter import Node

COMBINATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"})
LITERALS = {
    "string": "string",
    "template_string": "string",
    "number": "number",
    "true": "boolean",
    "false": "boolean",
    "null": "null",
    "array": "array",
    "object": "object",
}


class Complaint(NamedTuple):
    """What is wrong with a call; `node` is None when the call as a whole is."""

    message: str
    hint: str
    node: Node | None = None


def complaint(arguments: Node, code: str, tool: Tool) -> Complaint | None:
    """The first thing that is certainly wrong with the arguments of a call; None when nothing is certain."""
    schema = tool.input_schema
    given = [node for node in arguments.named_children if node.type != "comment"]
    if not COMBINATORS.isdisjoint(schema) or any(node.type == "spread_element" for node in given):
        return None
    if not given:
        return _missing(tool, set())
    if len(given) == 1 and given[0].type == "object":
        return _check_object(given[0], code, tool)
    if len(given) == 1 and given[0].type not in LITERALS:
        return None
    return _check_positional(given, code, tool)


def _check_object(node: Node, code: str, tool: Tool) -> Complaint | None:
    keys = _keys(node, code)
    if keys is None:
        return None
    properties = tool.input_schema.get("properties", {})
    unknown = [key for key in keys if key not in properties]
    if unknown and len(unknown) == len(keys) and _first_takes_object(tool):
        return None
    if unknown and tool.input_schema.get("additionalProperties") is False:
        return _unknown(unknown[0], keys[unknown[0]][0], tool)
    missing = _missing(tool, set(keys))
    if missing:
        return missing
    for key, (_, value) in keys.items():
        if value is not None and key in properties:
            wrong = _wrong_type(key, value, code, properties[key])
            if wrong:
                return wrong
    return None


def _keys(node: Node, code: str) -> dict[str, tuple[Node, Node | None]] | None:
    """The keys of an object literal with their nodes and values; None when any of them is not literal."""
    keys: dict[str, tuple[Node, Node | None]] = {}
    for child in node.named_children:
        if child.type == "comment":
            continue
        if child.type == "shorthand_property_identifier":
            keys[code[child.start_byte : child.end_byte]] = (child, None)
            continue
        key = child.child_by_field_name("key") if child.type == "pair" else child.child_by_field_name("name")
        if key is None or child.type not in {"pair", "method_definition"}:
            return None
        name = code[key.start_byte : key.end_byte]
        if key.type == "string":
            name = name[1:-1]
        elif key.type != "property_identifier":
            return None
        if "\\" in name or name == "__proto__":
            return None
        keys[name] = (key, child.child_by_field_name("value"))
    return keys


def _check_positional(given: list[Node], code: str, tool: Tool) -> Complaint | None:
    names = tool.parameters
    if not names and tool.input_schema.get("additionalProperties") is not False:
        return None
    if len(given) > len(names):
        takes = "no arguments" if not names else f"at most {_count(len(names), 'argument')}"
        return Complaint(f"takes {takes}, not {len(given)}", _parameters(tool), given[len(names)])
    missing = _missing(tool, set(names[: len(given)]))
    if missing:
        return missing
    properties = tool.input_schema.get("properties", {})
    for name, node in zip(names, given, strict=False):
        wrong = _wrong_type(name, node, code, properties[name])
        if wrong:
            return wrong
    return None


def _missing(tool: Tool, present: set[str]) -> Complaint | None:
    required = [name for name in tool.input_schema.get("required", ()) if name not in present]
    if not required:
        return None
    names = " and ".join(f"`{name}`" for name in required[:5])
    return Complaint(f"needs {names}, which {'is' if len(required) == 1 else 'are'} missing", _parameters(tool))


def _unknown(name: str, node: Node, tool: Tool) -> Complaint:
    from difflib import get_close_matches  # only for messages, and slow to import

    close = get_close_matches(name, tool.parameters, n=1, cutoff=0.6)
    message = f"has no parameter `{name}`"
    if close:
        message += f"; did you mean `{close[0]}`?"
    return Complaint(message, _parameters(tool), node)


def _wrong_type(name: str, node: Node, code: str, schema: Any) -> Complaint | None:
    kind = LITERALS.get(node.type)
    if kind is None or not isinstance(schema, Mapping) or not COMBINATORS.isdisjoint(schema):
        return None
    allowed = schema.get("type")
    types = {allowed} if isinstance(allowed, str) else set(allowed) if isinstance(allowed, list) else set()
    text = code[node.start_byte : node.end_byte]
    if types and not _fits(kind, text, types):
        wanted = " or ".join(sorted(types))
        return Complaint(
            f"takes {_article(wanted)} {wanted} as `{name}`, not {_spoken(kind, text)}",
            f"`{name}` is of type {wanted}",
            node,
        )
    choices = schema.get("enum")
    if node.type == "string" and isinstance(choices, list) and "\\" not in text and text[1:-1] not in choices:
        listed = ", ".join(f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in choices[:12])
        return Complaint(f"takes no {text} as `{name}`", f"`{name}` is one of {listed}", node)
    return None


def _fits(kind: str, text: str, types: set[str]) -> bool:
    if kind == "number":
        if text.endswith("n") or "number" in types:
            return True
        return "integer" in types and _is_whole(text)
    return kind in types


def _is_whole(text: str) -> bool:
    try:
        return float(text.replace("_", "")).is_integer()
    except (ValueError, OverflowError):
        return True


def _spoken(kind: str, text: str) -> str:
    shown = text if len(text) <= 30 else text[:30] + "…"
    return "null" if kind == "null" else f"the {kind} {shown}"


def _article(word: str) -> str:
    return "an" if word[:1] in "aeio" else "a"


def _first_takes_object(tool: Tool) -> bool:
    properties = tool.input_schema.get("properties", {})
    first = next(iter(properties.values()), None)
    if not isinstance(first, Mapping):
        return first is not None
    kinds = first.get("type")
    return kinds is None or kinds == "object" or (isinstance(kinds, list) and "object" in kinds)


def _parameters(tool: Tool) -> str:
    names = tool.parameters
    if not names:
        return "it takes no parameters"
    required = set(tool.input_schema.get("required", ()))
    listed = ", ".join(name if name in required else f"{name}?" for name in names[:20])
    return f"its parameters are {listed}{', …' if len(names) > 20 else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
