"""Bound what validating the arguments of a document's operations costs, over all schemas that they refer to."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from gloveport.sources.compiled_definition import shared_schema_names
from gloveport.sources.openapi.compile.document.document import Warn
from gloveport.sources.schemas.loosening import CostLoosener, SizeLoosener, allow_more_where_negated

MAX_PLAIN_BYTES = 8000

# Without one of these, each value is checked against one schema, which has no pattern.
_COSTLY = re.compile(
    rb'"(?:\$ref|allOf|anyOf|oneOf|not|if|dependentSchemas|patternProperties|contains|unevaluated\w+|pattern)":'
)


class ArgumentSchemas:
    """The schemas of arguments that may cost the validator much, by address. Only these are kept in memory."""

    def __init__(self, warn: Warn) -> None:
        self._warn = warn
        self._roots: dict[str, dict[str, Any]] = {}
        self.loosened: set[str] = set()
        """The addresses and the names of shared schemas that accept more than the document says."""

    def add(self, address: str, schema: dict[str, Any], *, loosened: bool) -> None:
        """Note the schema of a tool's arguments; `bound` may change it."""
        text = msgspec.json.encode(schema)
        if len(text) > MAX_PLAIN_BYTES or _COSTLY.search(text):
            self._roots[address] = schema
        if loosened:
            self.loosened.add(address)

    def bound(self, shared: Mapping[str, bytes]) -> dict[str, bytes]:
        """Loosen what costs too much, in the schemas that were added; return the shared schemas that changed."""
        definitions = self._reached(shared)
        costs = CostLoosener(definitions)
        for root in self._roots.values():
            costs.loosen(root)
        problems = costs.loosened(self._roots) | costs.loosened(definitions)
        sizes = SizeLoosener(definitions)
        for address, root in self._roots.items():
            if problem := sizes.loosen(root):
                problems[address] = problem
        for name, problem in problems.items():
            self._warn(name, f"the schema {problem}; it accepts more than the document says")
        changed = set(problems)
        loosened = changed | self.loosened
        if loosened:
            changed |= allow_more_where_negated({**self._roots, **definitions}, loosened)
        return {name: msgspec.json.encode(definitions[name]) for name in changed & definitions.keys()}

    def _reached(self, shared: Mapping[str, bytes]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        waiting = [name for root in self._roots.values() for name in shared_schema_names(msgspec.json.encode(root))]
        while waiting:
            name = waiting.pop()
            if name not in found and name in shared:
                found[name] = msgspec.json.decode(shared[name])
                waiting += shared_schema_names(shared[name])
        return found
