"""The arguments of a TypeScript call, as far as they are literal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gloveport.prepare.argument_check import Given, Named

if TYPE_CHECKING:
    from tree_sitter import Node

KINDS = {
    "string": "string",
    "template_string": "string",
    "number": "number",
    "true": "boolean",
    "false": "boolean",
    "null": "null",
    "array": "array",
    "object": "object",
}


class NodeValue:
    """A value that a node of the syntax tree spells out."""

    __slots__ = ("_code", "_node", "kind")

    def __init__(self, node: Node, code: str) -> None:
        self._node, self._code = node, code
        self.kind = KINDS.get(node.type)

    @property
    def text(self) -> str:
        """What is written."""
        return self._code[self._node.start_byte : self._node.end_byte]

    @property
    def string(self) -> str | None:
        """What a plain string literal says; None where escapes would have to be read."""
        return self.text[1:-1] if self._node.type == "string" and "\\" not in self.text else None

    @property
    def place(self) -> tuple[int, int]:
        """Where it starts and ends in the code."""
        return self._node.start_byte, self._node.end_byte


def given(arguments: Node, code: str) -> Given | None:
    """What a call is given; None when a spread hides it."""
    nodes = [node for node in arguments.named_children if node.type != "comment"]
    if any(node.type == "spread_element" for node in nodes):
        return None
    single = nodes[0] if len(nodes) == 1 and nodes[0].type == "object" else None
    return Given([NodeValue(node, code) for node in nodes], object_keys=_keys(single, code) if single else None)


def _keys(node: Node, code: str) -> Named | None:
    """The keys of an object literal with their values; None when any of them is not literal."""
    keys: dict[str, tuple[NodeValue, NodeValue | None]] = {}
    for child in node.named_children:
        if child.type == "comment":
            continue
        if child.type == "shorthand_property_identifier":
            keys[code[child.start_byte : child.end_byte]] = (NodeValue(child, code), None)
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
        value = child.child_by_field_name("value")
        keys[name] = (NodeValue(key, code), NodeValue(value, code) if value else None)
    return keys
