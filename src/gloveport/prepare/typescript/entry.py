"""How a TypeScript program gives its result: by running its body, by calling its function, or as a module's export."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from gloveport.prepare.positions import Edit
from gloveport.prepare.typescript.functions import top_level_return

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

Entry = Literal["body", "function", "value"]

TYPES = frozenset({"type_alias_declaration", "interface_declaration", "ambient_declaration", "function_signature"})
DECLARATIONS = TYPES | {
    "function_declaration",
    "generator_function_declaration",
    "class_declaration",
    "abstract_class_declaration",
    "lexical_declaration",
    "variable_declaration",
    "enum_declaration",
    "import_alias",
    "internal_module",
    "module",
}
MODULE_ONLY = frozenset({"internal_module", "module", "import_alias"})
FUNCTION_VALUES = frozenset({"arrow_function", "function_expression"})
WRAPPERS = frozenset({"parenthesized_expression", "as_expression", "satisfies_expression", "non_null_expression"})


def shape_entry(source_text: SourceText) -> Entry:
    """Add the edits that turn a program into a module; return how the module gives the result."""
    exports = top_level(source_text, "export_statement")
    if exports:
        return _shape_module(source_text, exports)
    if _shape_function(source_text):
        return "function"
    if source_text.found.of(*MODULE_ONLY) and (module_only := _first_module_only(source_text)):
        if top_level_return(source_text):
            hint = "move the code after it into `export default async () => { … }`"
            source_text.fail(module_only, "a program with a `namespace` can't have a top-level `return`", hint)
        _export_trailing(source_text)
        return "value"
    _wrap_body(source_text)
    return "body"


def top_level(source_text: SourceText, kind: str) -> list[Node]:
    """Return the statements of a kind at the top level."""
    return [node for node in source_text.items if node.type == kind] if source_text.found.of(kind) else []


def _first_module_only(source_text: SourceText) -> Node | None:
    return next((node for node in source_text.items if _kind(node) in MODULE_ONLY), None)


def _wrap_body(source_text: SourceText) -> None:
    source_text.edits.insert(0, Edit(0, 0, "export default async () => {"))
    value = _trailing_value(source_text)
    if value:
        source_text.insert(value.start_byte, "return (")
        source_text.insert(value.end_byte, ")")
    source_text.insert(len(source_text.source), "\n}")


def _export_trailing(source_text: SourceText) -> None:
    value = _trailing_value(source_text)
    if value:
        source_text.insert(value.start_byte, "export default (")
        source_text.insert(value.end_byte, ")")


# --- modules


def _shape_module(source_text: SourceText, exports: list[Node]) -> Entry:
    for node in exports:
        if any(child.type == "=" for child in node.children):
            source_text.fail(node, "ES modules have no `export =`", "write `export default …`")
    stray = top_level_return(source_text)
    default = next((node for node in exports if _is_default(source_text, node)), None)
    if default is not None:
        if stray:
            hint = "return from inside the exported function, or remove `export default`"
            source_text.fail(stray, "a program with `export default` can't have a top-level `return`", hint)
        return "function" if _exports_function(source_text, default) else "value"
    if stray:
        for node in exports:
            _drop_export(source_text, node)
        _wrap_body(source_text)
        return "body"
    name = _entry_name(source_text)
    if name:
        source_text.insert(len(source_text.source), f"\nexport default {name}")
        return "function"
    _export_trailing(source_text)
    return "value"


def _is_default(source_text: SourceText, export: Node) -> bool:
    return any(child.type == "default" for child in export.children) or _default_alias(source_text, export) is not None


def _default_alias(source_text: SourceText, export: Node) -> str | None:
    """Return the local name in `export { name as default }`."""
    for clause in export.named_children:
        for part in clause.named_children if clause.type == "export_clause" else ():
            alias, name = part.child_by_field_name("alias"), part.child_by_field_name("name")
            if alias and name and source_text.text(alias) == "default":
                return source_text.text(name)
    return None


def _exports_function(source_text: SourceText, export: Node) -> bool:
    alias = _default_alias(source_text, export)
    if alias is not None:
        return alias in _functions(source_text)
    declaration = export.child_by_field_name("declaration")
    if declaration:
        return declaration.type == "function_declaration"
    value = export.child_by_field_name("value")
    inner = _unwrapped(value) if value else None
    if inner is None:
        return False
    return inner.type in FUNCTION_VALUES or (
        inner.type == "identifier" and source_text.text(inner) in _functions(source_text)
    )


def _drop_export(source_text: SourceText, export: Node) -> None:
    declaration = export.child_by_field_name("declaration")
    source_text.blank(export.start_byte, declaration.start_byte if declaration else export.end_byte)


# --- the entry function


def _shape_function(source_text: SourceText) -> bool:
    """Return whether the program is a function to call: its last expression, or a `main` that nothing else uses."""
    value = _trailing_value(source_text)
    if value and value.type != "statement_block":
        if _unwrapped(value).type not in FUNCTION_VALUES:
            return False
        before = (node for node in source_text.items if node.start_byte < value.start_byte)
        if not all(_kind(node) in DECLARATIONS or _is_directive(node) for node in before):
            return False
        source_text.insert(value.start_byte, "export default (")
        source_text.insert(value.end_byte, ")")
        return True
    name = _entry_name(source_text)
    if name:
        source_text.insert(len(source_text.source), f"\nexport default {name}")
    return name is not None


def _entry_name(source_text: SourceText) -> str | None:
    """Return the function to call in a program of declarations: `main`, or the only declaration."""
    if not all(_kind(node) in DECLARATIONS or _is_directive(node) for node in source_text.items):
        return None
    items = [node for node in source_text.items if _kind(node) not in TYPES and not _is_directive(node)]
    functions = _functions(source_text)
    if "main" in functions:
        return "main" if not _referred(source_text, "main", functions["main"]) else None
    if len(items) == 1 and len(functions) == 1:
        name, node = functions.popitem()
        alone = node.type == "function_declaration" or _declarators(_declaration(items[0])) == [node]
        return name if alone else None
    return None


def _functions(source_text: SourceText) -> dict[str, Node]:
    """Return the functions that the top level declares, by name: declarations, and variables that hold a function."""
    found: dict[str, Node] = {}
    for item in source_text.items:
        node = _declaration(item)
        if node.type == "function_declaration":
            name = node.child_by_field_name("name")
            if name:
                found[source_text.text(name)] = node
        for declarator in _declarators(node):
            name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
            if name and value and name.type == "identifier" and _unwrapped(value).type in FUNCTION_VALUES:
                found[source_text.text(name)] = declarator
    return found


def takes_arguments(source_text: SourceText) -> bool:
    """Return whether a function of the top level takes arguments. One that does may be the entry, which gets `tools`."""
    found = [node.child_by_field_name("value") or node for node in _functions(source_text).values()]
    found += [value for node in source_text.items if (value := node.child_by_field_name("value"))]  # of `export default`
    found += [value] if (value := _trailing_value(source_text)) else []
    return "arguments" in source_text.source or any(_has_parameters(_unwrapped(node)) for node in found)


def _has_parameters(function: Node) -> bool:
    listed = function.child_by_field_name("parameters")
    return bool(function.child_by_field_name("parameter") or (listed and listed.named_child_count))


def _declarators(node: Node) -> list[Node]:
    if node.type not in {"lexical_declaration", "variable_declaration"}:
        return []
    return [child for child in node.named_children if child.type == "variable_declarator"]


def _referred(source_text: SourceText, name: str, declaration: Node) -> bool:
    """Return whether a name is used outside its own declaration."""
    return any(
        not declaration.start_byte <= node.start_byte < declaration.end_byte for node, _ in source_text.mentions(name)
    )


# --- expressions


_SHORTHANDS = re.compile(r"\{\s*(?:[\w$]+\s*(?:,\s*[\w$]+\s*)*)?\}")


def _trailing_value(source_text: SourceText) -> Node | None:
    """Return the expression whose value is the result. `{a, b}` counts as one: people mean an object by it."""
    last = next((node for node in reversed(source_text.items) if node.type not in TYPES), None)
    if last is None:
        return None
    if last.type == "statement_block":
        text = source_text.parsed.shape[last.start_byte : last.end_byte]
        inner = last.named_children
        names = len(inner) == 1 and inner[0].type == "expression_statement" and bool(_SHORTHANDS.fullmatch(text))
        return last if names or (not inner and len(source_text.items) == 1) else None
    if last.type != "expression_statement":
        return None
    first = next((child for child in last.children if child.type != "comment"), None)
    if first is None or not first.is_named or first.type in MODULE_ONLY or _is_using(first):
        return None
    return first


def _is_using(value: Node) -> bool:
    """Return whether this is a declaration `[await] using x = …`, which the grammar reads as an assignment."""
    inner = value.named_child(0) if value.type == "await_expression" else value
    return inner is not None and inner.child_count > 0 and inner.children[0].type == "using"


def _unwrapped(value: Node) -> Node:
    """Return an expression without the parentheses and casts around it."""
    while value.type in WRAPPERS:
        inner = next((child for child in value.named_children if child.type != "comment"), None)
        if inner is None:
            break
        value = inner
    return value


def _declaration(item: Node) -> Node:
    """Return what an `export` statement declares; any other statement unchanged."""
    return (item.child_by_field_name("declaration") or item) if item.type == "export_statement" else item


def _kind(item: Node) -> str:
    """Return the kind of a statement: that of the declaration for `export …`, `internal_module` for a namespace."""
    node = _declaration(item)
    if node.type == "expression_statement" and node.child_count and node.children[0].type in MODULE_ONLY:
        return node.children[0].type
    return node.type


def _is_directive(item: Node) -> bool:
    return item.type == "expression_statement" and item.child_count > 0 and item.children[0].type == "string"
