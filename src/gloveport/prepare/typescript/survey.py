"""One walk over a syntax tree that collects what the later steps ask about."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gloveport.prepare.typescript.parser import TYPESCRIPT

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_NESTING = 250
"""Levels of brackets, functions and blocks; Deno's transpiler overflows its stack somewhere above 300."""
MAX_TREE_DEPTH = 2000
"""Levels of the whole tree: a chain of 1,000 calls or a sum of 2,000 terms is fine."""

_PLAIN_JAVASCRIPT = """
    arguments array array_pattern arrow_function assignment_expression assignment_pattern await_expression
    augmented_assignment_expression binary_expression break_statement call_expression catch_clause class class_body
    class_declaration class_heritage class_static_block comment computed_property_name continue_statement
    debugger_statement do_statement
    else_clause empty_statement escape_sequence export_clause export_specifier export_statement expression_statement
    extends_clause false finally_clause for_in_statement for_statement formal_parameters function_declaration
    function_expression generator_function generator_function_declaration hash_bang_line html_comment identifier
    if_statement import import_attribute import_clause import_specifier import_statement labeled_statement
    lexical_declaration member_expression meta_property method_definition named_imports namespace_export
    namespace_import new_expression null number object object_assignment_pattern object_pattern optional_chain pair
    pair_pattern parenthesized_expression private_property_identifier program property_identifier
    public_field_definition regex regex_flags regex_pattern required_parameter rest_pattern return_statement
    sequence_expression shorthand_property_identifier shorthand_property_identifier_pattern spread_element
    statement_block statement_identifier string string_fragment subscript_expression super switch_body switch_case
    switch_default switch_statement template_string template_substitution ternary_expression this throw_statement true
    try_statement type_identifier unary_expression undefined update_expression variable_declaration
    variable_declarator while_statement with_statement yield_expression
    ! != !== " ${ % %= & && &&= &= ' ( ) * ** **= *= + ++ += , - -- -= . ... / /= : ; < << <<= <= = == === => > >=
    >> >>= >>> >>>= ? ?. ?? ??= [ ] ^ ^= ` as assert async await break case catch class const continue debugger default
    delete do else export extends finally for from function get if import in instanceof let meta new of return set
    static switch target throw try typeof using var void while with yield { | |= || ||= } ~"""
# The node kinds of plain JavaScript. `as` occurs in import and export clauses; a cast is an `as_expression`.

TYPE_PARTS = frozenset(
    {
        "type_annotation",
        "type_arguments",
        "type_parameters",
        "type_predicate_annotation",
        "asserts_annotation",
        "implements_clause",
        "override_modifier",
        "accessibility_modifier",
    }
)
TYPE_STATEMENTS = frozenset(
    {
        "interface_declaration",
        "type_alias_declaration",
        "ambient_declaration",
        "function_signature",
        "method_signature",
        "abstract_method_signature",
        "index_signature",
    }
)
CASTS = frozenset({"as_expression", "satisfies_expression"})
PARAMETERS = frozenset({"optional_parameter", "required_parameter"})
HOLDERS = PARAMETERS | {"variable_declarator"}
MEMBERS = frozenset({"public_field_definition", "method_definition"})
NAMESPACES = frozenset({"internal_module", "module"})
REFUSED = {
    "enum_declaration": "enums",
    "decorator": "decorators",
    "import_alias": "`import … =`",
    "import_require_clause": "`import … = require(…)`",
}

ERASABLE = (
    TYPE_PARTS
    | TYPE_STATEMENTS
    | CASTS
    | HOLDERS
    | MEMBERS
    | NAMESPACES
    | REFUSED.keys()
    | {"type_assertion", "non_null_expression", "binary_expression", "abstract_class_declaration"}
    | {"export_statement", "expression_statement"}
)
"""The kinds of nodes that `erasure` looks at."""

FUNCTIONS = frozenset(
    {
        "arrow_function",
        "function_declaration",
        "function_expression",
        "generator_function",
        "generator_function_declaration",
        "method_definition",
    }
)
VARIABLES = frozenset({"identifier", "shorthand_property_identifier"})
BOUND_SHORTHAND = "shorthand_property_identifier_pattern"  # `{ a }` on the left
_COLLECTED = FUNCTIONS | {
    "await",
    "return_statement",
    "meta_property",
    "import_statement",
    "export_statement",
    "public_field_definition",
    "internal_module",
    "import_alias",
    "module",
    "ambient_declaration",
    "string",
    "this",
}
_LIGHT = frozenset(
    {
        "as_expression",
        "binary_expression",
        "call_expression",
        "else_clause",
        "expression_statement",
        "if_statement",
        "lexical_declaration",
        "member_expression",
        "non_null_expression",
        "return_statement",
        "satisfies_expression",
        "subscript_expression",
        "ternary_expression",
        "unary_expression",
        "variable_declarator",
    }
)


def kind_names() -> list[str]:
    """Return the grammar's node kinds, indexed by their ids."""
    return [TYPESCRIPT.node_kind_for_id(kind) or "" for kind in range(TYPESCRIPT.node_kind_count)]


def kind_ids(kinds: frozenset[str]) -> frozenset[int]:
    """Return the grammar's ids of node kinds; comparing ids is much cheaper than comparing names."""
    return frozenset(kind for kind, name in enumerate(kind_names()) if name in kinds)


_LIGHT_IDS = kind_ids(_LIGHT)
_IMPORT_ID = TYPESCRIPT.id_for_node_kind("import", True)

# What the survey wants to know of a kind of node. Most kinds have no mark, and cost one look-up.
_FOREIGN, _COLLECT, _IMPORTS, _ERASABLE, _ENDS, _IDENTIFIERS = 1, 2, 4, 8, 16, 32
_STATEMENTS = ("_statement", "_declaration")


def marks(more: frozenset[str] = frozenset()) -> dict[int, int]:
    """Return what the survey does about each kind of node. It also collects the nodes of `more` kinds."""
    every = frozenset(kind_names())
    wanted = {
        _FOREIGN: kind_ids(every - set(_PLAIN_JAVASCRIPT.split())),
        _COLLECT: kind_ids(_COLLECTED | more),
        _IMPORTS: frozenset({_IMPORT_ID}),
        _ERASABLE: kind_ids(ERASABLE),
        _ENDS: kind_ids(frozenset(kind for kind in every if kind.endswith(_STATEMENTS)) | {"public_field_definition"}),
        _IDENTIFIERS: kind_ids(VARIABLES | {BOUND_SHORTHAND, "type_identifier"}),
    }
    return {
        kind: sum(mark for mark, kinds in wanted.items() if kind in kinds) for kind in range(TYPESCRIPT.node_kind_count)
    }


MARKS = marks()
_LITERAL_IDS = kind_ids(frozenset({"comment", "template_string"}))


class NestedTooDeeplyError(Exception):
    """The tree is deeper than the engine could follow, at `offset`."""

    def __init__(self, offset: int) -> None:
        super().__init__(offset)
        self.offset = offset


@dataclass(slots=True)
class ScriptSurvey:
    """What a program holds: nodes by kind in the order of the text, and whether it is plain JavaScript."""

    nodes: dict[str, list[Node]] = field(default_factory=dict)
    import_calls: list[Node] = field(default_factory=list)
    plain: bool = True
    erasable: list[tuple[Node, Node]] = field(default_factory=list)  # with their parents
    ends: set[int] = field(default_factory=set)  # of statements and members
    identifiers: list[tuple[Node, Node]] = field(default_factory=list)  # with their parents

    def of(self, *kinds: str) -> list[Node]:
        """Return the nodes of these kinds."""
        return [node for kind in kinds for node in self.nodes.get(kind, ())]


def survey(root: Node, marks_of: Mapping[int, int] = MARKS) -> ScriptSurvey:  # noqa: PLR0912 - one walk, in one loop
    """Return the survey of a tree; raise `NestedTooDeeplyError` for one that is too deep."""
    result = ScriptSurvey()
    nodes, erasable, ends, identifiers = result.nodes, result.erasable, result.ends, result.identifiers
    seen = deepest = 0
    ancestors: list[Node] = []
    cursor = root.walk()
    while True:
        node = cursor.node
        assert node
        marks = marks_of.get(node.kind_id, _FOREIGN)
        if marks:
            seen |= marks
            if marks & _COLLECT:
                nodes.setdefault(node.type, []).append(node)
            if marks & _ERASABLE and ancestors:
                erasable.append((node, ancestors[-1]))
            if marks & _ENDS:
                ends.add(node.end_byte)
            if marks & _IDENTIFIERS:
                identifiers.append((node, ancestors[-1]))
        if cursor.goto_first_child():
            ancestors.append(node)
            if len(ancestors) > deepest:
                deepest = len(ancestors)
                if deepest > MAX_TREE_DEPTH:
                    raise NestedTooDeeplyError(node.start_byte)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                if deepest > MAX_NESTING:
                    _check_nesting(root)
                if seen & _IMPORTS:
                    result.import_calls += _import_calls(root)
                result.plain = not seen & _FOREIGN and not _has_marked_member(nodes)
                return result
            ancestors.pop()


def walk(root: Node) -> Iterator[tuple[Node, list[Node]]]:
    """Yield every node with its ancestors. Asking nodes for parents takes quadratic time; copied cursors crash (0.26)."""
    cursor = root.walk()
    ancestors: list[Node] = []
    while True:
        node = cursor.node
        assert node
        yield node, ancestors
        if cursor.goto_first_child():
            ancestors.append(node)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            ancestors.pop()


def _import_calls(root: Node) -> Iterator[Node]:
    """Yield every `import(…)`, in type positions too: engines end types at line ends where the grammar does not."""
    for node, ancestors in walk(root):
        if node.kind_id == _IMPORT_ID and ancestors[-1].type == "call_expression":
            yield ancestors[-1]


def _check_nesting(root: Node) -> None:
    cursor = root.walk()
    nesting = 0
    heavy: list[bool] = []
    while True:
        node = cursor.node
        assert node
        if cursor.goto_first_child():
            heavy.append(node.kind_id not in _LIGHT_IDS)
            nesting += heavy[-1]
            if nesting > MAX_NESTING:
                raise NestedTooDeeplyError(node.start_byte)
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return
            nesting -= heavy.pop()


def _has_marked_member(nodes: dict[str, list[Node]]) -> bool:
    """Return whether a class member is marked `x?` or `x!`: JavaScript has these tokens, but not in this place."""
    members = [*nodes.get("public_field_definition", ()), *nodes.get("method_definition", ())]
    return any(child.type in {"?", "!"} for member in members for child in member.children if not child.is_named)


def is_async(function: Node) -> bool:
    """Return whether a function is marked `async`."""
    return any(child.type == "async" for child in function.children[:4])


def literals(root: Node) -> list[tuple[int, int, bool]]:
    """Return where comments (True) and templates (False) stand, in the order of the text."""
    return [
        (node.start_byte, node.end_byte, node.type == "comment") for node, _ in walk(root) if node.kind_id in _LITERAL_IDS
    ]
