"""Bring a schema that somebody else wrote into the normal form that `schema_cost` can bound.

The form has the known keywords of JSON Schema 2020-12, references of the form `#/$defs/NAME` to the `$defs` at the top,
and patterns for an engine that takes linear time. What can't be expressed in it is replaced by what accepts more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from gloveport.schema_cost import REFERENCE_PREFIX, references_in
from gloveport.sources.schemas.keywords import COMMON_RULES, Rule, Schema, SchemaWalk, definition_name, rules
from gloveport.sources.schemas.local_references import LocalReferences, Target
from gloveport.sources.schemas.loosening import CostLoosener, SizeLoosener, allow_more_where_negated

MAX_WARNINGS = 10
MAX_SHOWN_REFERENCE_CHARS = 100
ROOT = "#"
"""The name of the schema itself among its pieces; no definition can have it."""


class NormalisedSchema(NamedTuple):
    """A schema in the normal form, and warnings about what it accepts beyond the original."""

    schema: dict[str, Any]
    warnings: tuple[str, ...]


def normalise(schema: dict[str, Any]) -> NormalisedSchema:
    """Return the schema in the normal form; it costs the validator a bounded amount of work for each value."""
    document = _Document(schema)
    root, definitions = document.pieces()
    if not isinstance(root, dict):
        root = {}
    pieces = {ROOT: root, **definitions}
    costs = CostLoosener(definitions)
    costs.loosen(root)
    problems = costs.loosened(pieces)
    if too_large := SizeLoosener(definitions).loosen(root):
        problems[ROOT] = too_large
    for name, problem in problems.items():
        document.warn(
            name, f"{'the schema' if name == ROOT else f'the part {name}'} {problem}, and accepts more than it says"
        )
    if document.loosened:
        allow_more_where_negated(pieces, document.loosened)
    used = _reached(root, definitions)
    return NormalisedSchema(root | {"$defs": used} if used else root, tuple(document.warnings)[:MAX_WARNINGS])


def _reached(root: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    waiting = sorted(references_in(root))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found[name] = definitions[name]
            waiting += sorted(references_in(definitions[name]))
    return found


class _Document:
    """One schema under normalisation: its pieces, and what was loosened in them."""

    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._references = LocalReferences(root)
        self._names: dict[int, str] = {}
        self._taken: set[str] = set()
        self._waiting: list[tuple[str, Target]] = []
        self.warnings: dict[str, None] = {}
        self.loosened: set[str] = set()

    def pieces(self) -> tuple[Any, dict[str, Any]]:
        """Return the schema itself and the definitions that it refers to, by name."""
        root = _PieceWalk(self, ROOT, self._references.root).schema(self._root)
        definitions: dict[str, Any] = {}
        while self._waiting:
            name, target = self._waiting.pop()
            definitions[name] = _PieceWalk(self, name, target.resource).schema(target.schema)
        return root, definitions

    def warn(self, piece: str, problem: str) -> None:
        """Note that a piece accepts more than the original."""
        self.warnings[problem] = None
        self.loosened.add(piece)

    def resource_of(self, node: dict[str, Any], around: str) -> str:
        return self._references.resource_of(node, around)

    def name_of(self, reference: str, resource: str) -> str | None:
        """Return the name of the definition that a reference becomes; None when it points to no schema."""
        target = self._references.find(reference, resource)
        if target is None or not isinstance(target.schema, (dict, bool)):
            return None
        key = id(target.schema) if isinstance(target.schema, dict) else int(target.schema)
        if key not in self._names:
            plain = name = definition_name(target.name)
            number = 2
            while name in self._taken:
                name, number = f"{plain}_{number}", number + 1
            self._taken.add(name)
            self._names[key] = name
            self._waiting.append((name, target))
        return self._names[key]


class _PieceWalk(SchemaWalk):
    """Rewrites one piece of a document."""

    __slots__ = ("_document", "_piece", "_resource")
    rules: ClassVar[Mapping[str, Rule]] = rules(
        *((rule, (key,)) for key, rule in COMMON_RULES.items()),
        (SchemaWalk._description, ("title",)),
        (SchemaWalk._flag, ("readOnly", "writeOnly")),
        (SchemaWalk._anchor, ("$anchor",)),
        (SchemaWalk._dialect, ("$schema",)),
    )
    max_description_chars: ClassVar[int] = 2000

    def __init__(self, document: _Document, piece: str, resource: str) -> None:
        self._document = document
        self._piece = piece
        self._resource = resource

    def loosen(self, problem: str) -> None:
        self._document.warn(self._piece, problem)

    def schema(self, node: Any, depth: int = 0) -> Any:
        if not isinstance(node, dict):
            return super().schema(node, depth)
        around, self._resource = self._resource, self._document.resource_of(node, self._resource)
        try:
            dynamic = node.get("$dynamicRef", node.get("$recursiveRef"))
            if isinstance(dynamic, str) and "$ref" not in node:
                node = {**node, "$ref": dynamic}
            return super().schema(node, depth)
        finally:
            self._resource = around

    def resolve(self, reference: str) -> Schema:
        name = self._document.name_of(reference, self._resource)
        if name is None:
            shown = reference[:MAX_SHOWN_REFERENCE_CHARS]
            return self.unknown(f"the reference {shown!a} does not point to a schema in the definition")
        return {"$ref": f"{REFERENCE_PREFIX}{name}"}
