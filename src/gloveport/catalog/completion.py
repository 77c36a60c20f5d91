"""What can follow at a place of a program: tools and namespaces after a dot, arguments in a call, values of an argument."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal

from gloveport.catalog.call_position import Bracket, CallPosition, position_at
from gloveport.catalog.catalog import Catalog
from gloveport.catalog.python_stubs import PythonTypes
from gloveport.catalog.typescript_stubs import (
    IDENTIFIER,
    MAX_ENUM_VALUES,
    MAX_PROPERTIES,
    TypeScriptTypes,
    clean,
    required_names,
    resolve,
    schema_comment,
    signature,
    tool_comment,
)
from gloveport.types import Language, Tool

MAX_OPTIONS = 100
MAX_DETAIL_CHARS = 160
MAX_SCHEMA_STEPS = 200  # references and unions that are followed for one completion
ROOTS = ("tools", "codemode")


@dataclass(frozen=True, slots=True)
class CompletionOption:
    """One thing that can follow: its label, the text to insert, its type, and what its definition says about it."""

    label: str
    kind: Literal["namespace", "tool", "argument", "value"]
    insert: str
    detail: str = ""
    info: str = ""


@dataclass(frozen=True, slots=True)
class Completion:
    """What can replace the text from `start` to the cursor."""

    start: int
    options: tuple[CompletionOption, ...]


def complete(catalog: Catalog, code: str, offset: int, language: Language) -> Completion | None:
    """Return what can follow at an offset of a program; None where nothing is known."""
    at = position_at(code, offset, language)
    if at is None:
        return None
    if at.kind == "member":
        options: Iterable[CompletionOption] = _members(catalog, at, language)
    else:
        options = (*_in_call(catalog, at, language), *(() if at.quoted else _roots(catalog, at)))
    found = tuple(islice(options, MAX_OPTIONS))
    return Completion(at.start, found) if found else None


def _roots(catalog: Catalog, at: CallPosition) -> Iterator[CompletionOption]:
    if len(at.word) > 0:
        names = ("tools", *sorted(catalog.roots))
        yield from (CompletionOption(name, "namespace", name) for name in names if name.startswith(at.word))


def _members(catalog: Catalog, at: CallPosition, language: Language) -> Iterator[CompletionOption]:
    """Yield what is below a namespace: names that begin with the word first, then those that contain it."""
    path = _path(catalog, at.chain)
    if path is None:
        return
    word, names = at.word.lower(), sorted(catalog.names(path))
    first = [name for name in names if name.lower().startswith(word)]
    others = [name for name in names if word in name.lower() and not name.lower().startswith(word)]
    for name in islice((*first, *others), MAX_OPTIONS):
        below = f"{path}.{name}" if path else name
        tool = catalog.find(below)
        if tool is None:
            yield CompletionOption(name, "namespace", name)
        else:
            yield CompletionOption(name, "tool", name, _shortened(_signature(tool, language)), clean(tool_comment(tool)))


def _signature(tool: Tool, language: Language) -> str:
    if language != "python":
        return signature(tool)
    required = required_names(tool.input_schema)
    listed = [name if name in required else f"{name}=…" for name in tool.parameters]
    return f"({', '.join(listed)})"


def _path(catalog: Catalog, chain: Sequence[str]) -> str | None:
    """Return the path of a namespace or tool that a chain of names reads; None for a chain that reads something else."""
    if not chain or (chain[0] not in ROOTS and chain[0] not in catalog.roots):
        return None
    return ".".join(chain[1:] if chain[0] in ROOTS else chain)


def _in_call(catalog: Catalog, at: CallPosition, language: Language) -> Iterator[CompletionOption]:
    """Yield the arguments that the innermost bracket can still have, or the values of the one that it has begun."""
    called = next((index for index in reversed(range(len(at.brackets))) if at.brackets[index].chain), None)
    if called is None:
        return
    path = _path(catalog, at.brackets[called].chain)
    tool = catalog.find(path) if path else None
    if tool is None or tool.takes != "object":
        return
    schemas = _Schemas(tool.input_schema)
    schema = schemas.at(at.brackets[called:], language)
    if schema is None:
        return
    inside = at.brackets[-1]
    writer = _Writer(tool, language)
    if inside.key is not None or inside.mark == "[":
        yield from _values(at, schemas, schema if inside.mark == "[" else schemas.member(schema, inside.key), language)
    elif not at.quoted or (language == "python" and inside.mark == "{"):
        yield from _arguments(at, schemas.members(schema), schemas.required(schema), writer)


def _arguments(
    at: CallPosition, members: Mapping[str, Any], required: frozenset[str], writer: _Writer
) -> Iterator[CompletionOption]:
    inside = at.brackets[-1]
    names = [name for name in members if name not in inside.keys and at.word.lower() in name.lower()]
    for name in sorted(names, key=lambda name: name not in required):
        kind = writer.type_of(members[name])
        mark = "" if name in required else "?"
        text = writer.key(name, inside, quoted=at.quoted)
        if text is not None:
            about = clean(schema_comment(members[name]))
            yield CompletionOption(name, "argument", text, _shortened(f"{mark}: {kind}"), about)


def _values(at: CallPosition, schemas: _Schemas, schema: Any, language: Language) -> Iterator[CompletionOption]:
    for value in schemas.values(schema):
        shown = json.dumps(value, ensure_ascii=False)
        if language == "python" and (value is None or isinstance(value, bool)):
            shown = repr(value)
        if at.quoted and isinstance(value, str):
            yield CompletionOption(value, "value", shown[1:-1])
        elif not at.quoted:
            yield CompletionOption(shown, "value", shown)


class _Writer:
    """Writes the types and keys of a tool's arguments in the language of a program."""

    def __init__(self, tool: Tool, language: Language) -> None:
        self._tool, self._python = tool, language == "python"
        self._typescript = TypeScriptTypes(tool.input_schema, dates="Date | string", binary="Uint8Array | string")

    def type_of(self, schema: Any) -> str:
        """Return the type of an argument."""
        if self._python:
            return PythonTypes().of(schema, self._tool.input_schema, "Argument", taken=True)
        return self._typescript.of(schema, "")

    def key(self, name: str, inside: Bracket, *, quoted: bool) -> str | None:
        """Return a key with what separates it from its value; None where the language can't write it."""
        if self._python and inside.mark == "(":
            return f"{name}=" if name.isidentifier() else None
        if quoted:
            return json.dumps(name)[1:-1]
        plain = not self._python and IDENTIFIER.match(name)
        return f"{name if plain else json.dumps(name)}: "


class _Schemas:
    """The parts of one schema, through its references and unions, within a budget of steps."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._left = MAX_SCHEMA_STEPS

    def at(self, brackets: Sequence[Bracket], language: Language) -> Any:
        """Return the schema of what the last of these brackets holds; the first is that of the call."""
        call, *inner = brackets
        if call.items and language != "python":
            return None
        if not inner:
            return self._root if language == "python" else None
        schema: Any = self._root
        if call.key is not None:
            schema = self.member(schema, call.key)
        elif inner[0].mark != "{" or call.items:
            return None
        for outer, bracket in zip(inner, [*inner[1:], None], strict=True):
            schema = self._items(schema) if outer.mark == "[" else schema if outer.mark == "{" else None
            if bracket is not None and outer.mark == "{":
                schema = self.member(schema, outer.key)
            if schema is None:
                return None
        return schema

    def member(self, schema: Any, name: str | None) -> Any:
        """Return the schema of a property, or None."""
        return None if name is None else self.members(schema).get(name)

    def members(self, schema: Any) -> dict[str, Any]:
        """Return the properties of a schema, of its references and of all branches of its unions."""
        found: dict[str, Any] = {}
        for part in self._parts(schema):
            properties = part.get("properties")
            for name, member in islice(properties.items() if isinstance(properties, Mapping) else (), MAX_PROPERTIES):
                found.setdefault(name, member)
        return found

    def required(self, schema: Any) -> frozenset[str]:
        """Return the properties that a schema requires."""
        return frozenset(name for part in self._parts(schema) for name in required_names(part))

    def values(self, schema: Any) -> list[Any]:
        """Return the values that a schema lists."""
        found: list[Any] = []
        for part in self._parts(schema):
            if "const" in part:
                found.append(part["const"])
            if isinstance(part.get("enum"), Sequence):
                found += part["enum"][:MAX_ENUM_VALUES]
            if part.get("type") == "boolean":
                found += [True, False]
        return [value for value in found if value is None or isinstance(value, (str, int, float))][:MAX_ENUM_VALUES]

    def _items(self, schema: Any) -> Any:
        return next((part["items"] for part in self._parts(schema) if "items" in part), None)

    def _parts(self, schema: Any) -> Iterator[Mapping[str, Any]]:
        waiting = [schema]
        while waiting and self._left > 0:
            self._left -= 1
            part = waiting.pop(0)
            if not isinstance(part, Mapping):
                continue
            if "$ref" in part:
                waiting.append(resolve(self._root, part["$ref"]))
                continue
            yield part
            for word in ("allOf", "anyOf", "oneOf"):
                listed = part.get(word)
                waiting += islice(listed, MAX_ENUM_VALUES) if isinstance(listed, Sequence) else ()


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_DETAIL_CHARS else line[: MAX_DETAIL_CHARS - 1] + "…"
