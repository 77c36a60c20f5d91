"""Check the arguments of selected fields against the types that the schema gives them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gloveport.sources.graphql.call.selection_text import SelectionError, Value, did_you_mean
from gloveport.sources.graphql.rows import LiteralRow
from gloveport.sources.graphql.stored_schema import StoredSchema

MAX_SHOWN_CHARS = 40
# The literals that each of GraphQL's own scalars takes; any other scalar takes all.
SCALARS: Mapping[str, frozenset[str]] = {
    "Int": frozenset({"int"}),
    "Float": frozenset({"int", "float"}),
    "String": frozenset({"string"}),
    "Boolean": frozenset({"boolean"}),
    "ID": frozenset({"string", "int"}),
}


class LiteralCheck:
    """Checks the values of arguments; the types that it has read are kept while one selection is checked."""

    def __init__(self, schema: StoredSchema) -> None:
        self._schema = schema
        self._types: dict[str, LiteralRow | None] = {}
        self._values: dict[str, frozenset[str]] = {}

    def arguments(
        self,
        given: Sequence[tuple[str, Value]],
        known: Mapping[str, str],
        required: Sequence[str],
        place: str,
        at: int,
    ) -> None:
        """Raise SelectionError where the arguments of `place` are not those that it takes."""
        names = {name for name, _ in given}
        if len(names) < len(given):
            raise SelectionError(f"{place} has an argument twice", at)
        for name, value in given:
            if name not in known:
                similar = did_you_mean(name, tuple(known))
                raise SelectionError(f"Unknown argument `{name}` of {place}.{similar}", value.at)
            self._value(value, known[name])
        if missing := next((name for name in required if name not in names), None):
            raise SelectionError(f"{place} needs the argument `{missing}` of type {known[missing]}", at)

    def _value(self, value: Value, type_: str) -> None:
        if value.kind == "null":
            if type_.endswith("!"):
                raise SelectionError(f"{type_} does not take null", value.at)
            return
        type_ = type_.removesuffix("!")
        if type_.startswith("["):
            inner = type_[1:-1]
            for _, item in value.parts if value.kind == "list" else (("", value),):
                self._value(item, inner)
            return
        if type_ in SCALARS:
            fits = value.kind in SCALARS[type_] and not (type_ == "Int" and not _is_int32(value.text))
            if not fits:
                raise SelectionError(f"{type_} cannot represent `{value.printed()[:MAX_SHOWN_CHARS]}`", value.at)
            return
        if type_ not in self._types:
            self._types[type_] = found = self._schema.literal(type_)
            self._values[type_] = frozenset(found.values if found else ())
        if (known := self._types[type_]) is not None:
            self._known(value, known)

    def _known(self, value: Value, type_: LiteralRow) -> None:
        if type_.values:
            if value.kind != "enum" or value.text not in self._values[type_.name]:
                similar = did_you_mean(value.text, type_.values)
                raise SelectionError(f"{value.printed()[:MAX_SHOWN_CHARS]} is no value of {type_.name}.{similar}", value.at)
            return
        if value.kind != "object":
            raise SelectionError(f"{type_.name} takes an object: {{ … }}", value.at)
        self.arguments(value.parts, type_.arguments, type_.required, type_.name, value.at)
        if type_.one_of and (len(value.parts) != 1 or value.parts[0][1].kind == "null"):
            raise SelectionError(f"{type_.name} takes exactly one field", value.at)


def _is_int32(text: str) -> bool:
    return len(text) <= 11 and -(2**31) <= int(text) < 2**31
