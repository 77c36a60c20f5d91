"""The tool calls that can be read off a TypeScript program, and only those that are certain."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from gloveport.prepare.argument_check import CallArguments, NamedValues
from gloveport.prepare.call_check import TOOLS, CallSite, CertainCalls, Chain, ToolIndex
from gloveport.prepare.typescript.parser import ScriptTooDeepError, parse, shape_of
from gloveport.prepare.typescript.survey import FUNCTIONS, kind_ids
from gloveport.types import Program

if TYPE_CHECKING:
    from tree_sitter import Node

BINDERS = {
    "variable_declarator": "name",
    "required_parameter": "pattern",
    "optional_parameter": "pattern",
    "arrow_function": "parameter",
    "function_declaration": "name",
    "function_expression": "name",
    "generator_function": "name",
    "generator_function_declaration": "name",
    "class_declaration": "name",
    "abstract_class_declaration": "name",
    "class": "name",
    "catch_clause": "parameter",
    "for_in_statement": "left",
    "enum_declaration": "name",
    "internal_module": "name",
    "assignment_expression": "left",
}
"""Where names are bound or rebound: node kind → the field that holds the name or pattern."""
NAMES = frozenset({"identifier", "shorthand_property_identifier_pattern", "type_identifier"})
CHAIN = frozenset({"member_expression", "subscript_expression"})
_WANTED = kind_ids(CHAIN | BINDERS.keys() | {"call_expression", "binary_expression", "try_statement"})


class ScriptChainPart(NamedTuple):
    """One property of a chain: its name, and where it stands."""

    name: str
    extent: tuple[int, int]


@dataclass(slots=True)
class ScriptCalls:
    """What one walk over a program finds.

    `calls` leaves out those whose failure the program handles itself. `bound` maps names to the offsets of their bindings.
    `tested` holds the chains that are read but not called (`if (tools.x)`). `functions` are those that have a name.
    """

    code: str
    roots: frozenset[str]
    calls: list[CallSite] = field(default_factory=list)
    bound: dict[str, list[int]] = field(default_factory=dict)
    tested: set[tuple[str, ...]] = field(default_factory=set)
    functions: dict[str, Node] = field(default_factory=dict)

    def text(self, node: Node) -> str:
        """Return the code of a node."""
        return self.code[node.start_byte : node.end_byte]


def certain_calls(program: Program, catalog: ToolIndex) -> CertainCalls:
    """Return the tool calls that can be read off the text."""
    roots = TOOLS | catalog.roots
    code = program.code
    if not any(root in code for root in roots):
        return CertainCalls()
    try:
        parsed = parse(shape_of(code))
    except ScriptTooDeepError:
        return CertainCalls()
    if parsed.root.has_error or not parsed.complete:
        return CertainCalls()
    root = parsed.root
    found = read_calls(root, code, roots)
    free = frozenset(name for name in roots if not _is_shadowed(name, found, root, program))
    return CertainCalls(tuple(call for call in found.calls if call.chain.root in free), found.tested)


def _is_shadowed(name: str, found: ScriptCalls, root: Node, program: Program) -> bool:
    """Return whether the program binds the name itself, other than as a parameter of the entry function."""
    bound = found.bound.get(name)
    if not bound:
        return False
    if name != "tools" or program.entry != "function" or len(bound) > 1:
        return True
    return not any(node.start_byte <= bound[0] < node.end_byte for node in entry_parameters(found, root))


def read_calls(root: Node, code: str, roots: frozenset[str]) -> ScriptCalls:
    """Return the calls on these roots, and what is needed to check them."""
    found = ScriptCalls(code, roots)
    cursor = root.walk()
    ancestors: list[Node] = []
    caught_until = 0
    while True:
        node = cursor.node
        assert node
        if node.kind_id in _WANTED:
            kind = node.type
            if kind in CHAIN:
                _take_test(found, node, ancestors[-1])
            elif kind in BINDERS:
                _bind(found, node)
            elif kind == "binary_expression":
                _take_in(found, node)
            elif kind == "call_expression":
                _take_call(found, node, caught=node.start_byte < caught_until)
            if kind in {"try_statement", "call_expression"}:
                caught_until = max(caught_until, _caught_until(found, node))
        if cursor.goto_first_child():
            ancestors.append(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return found
            ancestors.pop()


def _bind(found: ScriptCalls, node: Node) -> None:
    target = node.child_by_field_name(BINDERS[node.type])
    if target is None:
        return
    if node.type == "assignment_expression" and target.type not in {"identifier", "object_pattern", "array_pattern"}:
        return
    value = node.child_by_field_name("value") if node.type == "variable_declarator" else node
    if value and value.type in FUNCTIONS and target.type == "identifier":
        found.functions[found.text(target)] = value
    pending = [target]
    while pending:
        inner = pending.pop()
        if inner.type in NAMES:
            found.bound.setdefault(found.text(inner), []).append(inner.start_byte)
        elif inner.type not in FUNCTIONS:
            pending += inner.named_children


def _caught_until(found: ScriptCalls, node: Node) -> int:
    """Return where code ends whose failures the program handles: `try`, `.catch(…)`, `Promise.allSettled(…)`."""
    if node.type == "try_statement":
        body = node.child_by_field_name("body") if node.child_by_field_name("handler") else None
        return body.end_byte if body else 0
    callee = node.child_by_field_name("function")
    name = callee.child_by_field_name("property") if callee and callee.type == "member_expression" else None
    return node.end_byte if name and found.text(name) in {"catch", "allSettled"} else 0


def _take_call(found: ScriptCalls, node: Node, *, caught: bool) -> None:
    callee, arguments = node.child_by_field_name("function"), node.child_by_field_name("arguments")
    if callee is None or arguments is None or callee.type not in CHAIN or arguments.type != "arguments":
        return
    chain = chain_of(found, callee)
    if chain is None:
        return
    if any(child.type == "?." for child in node.children):
        found.tested.add(chain.names)
    elif not caught:
        found.calls.append(CallSite(chain, partial(call_arguments, arguments, found.code), partial(_extent, node)))


def _extent(node: Node) -> tuple[int, int]:
    return node.start_byte, node.end_byte


def _take_test(found: ScriptCalls, node: Node, parent: Node) -> None:
    if parent.type in CHAIN or parent.type == "non_null_expression":
        return
    if parent.type == "call_expression" and parent.start_byte == node.start_byte:
        return
    chain = chain_of(found, node)
    if chain:
        found.tested.add(chain.names)


def _take_in(found: ScriptCalls, node: Node) -> None:
    """Note the name in `"x" in tools`."""
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    if left and right and left.type == "string" and right.type == "identifier" and found.text(right) in found.roots:
        found.tested.add((found.text(left)[1:-1],))


def chain_of(found: ScriptCalls, node: Node) -> Chain | None:
    """Return the chain that an expression spells out on one of the roots; None if it is computed or optional."""
    parts: list[ScriptChainPart] = []
    while node.type in CHAIN or node.type == "non_null_expression":
        inner = node.named_child(0)
        if inner is None:
            return None
        if node.type != "non_null_expression":
            part = _part(found, node)
            if part is None:
                return None
            parts.append(part)
        node = inner
    root = found.text(node) if node.type == "identifier" else ""
    return Chain(root, tuple(reversed(parts))) if parts and root in found.roots else None


def _part(found: ScriptCalls, node: Node) -> ScriptChainPart | None:
    if node.child_by_field_name("optional_chain"):
        return None
    name = node.child_by_field_name("property") or node.child_by_field_name("index")
    if name is None or name.type not in {"property_identifier", "string"}:
        return None
    text = found.text(name) if name.type == "property_identifier" else found.text(name)[1:-1]
    return None if "\\" in text else ScriptChainPart(text, (name.start_byte, name.end_byte))


def entry_parameters(found: ScriptCalls, root: Node) -> list[Node]:
    """Return the first two parameters of the function that the engine calls; none when it can't be found."""
    for node in reversed(root.named_children):
        if node.type != "export_statement" or not any(child.type == "default" for child in node.children):
            continue
        value = node.child_by_field_name("declaration") or node.child_by_field_name("value")
        while value is not None and value.type == "parenthesized_expression":
            value = value.named_child(0)
        if value is not None and value.type == "identifier":
            value = found.functions.get(found.text(value))
        if value is None or value.type not in FUNCTIONS:
            return []
        single, several = value.child_by_field_name("parameter"), value.child_by_field_name("parameters")
        return [single] if single else several.named_children[:2] if several else []
    return []


# --- arguments, as far as they are literal

_VALUE_KINDS = {
    "string": "string",
    "template_string": "string",
    "number": "number",
    "true": "boolean",
    "false": "boolean",
    "null": "null",
    "array": "array",
    "object": "object",
}


class ScriptValue:
    """A value that a node of the syntax tree spells out."""

    __slots__ = ("_code", "_node", "kind")

    def __init__(self, node: Node, code: str) -> None:
        self._node, self._code = node, code
        self.kind = _VALUE_KINDS.get(node.type)

    @property
    def text(self) -> str:
        """The text of the value."""
        return self._code[self._node.start_byte : self._node.end_byte]

    @property
    def string(self) -> str | None:
        """The value of a plain string literal; None for one with escapes."""
        return self.text[1:-1] if self._node.type == "string" and "\\" not in self.text else None

    @property
    def extent(self) -> tuple[int, int]:
        """The offsets in the code where it starts and ends."""
        return self._node.start_byte, self._node.end_byte


def call_arguments(arguments: Node, code: str) -> CallArguments | None:
    """Return the arguments of a call; None when a spread hides them."""
    nodes = [node for node in arguments.named_children if node.type != "comment"]
    if any(node.type == "spread_element" for node in nodes):
        return None
    single = nodes[0] if len(nodes) == 1 and nodes[0].type == "object" else None
    return CallArguments([ScriptValue(node, code) for node in nodes], object_keys=_keys(single, code) if single else None)


def _keys(node: Node, code: str) -> NamedValues | None:
    """Return the keys of an object literal with their values; None if any of them is not literal."""
    keys: dict[str, tuple[ScriptValue, ScriptValue | None]] = {}
    for child in node.named_children:
        if child.type == "comment":
            continue
        if child.type == "shorthand_property_identifier":
            keys[code[child.start_byte : child.end_byte]] = (ScriptValue(child, code), None)
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
        keys[name] = (ScriptValue(key, code), ScriptValue(value, code) if value else None)
    return keys
