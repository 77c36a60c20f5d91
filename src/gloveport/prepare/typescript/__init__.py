"""TypeScript and JavaScript, in every form that agents write them → one ES module.

    bare statements, trailing expression   export default async () => { … return (expression) }     entry "body"
    a lone function, or `main`             export default (function) · …; export default main       entry "function"
    a module with `export default`         unchanged                                                "function", "value"

Nothing is put on a line of its own before the agent's text, so lines keep their numbers. A safe reading is all that is
tried here: what a program may do is decided by the sandbox, whatever this module made of the text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from gloveport.errors import ProgramError
from gloveport.prepare.positions import Edit, rewrite, through
from gloveport.prepare.subset import ScriptSubset
from gloveport.prepare.typescript.erasure import erase
from gloveport.prepare.typescript.functions import refuse_stray_await, top_level_return
from gloveport.prepare.typescript.imports import take_imports
from gloveport.prepare.typescript.source_text import LooseObjectError, Sheet, read
from gloveport.prepare.typescript.tool_access import tool_access
from gloveport.types import Language, Program

if TYPE_CHECKING:
    from tree_sitter import Node

Entry = Literal["body", "function", "value"]

META = 'Object({url:"file:///workspace/program.ts",filename:"/workspace/program.ts",dirname:"/workspace",main:true})'
"""What `import.meta` becomes: the real one holds a random URL. It starts with a name, so no line before can call it."""

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


def prepare_typescript(source: str, language: Language, subset: ScriptSubset | None = None) -> Program:
    """The program of a text: finds it, refuses what can't run, and gives it the shape of a module."""
    try:
        return _prepare(source, language, subset)
    except LooseObjectError as loose:
        text, inner = rewrite(source, [Edit(loose.start, loose.start, ";("), Edit(loose.end, loose.end, ")")])
        try:
            program = _prepare(text, language, subset)
        except (ProgramError, LooseObjectError):
            raise loose.error from None
        return replace(program, source=source, spans=through(program.spans, inner))


def _prepare(source: str, language: Language, subset: ScriptSubset | None) -> Program:
    sheet = read(source)
    refuse_stray_await(sheet)
    take_imports(sheet)
    for node in sheet.found.of("meta_property"):
        if sheet.parsed.shape.startswith("import", node.start_byte):
            sheet.edits.append(Edit(node.start_byte, node.end_byte, META))
    for node in _top_level(sheet, "ambient_declaration"):
        sheet.blank(node.start_byte, node.end_byte)
    entry = _shape(sheet)
    if subset is not None:
        subset.refuse_unsupported(sheet)
    code, spans = rewrite(source, sheet.edits)
    dialect = "javascript" if sheet.found.plain else "typescript"
    erased = None if sheet.found.plain else _erased(sheet, entry, required=subset is not None)
    access = tool_access(sheet, entry)
    return Program(language, source, code, dialect, entry, spans, erased=erased, tool_access=access)


def _erased(sheet: Sheet, entry: Entry, *, required: bool) -> str | None:
    """Return the program without types, where the engine needs that, or where it saves Deno its compiler."""
    if required:
        return rewrite(sheet.source, sheet.edits + erase(sheet))[0]
    try:
        return rewrite(sheet.source, sheet.edits + erase(sheet))[0] if entry != "value" else None
    except ProgramError:  # there is more than types
        return None


def _shape(sheet: Sheet) -> Entry:
    exports = _top_level(sheet, "export_statement")
    if exports:
        return _shape_module(sheet, exports)
    if _shape_function(sheet):
        return "function"
    if sheet.found.of(*MODULE_ONLY) and (module_only := _first_module_only(sheet)):
        if top_level_return(sheet):
            hint = "put the code after it into `export default async () => { … }`"
            sheet.fail(module_only, "a `namespace` can't stand beside a top-level `return`", hint)
        _export_trailing(sheet)
        return "value"
    _wrap_body(sheet)
    return "body"


def _top_level(sheet: Sheet, kind: str) -> list[Node]:
    return [node for node in sheet.items if node.type == kind] if sheet.found.of(kind) else []


def _first_module_only(sheet: Sheet) -> Node | None:
    return next((node for node in sheet.items if _kind(node) in MODULE_ONLY), None)


def _wrap_body(sheet: Sheet) -> None:
    sheet.edits.insert(0, Edit(0, 0, "export default async () => {"))
    value = _trailing_value(sheet)
    if value:
        sheet.insert(value.start_byte, "return (")
        sheet.insert(value.end_byte, ")")
    sheet.insert(len(sheet.source), "\n}")


def _export_trailing(sheet: Sheet) -> None:
    value = _trailing_value(sheet)
    if value:
        sheet.insert(value.start_byte, "export default (")
        sheet.insert(value.end_byte, ")")


# --- modules


def _shape_module(sheet: Sheet, exports: list[Node]) -> Entry:
    for node in exports:
        if any(child.type == "=" for child in node.children):
            sheet.fail(node, "`export =` is not a form of ES modules", "write `export default …`")
    stray = top_level_return(sheet)
    default = next((node for node in exports if _is_default(sheet, node)), None)
    if default is not None:
        if stray:
            hint = "return from inside the exported function, or drop `export default`"
            sheet.fail(stray, "a top-level `return` can't stand beside `export default`", hint)
        return "function" if _exports_function(sheet, default) else "value"
    if stray:
        for node in exports:
            _drop_export(sheet, node)
        _wrap_body(sheet)
        return "body"
    name = _entry_name(sheet)
    if name:
        sheet.insert(len(sheet.source), f"\nexport default {name}")
        return "function"
    _export_trailing(sheet)
    return "value"


def _is_default(sheet: Sheet, export: Node) -> bool:
    return any(child.type == "default" for child in export.children) or _default_alias(sheet, export) is not None


def _default_alias(sheet: Sheet, export: Node) -> str | None:
    """The local name in `export { name as default }`."""
    for clause in export.named_children:
        for part in clause.named_children if clause.type == "export_clause" else ():
            alias, name = part.child_by_field_name("alias"), part.child_by_field_name("name")
            if alias and name and sheet.text(alias) == "default":
                return sheet.text(name)
    return None


def _exports_function(sheet: Sheet, export: Node) -> bool:
    alias = _default_alias(sheet, export)
    if alias is not None:
        return alias in _functions(sheet)
    declaration = export.child_by_field_name("declaration")
    if declaration:
        return declaration.type == "function_declaration"
    value = export.child_by_field_name("value")
    inner = _unwrapped(value) if value else None
    if inner is None:
        return False
    return inner.type in FUNCTION_VALUES or (inner.type == "identifier" and sheet.text(inner) in _functions(sheet))


def _drop_export(sheet: Sheet, export: Node) -> None:
    declaration = export.child_by_field_name("declaration")
    sheet.blank(export.start_byte, declaration.start_byte if declaration else export.end_byte)


# --- functions that are called


def _shape_function(sheet: Sheet) -> bool:
    """Whether the program is a function to call: the last thing in it, or a `main` that nothing else refers to."""
    value = _trailing_value(sheet)
    if value and value.type != "statement_block":
        if _unwrapped(value).type not in FUNCTION_VALUES:
            return False
        before = (node for node in sheet.items if node.start_byte < value.start_byte)
        if not all(_kind(node) in DECLARATIONS or _is_directive(node) for node in before):
            return False
        sheet.insert(value.start_byte, "export default (")
        sheet.insert(value.end_byte, ")")
        return True
    name = _entry_name(sheet)
    if name:
        sheet.insert(len(sheet.source), f"\nexport default {name}")
    return name is not None


def _entry_name(sheet: Sheet) -> str | None:
    """The function to call in a program of declarations: `main`, or the only thing there is."""
    if not all(_kind(node) in DECLARATIONS or _is_directive(node) for node in sheet.items):
        return None
    items = [node for node in sheet.items if _kind(node) not in TYPES and not _is_directive(node)]
    functions = _functions(sheet)
    if "main" in functions:
        return "main" if not _referred(sheet, "main", functions["main"]) else None
    if len(items) == 1 and len(functions) == 1:
        name, node = functions.popitem()
        alone = node.type == "function_declaration" or _declarators(_declaration(items[0])) == [node]
        return name if alone else None
    return None


def _functions(sheet: Sheet) -> dict[str, Node]:
    """The functions that the top level declares, by name: declarations, and variables that hold a function."""
    found: dict[str, Node] = {}
    for item in sheet.items:
        node = _declaration(item)
        if node.type == "function_declaration":
            name = node.child_by_field_name("name")
            if name:
                found[sheet.text(name)] = node
        for declarator in _declarators(node):
            name, value = declarator.child_by_field_name("name"), declarator.child_by_field_name("value")
            if name and value and name.type == "identifier" and _unwrapped(value).type in FUNCTION_VALUES:
                found[sheet.text(name)] = declarator
    return found


def _declarators(node: Node) -> list[Node]:
    if node.type not in {"lexical_declaration", "variable_declaration"}:
        return []
    return [child for child in node.named_children if child.type == "variable_declarator"]


def _referred(sheet: Sheet, name: str, declaration: Node) -> bool:
    """Whether a name is used outside of its own declaration."""
    return any(not declaration.start_byte <= node.start_byte < declaration.end_byte for node, _ in sheet.mentions(name))


# --- expressions


_SHORTHANDS = re.compile(r"\{\s*(?:[\w$]+\s*(?:,\s*[\w$]+\s*)*)?\}")


def _trailing_value(sheet: Sheet) -> Node | None:
    """The expression whose value is the result; `{a, b}` counts as one, because that is what a person means by it."""
    last = next((node for node in reversed(sheet.items) if node.type not in TYPES), None)
    if last is None:
        return None
    if last.type == "statement_block":
        text = sheet.parsed.shape[last.start_byte : last.end_byte]
        inner = last.named_children
        names = len(inner) == 1 and inner[0].type == "expression_statement" and bool(_SHORTHANDS.fullmatch(text))
        return last if names or (not inner and len(sheet.items) == 1) else None
    if last.type != "expression_statement":
        return None
    first = next((child for child in last.children if child.type != "comment"), None)
    if first is None or not first.is_named or first.type in MODULE_ONLY or _is_using(first):
        return None
    return first


def _is_using(value: Node) -> bool:
    """Whether this is a declaration, `[await] using x = …`, which the grammar takes for an assignment."""
    inner = value.named_child(0) if value.type == "await_expression" else value
    return inner is not None and inner.child_count > 0 and inner.children[0].type == "using"


def _unwrapped(value: Node) -> Node:
    """An expression without the parentheses and casts around it."""
    while value.type in WRAPPERS:
        inner = next((child for child in value.named_children if child.type != "comment"), None)
        if inner is None:
            break
        value = inner
    return value


def _declaration(item: Node) -> Node:
    """What an `export` statement declares; any other statement itself."""
    return (item.child_by_field_name("declaration") or item) if item.type == "export_statement" else item


def _kind(item: Node) -> str:
    """The kind of a statement; that of the declaration for `export …`, and `internal_module` for a namespace."""
    node = _declaration(item)
    if node.type == "expression_statement" and node.child_count and node.children[0].type in MODULE_ONLY:
        return node.children[0].type
    return node.type


def _is_directive(item: Node) -> bool:
    return item.type == "expression_statement" and item.child_count > 0 and item.children[0].type == "string"
