"""Imports of a TypeScript program: each is resolved, and becomes a look-up of a module that the guest has before the run.

import a, { b as c } from "x"      const{default:a,b:c}=$$module("x","default","b");      before everything else
await import("x"), require("x")    await $$import("x"), $$require("x")                    in place
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from gloveport.prepare.positions import Edit
from gloveport.prepare.typescript.module_names import ImportRefusal, find_module
from gloveport.prepare.typescript.survey import VARIABLES
from gloveport.types import Importable, ImportForm, ModuleImport

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

MAX_IMPORTS = 200

_IMPORTING = frozenset({"import_specifier", "import_clause", "namespace_import", "import_require_clause"})
_REQUIRE_DECLARED = re.compile(r"\b(?:function|const|let|var|class)\s+require\b|[({,]\s*require\s*[,)}=:]")


class TakenImports(NamedTuple):
    """The modules that a program imports, and the names that it gives to what it imports, types included."""

    modules: tuple[ModuleImport, ...]
    names: frozenset[str]


class _Binding(NamedTuple):
    """A name of the program, and what it stands for in the module: an export, or None for the module itself."""

    local: str
    export: str | None


def take_imports(source_text: SourceText, importable: Importable) -> TakenImports:
    """Replace the imports of a program by look-ups and return them; refuse those that don't resolve."""
    taker = _Taker(source_text, importable)
    taker.take()
    return TakenImports(tuple(dict.fromkeys(taker.modules)), frozenset(taker.names))


class _Taker:
    def __init__(self, source_text: SourceText, importable: Importable) -> None:
        self._source_text = source_text
        self._importable = importable
        self._bindings: list[str] = []
        self._values: frozenset[str] | None = None  # the names that the program uses outside types and imports
        self.modules: list[ModuleImport] = []
        self.names: set[str] = set()

    def take(self) -> None:
        source_text = self._source_text
        erased: set[int] = set()
        for statement in sorted(
            source_text.found.of("import_statement", "export_statement"), key=lambda node: node.start_byte
        ):
            specifier = statement.child_by_field_name("source") or _required(statement)
            if specifier is None:
                continue
            self._take_statement(statement, specifier)
            source_text.blank(statement.start_byte, statement.end_byte)
            erased.add(statement.start_byte)
        for call in source_text.found.import_calls:
            self._take_call(call, "dynamic")
        if "require" in source_text.parsed.shape and not _REQUIRE_DECLARED.search(source_text.parsed.shape):
            for name, parent in source_text.mentions("require"):
                if parent.type == "call_expression" and parent.start_byte == name.start_byte:
                    self._take_call(parent, "require")
        if erased:
            source_text.items = [node for node in source_text.items if node.start_byte not in erased]
        if self._bindings:
            source_text.insert(0, "".join(self._bindings))

    def _take_statement(self, statement: Node, specifier: Node) -> None:
        bindings = self._bindings_of(statement)
        self.names.update(binding.local for binding in bindings)
        if _is_type_only(statement):
            return
        requires = _required(statement) is not None
        module = self._found(specifier, self._source_text.text(specifier)[1:-1], "require" if requires else "import")
        look_up = f"{'$$require' if requires else '$$module'}({module}"
        used = [binding for binding in bindings if binding.local in self._used_values()]
        exports = [binding for binding in used if binding.export is not None]
        listed = "".join(f",{json.dumps(binding.export)}" for binding in exports)
        whole = [binding.local for binding in used if binding.export is None]
        self._bindings += [f"const {local}={look_up});" for local in whole]
        if exports:
            pattern = ",".join(f"{json.dumps(binding.export)}:{binding.local}" for binding in exports)
            self._bindings.append(f"const {{{pattern}}}={look_up}{listed});")
        elif not whole:
            self._bindings.append(f"{look_up});")

    def _bindings_of(self, statement: Node) -> list[_Binding]:
        text = self._source_text.text
        found: list[_Binding] = []
        for clause in statement.named_children:
            if clause.type == "import_require_clause":
                found.append(_Binding(text(clause.named_children[0]), None))
            for part in clause.named_children if clause.type == "import_clause" else ():
                if part.type == "identifier":
                    found.append(_Binding(text(part), "default"))
                elif part.type == "namespace_import":
                    found += [_Binding(text(name), None) for name in part.named_children if name.type == "identifier"]
                for each in part.named_children if part.type == "named_imports" else ():
                    name, alias = each.child_by_field_name("name"), each.child_by_field_name("alias")
                    if name is not None:
                        export = text(name)[1:-1] if name.type == "string" else text(name)
                        found.append(_Binding(text(alias or name), export))
        return found

    def _used_values(self) -> frozenset[str]:
        """Return the names that are used as values: TypeScript drops imports that only types use."""
        if self._values is None:
            text = self._source_text.text
            self._values = frozenset(
                text(node)
                for node, parent in self._source_text.found.identifiers
                if node.type in VARIABLES and parent.type not in _IMPORTING
            )
        return self._values

    def _take_call(self, call: Node, form: ImportForm) -> None:
        """Replace `import(…)` or `require(…)`."""
        arguments, callee = call.child_by_field_name("arguments"), call.child_by_field_name("function")
        given = [node for node in arguments.named_children if node.type != "comment"] if arguments else []
        first = given[0] if given else call
        literal = first.type in {"string", "template_string"} and not any(
            child.type == "template_substitution" for child in first.named_children
        )
        module = self._found(first, self._source_text.text(first)[1:-1] if literal else None, form)
        if callee is None:
            self._fail(first, ImportRefusal("this import is refused: it is no call", 'write it as `import("name")`'))
        name = "$$import" if form == "dynamic" else "$$require"
        edits = self._source_text.edits
        edits.append(Edit(callee.start_byte, callee.end_byte, name))
        edits.append(Edit(first.start_byte, first.end_byte, module))
        if len(given) > 1:  # options such as `{with: {type: "json"}}`
            self._source_text.blank(first.end_byte, given[-1].end_byte)

    def _found(self, node: Node, specifier: str | None, form: ImportForm) -> str:
        """Note the module that a specifier names; return its name as a string of the program."""
        try:
            found = find_module(specifier, self._importable)
        except ImportRefusal as refusal:
            self._fail(node, refusal)
        if len(self.modules) >= MAX_IMPORTS:
            self._fail(node, ImportRefusal(f"the program has more than {MAX_IMPORTS} imports", "import each module once"))
        self.modules.append(ModuleImport(found.name, found.kind, form))
        return json.dumps(found.name)

    def _fail(self, node: Node, refusal: ImportRefusal) -> NoReturn:
        self._source_text.fail(node, refusal.message, refusal.hint, code="import-refused", package=refusal.package)


def _required(statement: Node) -> Node | None:
    clause = next((child for child in statement.named_children if child.type == "import_require_clause"), None)
    return clause.child_by_field_name("source") if clause else None


def _is_type_only(statement: Node) -> bool:
    if any(child.type == "type" for child in statement.children):
        return True
    parts = [child for child in statement.named_children if child.type in {"import_clause", "export_clause"}]
    if parts and parts[0].type == "import_clause":
        parts = parts[0].named_children
    if len(parts) != 1 or parts[0].type not in {"named_imports", "export_clause"}:
        return False
    specifiers = [child for child in parts[0].named_children if child.type != "comment"]
    return bool(specifiers) and all(any(part.type == "type" for part in child.children) for child in specifiers)
