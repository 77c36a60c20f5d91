"""Bound what a schema costs the validator, before the validator sees it: schemas are written by others.

The validator holds the interpreter lock while it works, so its work must be bounded beforehand. Three things make it slow:
one value that many subschemas apply to (references in `anyOf` multiply: twenty definitions that each name the next one
twice make a million), patterns whose automaton is large, and the sheer size of a schema.

Only the normal form can be bounded, which `sources/schema_normaliser.py` produces: the keywords below, and references of
the form `#/$defs/NAME` to the `$defs` at the top. Any other keyword might be a second way to refer to something.

How often a subschema is evaluated for one value is counted with multiplicity, along every path of references. A path ends
where it comes back to a definition that it went through: every validator must remember what it does there, or it could
not handle a recursive schema and value at all. Ours remembers the result for each such place and value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import jsonschema_rs
import msgspec

MAX_BRANCHES = 2000
MAX_PATTERN_STATES = 4096
MAX_SCHEMA_SIZE = 25_000
MAX_STATES_OF_ONE_PATTERN = 1024
MAX_PATTERN_CHARS = 1000
MAX_UNICODE_CLASSES = 20
MAX_STEPS = 100_000
MAX_ATTEMPTS = 4
UNBOUNDED = 10**9

TOO_MANY_BRANCHES = "has too many alternatives to try"
TOO_MANY_STATES = "has patterns that take too long to match"
REFERS_TO_ITSELF = "refers to itself for the same value"
TOO_ENTANGLED = "has too many combinations of alternatives"
TOO_LARGE = "is too large"

BYTES_PER_STATE = 64
"""About the size of one state of a compiled pattern."""
MIN_PATTERN_STATES = 16
STATES_PER_KEYWORD = 4
"""So many states of a pattern take as long to compile as one keyword."""
DATA_BYTES_PER_KEYWORD = 12
"""So many bytes of JSON in `enum`, `const` and the like take as long to compile as one keyword."""
TEXT_CHARS_PER_KEYWORD = 250

SCHEMA_LISTS = ("allOf", "anyOf", "oneOf")
"""Keywords with several schemas for the same value."""
SINGLE_SCHEMAS = ("not", "if", "then", "else")
"""Keywords with one schema for the same value."""
REPEATING_KEYWORDS = (*SCHEMA_LISTS, *SINGLE_SCHEMAS, "dependentSchemas", "patternProperties", "contains")
"""Keywords that can make several schemas apply to one value."""
REVISITING_KEYWORDS = ("unevaluatedProperties", "unevaluatedItems")
"""Keywords that make the validator look at the schemas for the same value again."""
REVISITS = 8
APPLICATORS = frozenset(
    {*REPEATING_KEYWORDS, *REVISITING_KEYWORDS, "$ref", "properties", "additionalProperties", "propertyNames"}
    | {"items", "prefixItems"}
)
ASSERTIONS = frozenset(
    {"type", "const", "enum", "required", "dependentRequired", "pattern", "multipleOf", "minimum", "maximum"}
    | {"exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "uniqueItems"}
    | {"minProperties", "maxProperties", "minContains", "maxContains"}
)
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "format"}
    | {"contentEncoding", "contentMediaType", "$schema", "$anchor"}
)
KEYWORDS = APPLICATORS | ASSERTIONS | ANNOTATIONS
"""Every keyword of the normal form, apart from `$defs` at the top."""
DATA_KEYWORDS = frozenset({"const", "enum", "required", "dependentRequired", "default", "examples", "description", "title"})
"""Keywords whose values can be of any length, and hold no schemas."""
SHAPES: Mapping[str, type] = (
    dict.fromkeys(("properties", "patternProperties", "dependentSchemas", "dependentRequired"), dict)
    | dict.fromkeys((*SCHEMA_LISTS, "prefixItems", "enum", "required"), list)
    | {"pattern": str, "$ref": str}
)
"""The types of the keywords that the cost is computed from."""
REFERENCE_PREFIX = "#/$defs/"
DIALECT = "https://json-schema.org/draft/2020-12/schema"
"""The only value of `$schema` in the normal form: another one would change what the keywords mean."""
_ANCHOR = re.compile(r"[A-Za-z_][\w.-]{0,99}", re.ASCII)

_NAMES_PER_BRANCH = 8
"""Looking up so many required names takes as long as evaluating one small schema."""


class SchemaCost(NamedTuple):
    """What a schema may cost: `UNBOUNDED` where it is not in the normal form, or where no bound was found.

    `branches` is how many subschemas are evaluated for one value, at the worst place; 50 ns each. `pattern_states` is the
    size of the patterns that one string or property name is matched against, at the worst place; 15 ns each for every
    character. `size` is how many keywords the validator compiles, and data and patterns as large as those; 1.5 µs each.
    """

    branches: int
    pattern_states: int
    size: int

    @property
    def problem(self) -> str | None:
        """Why the schema must not reach the validator; None when it may."""
        if self.branches > MAX_BRANCHES:
            return TOO_MANY_BRANCHES
        if self.pattern_states > MAX_PATTERN_STATES:
            return TOO_MANY_STATES
        return TOO_LARGE if self.size > MAX_SCHEMA_SIZE else None


class Applied(NamedTuple):
    """A schema that is evaluated `times` times for one value. `path` is the set of definitions that led to it, as bits."""

    schema: Any
    path: int
    times: int


class Excess(NamedTuple):
    """A value that costs too much, and why.

    `entry` are the schemas that apply to it from outside, `here` are also those that they lead to, and `around` are the
    schemas that apply to the value that it is part of. `attempt` counts how often they were made cheaper in vain.
    """

    problem: str
    attempt: int
    entry: list[dict[str, Any]]
    here: list[dict[str, Any]]
    around: list[dict[str, Any]]


def schema_cost(schema: Mapping[str, Any]) -> SchemaCost:
    """Return the cost of a schema in the normal form, computed on exactly what is given."""
    defs = schema.get("$defs", {})
    if not isinstance(defs, dict):
        return SchemaCost(UNBOUNDED, UNBOUNDED, UNBOUNDED)
    root = {key: value for key, value in schema.items() if key != "$defs"}
    size = 0
    for piece in (root, *defs.values()):
        for each in subschemas_of(piece):
            if not is_normal(each, defs):
                return SchemaCost(UNBOUNDED, UNBOUNDED, UNBOUNDED)
            size += size_of(each)
            if size > MAX_SCHEMA_SIZE:
                return SchemaCost(UNBOUNDED, UNBOUNDED, size)
    explorer = CostExplorer(defs)
    explorer.explore(root)
    return SchemaCost(explorer.branches, explorer.pattern_states, size)


def is_normal(schema: Mapping[str, Any], defs: Container[str]) -> bool:
    """Return True when a schema has only keywords of the normal form, and refers only to a name in `defs`.

    The schemas in it are not looked at.
    """
    if not KEYWORDS.issuperset(schema) or not all(isinstance(schema[key], SHAPES[key]) for key in SHAPES.keys() & schema):
        return False
    if schema.get("$schema", DIALECT) != DIALECT or not ("$anchor" not in schema or is_anchor(schema["$anchor"])):
        return False
    if "dependentRequired" in schema and not all(isinstance(names, list) for names in schema["dependentRequired"].values()):
        return False
    if not all(isinstance(each, (dict, bool)) for each in below(schema)):
        return False
    name = reference_of(schema)
    return name is None or (
        schema["$ref"] == REFERENCE_PREFIX + name and name in defs and name.isascii() and name.replace("_", "").isalnum()
    )


def is_anchor(value: Any) -> bool:
    """Return True for a short name without a slash. No reference of the normal form leads to an anchor."""
    return isinstance(value, str) and _ANCHOR.fullmatch(value) is not None


def size_of(schema: Mapping[str, Any]) -> int:
    """Return what one schema adds to the size, without the schemas in it."""
    size = 1 + len(schema) + ("$ref" in schema)  # a reference takes as long as two keywords
    for key in DATA_KEYWORDS.intersection(schema):
        value = schema[key]
        if isinstance(value, str):
            size += len(value) // TEXT_CHARS_PER_KEYWORD
        elif value:
            size += len(msgspec.json.encode(value)) // DATA_BYTES_PER_KEYWORD
    if "pattern" in schema or "patternProperties" in schema:
        size += sum(pattern_states(pattern) or UNBOUNDED for pattern in patterns_of(schema)) // STATES_PER_KEYWORD
    return size


@lru_cache(maxsize=4096)
def pattern_states(pattern: str) -> int | None:
    """Return the size of a pattern's automaton in states, rounded up; None when it is too large or not linear in time.

    The engine itself is asked how large the pattern becomes: `(?:x{1,50}){1,50}` is short and has 2,500 states.
    """
    if len(pattern) > MAX_PATTERN_CHARS or pattern.count("\\p") + pattern.count("\\P") > MAX_UNICODE_CLASSES:
        return None
    found, states = None, MAX_STATES_OF_ONE_PATTERN
    while states >= MIN_PATTERN_STATES:
        options = jsonschema_rs.RegexOptions(size_limit=states * BYTES_PER_STATE)
        try:
            jsonschema_rs.validator_for({"pattern": pattern}, pattern_options=options, validate_formats=False)
        except (ValueError, UnicodeError):
            break
        found, states = states, states // 4
    return found


def patterns_of(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the patterns of one schema, without those of the schemas in it."""
    if "pattern" in schema:
        yield schema["pattern"]
    yield from schema.get("patternProperties", ())


def subschemas_of(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield a schema and all schemas in it. References are not followed, and booleans are left out."""
    waiting = [schema]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += below(node)


def below(node: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas directly in a schema, for the same value or for its parts."""
    for key in APPLICATORS.intersection(node):
        value = node[key]
        if key in ("properties", "patternProperties", "dependentSchemas"):
            yield from value.values() if isinstance(value, dict) else ()
        elif isinstance(value, list):
            yield from value
        elif key != "$ref":
            yield value


def reference_of(node: Mapping[str, Any]) -> str | None:
    """Return the name of the definition that a schema in the normal form refers to."""
    reference = node.get("$ref")
    return reference.removeprefix(REFERENCE_PREFIX) if isinstance(reference, str) else None


class CostExplorer:
    """Finds every combination of schemas that can apply to one value, starting from the whole arguments.

    `relax` is called where a value costs too much, and must make the given schemas cheaper. Without it, the cost is
    UNBOUNDED from then on.
    """

    def __init__(
        self, defs: Mapping[str, Any], relax: Callable[[Excess], None] | None = None, max_steps: int = MAX_STEPS
    ) -> None:
        self._defs = defs
        self._relax = relax
        self._max_steps = max_steps
        self._bits = {name: 1 << index for index, name in enumerate(recursive_names(defs))}
        self._seen: set[Any] = set()
        self._steps = 0
        self.branches = 0
        self.pattern_states = 0

    def explore(self, root: Any) -> None:
        """Add the values that a schema may be applied to. What was explored from another root is not explored again."""
        waiting: list[tuple[list[Applied], list[dict[str, Any]]]] = [([Applied(root, 0, 1)], [])]
        while waiting and self.branches < UNBOUNDED:
            entry, around = waiting.pop()
            applied = self._settle(entry, around)
            nodes = [each.schema for each in applied]
            for child in children(applied):
                if self._is_new(child):
                    waiting.append((child, nodes))

    def _is_new(self, entry: list[Applied]) -> bool:
        if len(entry) == 1:
            schema, _, times = entry[0]
            if type(schema) is not dict or (APPLICATORS.isdisjoint(schema) and times == 1 and "pattern" not in schema):
                self.branches = max(self.branches, times * (weight(schema) if type(schema) is dict else 1))
                return self.branches > MAX_BRANCHES
            if times == 1:  # whatever led here, it is evaluated once
                entry[0] = Applied(schema, 0, 1)
        total: dict[tuple[int, int], int] = {}
        for schema, path, times in entry:
            total[id(schema), path] = total.get((id(schema), path), 0) + times
        key = frozenset(total.items())
        if key in self._seen:
            return False
        self._seen.add(key)
        return True

    def _settle(self, entry: list[Applied], around: list[dict[str, Any]]) -> list[Applied]:
        """Return all schemas that apply to the value, made cheaper where they cost too much."""
        for attempt in range(MAX_ATTEMPTS):
            applied, branches, states, problem = self._applied(entry)
            if problem is None:
                self.branches = max(self.branches, branches)
                self.pattern_states = max(self.pattern_states, states)
                return applied
            if self._relax is None:
                self.branches = self.pattern_states = UNBOUNDED
                break
            outer = [each.schema for each in entry if type(each.schema) is dict]
            self._relax(Excess(problem, attempt, outer, [each.schema for each in applied], around))
        return []

    def _applied(self, entry: list[Applied]) -> tuple[list[Applied], int, int, str | None]:
        """Return the schemas that apply, how many evaluations they take, their patterns' states, and what is too much."""
        found: dict[tuple[int, int], Applied] = {}
        branches = states = 0
        problem = None
        waiting = [(schema, path, 0, times) for schema, path, times in entry]
        while waiting and problem is None:
            schema, path, here, times = waiting.pop()
            self._steps += 1
            if type(schema) is not dict:
                branches += times
                continue
            known = found.get((id(schema), path))
            found[id(schema), path] = Applied(schema, path, times + (known.times if known else 0))
            branches += times * weight(schema)
            if "pattern" in schema or "patternProperties" in schema:
                states += times * sum(pattern_states(pattern) or UNBOUNDED for pattern in patterns_of(schema))
            for member in _members(schema):
                waiting.append((member, path, here, times * _visits(schema)))
            name = reference_of(schema)
            if name is not None:
                bit = self._bits.get(name, 0)
                if here & bit:
                    problem = REFERS_TO_ITSELF
                elif path & bit:
                    branches += times
                else:
                    waiting.append((self._defs[name], path | bit, here | bit, times * _visits(schema)))
            problem = problem or self._excess(branches, states)
        return list(found.values()), branches, states, problem

    def _excess(self, branches: int, states: int) -> str | None:
        if branches > MAX_BRANCHES:
            return TOO_MANY_BRANCHES
        if states > MAX_PATTERN_STATES:
            return TOO_MANY_STATES
        return TOO_ENTANGLED if self._steps > self._max_steps else None


def weight(schema: Mapping[str, Any]) -> int:
    """Return what evaluating one schema costs by itself, in evaluations of a small schema."""
    cost = 1
    if "required" in schema or "dependentRequired" in schema:
        names = len(schema.get("required", ())) + sum(
            1 + len(each) for each in schema.get("dependentRequired", {}).values()
        )
        cost += names // _NAMES_PER_BRANCH
    if "enum" in schema:  # the validator looks up strings, and compares other values one by one
        cost += sum(type(value) is not str for value in schema["enum"])
    return cost


def children(applied: Sequence[Applied]) -> Iterator[list[Applied]]:
    """Yield what applies to each part of a value that these schemas apply to: its properties, their names, its items."""
    yield from _property_children([each for each in applied if not _OBJECT_KEYWORDS.isdisjoint(each.schema)])
    yield from _item_children([each for each in applied if not _ARRAY_KEYWORDS.isdisjoint(each.schema)])


_OBJECT_KEYWORDS = frozenset(
    {"properties", "additionalProperties", "patternProperties", "propertyNames", "unevaluatedProperties"}
)
_ARRAY_KEYWORDS = frozenset({"items", "prefixItems", "contains", "unevaluatedItems"})


def _property_children(applied: Sequence[Applied]) -> Iterator[list[Applied]]:
    # Which patterns match a name is not decided here: every one might.
    everywhere: list[Applied] = []
    names: dict[str, None] = {}
    for schema, path, times in applied:
        names.update(dict.fromkeys(schema.get("properties", ())))
        everywhere += [Applied(each, path, times) for each in schema.get("patternProperties", {}).values()]
    everywhere += _at("unevaluatedProperties", applied)
    for name in names:
        own: list[Applied] = []
        for schema, path, times in applied:
            properties = schema.get("properties", {})
            if name in properties:
                own.append(Applied(properties[name], path, times))
            elif "additionalProperties" in schema:
                own.append(Applied(schema["additionalProperties"], path, times))
        yield own + everywhere
    others = _at("additionalProperties", applied) + everywhere
    yield from (each for each in (others, _at("propertyNames", applied)) if each)


def _at(key: str, applied: Sequence[Applied]) -> list[Applied]:
    return [Applied(schema[key], path, times) for schema, path, times in applied if key in schema]


def _item_children(applied: Sequence[Applied]) -> Iterator[list[Applied]]:
    everywhere = _at("contains", applied) + _at("unevaluatedItems", applied)
    longest = max((len(schema.get("prefixItems", ())) for schema, *_ in applied), default=0)
    for index in range(longest + 1):
        own: list[Applied] = []
        for schema, path, times in applied:
            first = schema.get("prefixItems", ())
            if index < len(first):
                own.append(Applied(first[index], path, times))
            elif "items" in schema:
                own.append(Applied(schema["items"], path, times))
        if own or everywhere:
            yield own + everywhere


def _members(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas in this one that apply to the same value."""
    for key in SCHEMA_LISTS:
        if key in schema:
            yield from schema[key]
    for key in SINGLE_SCHEMAS:
        if key in schema:
            yield schema[key]
    if "dependentSchemas" in schema:
        yield from schema["dependentSchemas"].values()


def _visits(schema: Mapping[str, Any]) -> int:
    return REVISITS if any(key in schema for key in REVISITING_KEYWORDS) else 1


def recursive_names(defs: Mapping[str, Any]) -> list[str]:
    """Return the definitions that lead back to themselves, and those that lie between two such definitions."""
    uses = {name: references_in(schema) & defs.keys() for name, schema in defs.items()}
    users: dict[str, set[str]] = {name: set() for name in defs}
    for name, used in uses.items():
        for each in used:
            users[each].add(name)
    for onward, backward in ((uses, users), (users, uses)):
        ends = [name for name, others in onward.items() if not others]
        while ends:
            end = ends.pop()
            del onward[end]
            for other in backward.pop(end):
                onward[other].discard(end)
                if not onward[other]:
                    ends.append(other)
        for others in backward.values():
            others.intersection_update(onward)
    return list(uses)


def references_in(schema: Any) -> set[str]:
    """Return the names of the definitions that a schema refers to, itself or in the schemas in it."""
    return {name for node in subschemas_of(schema) if (name := reference_of(node)) is not None}
