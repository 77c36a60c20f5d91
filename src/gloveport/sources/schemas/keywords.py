"""Rewrite a schema keyword by keyword, as JSON Schema 2020-12. A keyword that is unknown or not valid is left out.

What accepts more than the original did is reported through `loosen`: the caller must then also loosen what negates the
schema, or a value that was valid would be refused.
"""

from __future__ import annotations

import math
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

from gloveport.schema_cost import DIALECT, is_anchor, pattern_states
from gloveport.sources.texts import clean

Schema = dict[str, Any]
Rule = Callable[[Any, Schema, str, Any, Schema, int], None]

MAX_SCHEMA_DEPTH = 64
MAX_SHOWN_PATTERN_CHARS = 80
JSON_TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
EXCLUSIVE_BOUNDS = {"minimum": "exclusiveMinimum", "maximum": "exclusiveMaximum"}

# One character class, repeated: `^[a-z0-9]{1,255}$`. Its length is cheaper to check than its repetitions.
_REPEATED_CLASS = re.compile(
    r"\^(?P<one>\[(?:[^\[\]\\]|\\.){1,500}\]|\.|\\[dDwWsS]|\\[pP]\{\w{1,40}\})\{(?P<least>\d{1,9})(?P<open>,(?P<most>\d{1,9})?)?\}\$"
)


class SchemaWalk:
    """Rewrites one schema. A subclass resolves the references and reports problems."""

    __slots__ = ()
    rules: ClassVar[Mapping[str, Rule]] = {}
    max_description_chars: ClassVar[int] = 600

    @abstractmethod
    def loosen(self, problem: str) -> None:
        """Report that the schema accepts more than the original."""

    @abstractmethod
    def resolve(self, reference: str) -> Schema:
        """Return the schema that replaces a reference, without what stands beside it."""

    def schema(self, node: Any, depth: int = 0) -> Any:
        """Return the node as JSON Schema 2020-12: an object or a boolean."""
        if type(node) is not dict:
            return node if isinstance(node, bool) else self.unknown("a schema is not an object")
        if depth > MAX_SCHEMA_DEPTH:
            return self.unknown(f"a schema is nested deeper than {MAX_SCHEMA_DEPTH} levels")
        reference = node.get("$ref")
        if not isinstance(reference, str):
            return self.keywords(node, depth)
        out = self.resolve(reference)
        return out | self.keywords(node, depth + 1) if len(node) > 1 else out

    def unknown(self, problem: str) -> Schema:
        """Return a schema that accepts anything, in place of one that can't be used."""
        self.loosen(problem)
        return {}

    def keywords(self, node: Schema, depth: int) -> Schema:
        """Return the keywords of a schema, without its reference."""
        out: Schema = {}
        for key, value in node.items():
            rule = self.rules.get(key)
            if rule is not None:
                rule(self, out, key, value, node, depth + 1)
        return out

    # Each rule below copies one keyword to `out`, or leaves it out.

    def _kind(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list):
            kinds = [kind for kind in dict.fromkeys(v for v in value if isinstance(v, str)) if kind in JSON_TYPES]
            if kinds:
                out["type"] = kinds if len(kinds) > 1 else kinds[0]
        elif isinstance(value, str) and value in JSON_TYPES:
            out["type"] = value

    def _keep(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        out[key] = value

    def _text(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, str) and value:
            out[key] = value

    def _description(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if text := clean(value, self.max_description_chars):
            out[key] = text

    def _anchor(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        # Only for readers: a reference to an anchor has become one to a definition.
        if is_anchor(value):
            out[key] = value

    def _dialect(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if value == DIALECT:
            out[key] = value

    def _flag(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if value is True:
            out[key] = True

    def _number(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if is_finite(value) and (key != "multipleOf" or value > 0) and node.get(EXCLUSIVE_BOUNDS.get(key, "")) is not True:
            out[key] = value

    def _exclusive(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        bound = node.get("minimum" if key == "exclusiveMinimum" else "maximum") if value is True else value
        if is_finite(bound):
            out[key] = bound

    def _count(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if is_finite(value) and value >= 0 and value == int(value):
            # A pattern may have set a stricter limit on the length already.
            known, own = out.get(key, int(value)), int(value)
            out[key] = max(known, own) if key.startswith("min") else min(known, own)

    def _pattern(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if not isinstance(value, str):
            return
        repeated = _REPEATED_CLASS.fullmatch(value)
        if repeated is not None and pattern_states(f"^{repeated['one']}*$") is not None:
            least, most = repeated["least"], repeated["most"] if repeated["open"] else repeated["least"]
            out[key] = f"^{repeated['one']}*$"
            self._count(out, "minLength", int(least), node, depth)
            if most is not None:
                self._count(out, "maxLength", int(most), node, depth)
        elif self._is_usable_pattern(value):
            out[key] = value

    def _is_usable_pattern(self, pattern: str) -> bool:
        usable = pattern_states(pattern) is not None
        if not usable:
            self.loosen(
                f"the pattern {pattern[:MAX_SHOWN_PATTERN_CHARS]!a} is left out: it is not valid, or takes too long"
            )
        return usable

    def _one(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, (dict, bool)):
            out[key] = self.schema(value, depth)

    def _several(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list) and value:
            out[key] = [self.schema(part, depth) for part in value]

    def _items(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list):
            self._several(out, "prefixItems", value, node, depth)
            self._one(out, "items", node.get("additionalItems"), node, depth)
        else:
            self._one(out, key, value, node, depth)

    def _named(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            out[key] = {name: self.schema(part, depth) for name, part in value.items()}

    def _matched(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            usable = {name: part for name, part in value.items() if self._is_usable_pattern(name)}
            self._named(out, key, usable, node, depth)

    def _others(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        # Without a pattern that was left out, a property that it described would be one of the others.
        patterns = node.get("patternProperties")
        if not isinstance(patterns, dict) or all(pattern_states(pattern) is not None for pattern in patterns):
            self._one(out, key, value, node, depth)

    def _required(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        names = list(dict.fromkeys(name for name in value if isinstance(name, str))) if isinstance(value, list) else []
        if names:
            out[key] = names

    def _enum(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, list) and value:
            out[key] = value

    def _needs(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            lists = {name: each for name, each in value.items() if isinstance(each, list)}
            if all(isinstance(name, str) for each in lists.values() for name in each):
                once = {name: list(dict.fromkeys(each)) for name, each in lists.items()}
                out["dependentRequired"] = out.get("dependentRequired", {}) | once

    def _dependencies(self, out: Schema, key: str, value: Any, node: Schema, depth: int) -> None:
        if isinstance(value, dict):
            schemas = {name: self.schema(each, depth) for name, each in value.items() if isinstance(each, (dict, bool))}
            if schemas:
                out["dependentSchemas"] = out.get("dependentSchemas", {}) | schemas
            if len(schemas) < len(value):
                self._needs(out, key, value, node, depth)


def rules(*some: tuple[Rule, Iterable[str]]) -> dict[str, Rule]:
    """Return a table of rules by keyword."""
    return {key: rule for rule, keys in some for key in keys}


COMMON_RULES: Mapping[str, Rule] = rules(
    (SchemaWalk._kind, ("type",)),
    (SchemaWalk._keep, ("const", "default")),
    (SchemaWalk._text, ("format", "contentEncoding", "contentMediaType")),
    (SchemaWalk._description, ("description",)),
    (SchemaWalk._flag, ("deprecated", "uniqueItems")),
    (SchemaWalk._number, ("minimum", "maximum", "multipleOf")),
    (SchemaWalk._exclusive, ("exclusiveMinimum", "exclusiveMaximum")),
    (SchemaWalk._count, ("minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties")),
    (SchemaWalk._count, ("minContains", "maxContains")),
    (SchemaWalk._pattern, ("pattern",)),
    (SchemaWalk._one, ("not", "if", "then", "else", "contains", "propertyNames", "unevaluatedItems")),
    (SchemaWalk._others, ("additionalProperties", "unevaluatedProperties")),
    (SchemaWalk._several, ("allOf", "anyOf", "oneOf", "prefixItems")),
    (SchemaWalk._items, ("items",)),
    (SchemaWalk._named, ("dependentSchemas", "properties")),
    (SchemaWalk._matched, ("patternProperties",)),
    (SchemaWalk._required, ("required",)),
    (SchemaWalk._enum, ("enum",)),
    (SchemaWalk._needs, ("dependentRequired",)),
    (SchemaWalk._dependencies, ("dependencies",)),
)


def is_finite(value: Any) -> bool:
    """Return True for a number that JSON can hold."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def definition_name(text: str) -> str:
    """Return the text as the name of a definition: letters, digits and `_`."""
    name = (
        re.sub(r"[^A-Za-z0-9_]+", "_", text[:MAX_NAME_CHARS].replace("~1", "_").replace("~0", "_")).strip("_") or "Schema"
    )
    return f"_{name}" if name[0].isdigit() else name


MAX_NAME_CHARS = 200
