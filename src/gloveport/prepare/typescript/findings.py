"""What a person should look at in a TypeScript program: its tree, step by step, for `data_flow`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from gloveport.advice import ProgramFinding
from gloveport.prepare.data_flow import NOWHERE, DataFlow, Part, Steps, find_in
from gloveport.prepare.typescript.calls import CHAIN, NAMES
from gloveport.prepare.typescript.parser import parse, shape_of
from gloveport.prepare.typescript.survey import FUNCTIONS, VARIABLES
from gloveport.types import Program

if TYPE_CHECKING:
    from tree_sitter import Node

_ADDING = "augmented_assignment_expression"


def find_findings(program: Program) -> tuple[ProgramFinding, ...]:
    """Return what a person should look at in a program."""
    root = parse(shape_of(program.code)).root
    return find_in(root, program, lambda flow: _ScriptSteps(program.code, flow).parts, lambda node: node.start_byte)


class _ScriptSteps:
    """Reports each node of a tree to the flow, and gives its parts in the order in which they are evaluated."""

    def __init__(self, code: str, flow: DataFlow) -> None:
        self._code = code
        self.flow = flow
        self._takes: dict[str, Steps] = {
            **dict.fromkeys(VARIABLES, lambda node: flow.use(self._text(node))),
            **dict.fromkeys(("string", "string_fragment"), lambda node: flow.text(self._text(node).strip("\"'"))),
            **dict.fromkeys(FUNCTIONS, self._function),
            **dict.fromkeys(("call_expression", "new_expression"), self._call),
            **dict.fromkeys(("variable_declarator", "assignment_expression", _ADDING), self._binding),
            **dict.fromkeys(CHAIN, self._member),
            "template_substitution": lambda node: [*node.named_children, partial(flow.text, "")],
            "binary_expression": self._binary,
            "for_in_statement": self._for_each,
        }

    def parts(self, node: Node) -> Sequence[Part] | None:
        take = self._takes.get(node.type)
        return take(node) if take else node.named_children

    def _text(self, node: Node) -> str:
        return self._code[node.start_byte : node.end_byte]

    def _chain(self, node: Node | None) -> str:
        parts: list[str] = []
        while node is not None and node.type in CHAIN:
            parts.append(self._name(node))
            node = node.child_by_field_name("object")
        root = self._text(node) if node is not None and node.type == "identifier" else ""
        return ".".join([root, *reversed(parts)])

    def _name(self, node: Node) -> str:
        name = node.child_by_field_name("property") or node.child_by_field_name("index")
        return self._text(name).strip("\"'") if name and name.type in ("property_identifier", "string") else "*"

    def _names(self, pattern: Node | None) -> list[str]:
        names, pending = list[str](), [pattern] if pattern else []
        while pending:
            node = pending.pop()
            if node.type in NAMES:
                names.append(self._text(node))
            elif node.type not in FUNCTIONS and node.type != "type_annotation":
                pending += node.named_children
        return names

    def _call(self, node: Node) -> list[Part]:
        function = node.child_by_field_name("function") or node.child_by_field_name("constructor")
        arguments, start = node.child_by_field_name("arguments"), self.flow.now
        given, callee = arguments.named_children if arguments else [], self._chain(function)
        if callee.endswith(".toString") and given and self._text(given[0])[1:-1] in ("base64", "base64url", "hex"):
            callee = ".toBase64"
        # `rows.map((row) => …)`: what the call has held so far reaches the function.
        steps = [partial(self._function, each, start) if each.type in FUNCTIONS else each for each in given]
        return [function, *steps, partial(self.flow.call, callee, start, node)]

    def _function(self, node: Node, start: int = NOWHERE) -> list[Part]:
        if (name := node.child_by_field_name("name")) is not None and node.type != "method_definition":
            self.flow.bind((self._text(name),), NOWHERE)
        self.flow.bind(self._names(node.child_by_field_name("parameters") or node.child_by_field_name("parameter")), start)
        return [node.child_by_field_name("body")]

    def _binding(self, node: Node) -> list[Part]:
        target = node.child_by_field_name("name") or node.child_by_field_name("left")
        value = node.child_by_field_name("value") or node.child_by_field_name("right")
        start = NOWHERE if value is None or value.type in FUNCTIONS else self.flow.now
        is_member = target is not None and target.type in CHAIN
        names = [self._chain(target).partition(".")[0]] if is_member else self._names(target)
        bind = partial(self.flow.bind, names, start, adds=is_member or node.type == _ADDING)
        return [target if is_member else None, value, bind]

    def _binary(self, node: Node) -> list[Part]:
        right = node.child_by_field_name("right")
        goes_on = right is None or right.type == "string"  # the URL, in `"https://x" + "?q=" + value`
        return [*node.named_children, None if goes_on else partial(self.flow.text, "")]

    def _for_each(self, node: Node) -> list[Part]:
        left, right, body = (node.child_by_field_name(name) for name in ("left", "right", "body"))
        return [right, partial(self.flow.bind, self._names(left), self.flow.now), body]

    def _member(self, node: Node) -> list[Part]:
        inner, name = node.child_by_field_name("object"), self._name(node)
        if name == "constructor" and inner is not None and inner.type in CHAIN:
            name = f"{self._name(inner)}.{name}"
        self.flow.attribute(name, node)
        return [inner, node.child_by_field_name("index")]
