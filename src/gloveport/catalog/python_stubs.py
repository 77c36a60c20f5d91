"""Write tools as documented Python: for agents to read, and for the type checker to check programs against.

Objects become TypedDicts, because a Python program gets dicts: `issue["title"]`. As in `typescript_stubs`, definitions come
from others: they are shown as data, within a budget.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from gloveport.catalog.typescript_stubs import (
    MAX_DEPTH,
    MAX_ENUM_VALUES,
    MAX_NODES,
    MAX_PROPERTIES,
    clean,
    required_names,
    resolve,
    schema_comment,
    tool_comment,
)
from gloveport.types import Tool

HEAD = "from datetime import datetime\nfrom typing import Any, Literal, NotRequired, TypedDict\n"
RESERVED_TYPE_NAMES = frozenset(
    {"Any", "Literal", "NotRequired", "ToolError", "TypedDict", "datetime", "tools", "codemode"}
)
# A tool may be called `list`: for the type checker, built-in types in its class get aliases.
BUILTINS = ("list", "dict", "str", "int", "float", "bool", "bytes")
ALIASES = "".join(f"_{name} = {name}\n" for name in BUILTINS)
_BUILTIN_NAME = re.compile(rf"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|\b({"|".join(BUILTINS)})\b(?!\s*:)""")
PRIMITIVES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}


def declaration(tools: Iterable[tuple[str, Tool]], *, checked: bool = False) -> str:
    """Return one `class tools` for the tools, each under the path that programs write, after the types that it uses.

    With `checked`, the text is for a type checker: without docstrings, it allows what the bridge allows, and a name that is
    not declared has the type Any.
    """
    tree: dict[str, Any] = {}
    listed = list(tools)
    types = PythonTypes(frozenset(part for path, _ in listed for part in path.split(".")))
    for path, tool in listed:
        *above, leaf = path.split(".")
        node = tree
        for part in above:
            inner = node.setdefault(part, {})
            node = inner if isinstance(inner, dict) else node
        node[leaf] = _method(leaf, path, tool, types, checked=checked)
    kind = "(metaclass=_Open)" if checked else ""
    body = _members(tree, "    ", kind)
    return "".join(f"{text}\n\n" for text in types.classes.values()) + f"class tools{kind}:\n{body}"


def _members(tree: Mapping[str, Any], indent: str, kind: str) -> str:
    if not tree:
        return f"{indent}...\n"
    out = []
    for name, node in tree.items():
        if isinstance(node, str):
            out.append("".join(f"{indent}{line}\n" if line else "\n" for line in node.splitlines()))
        else:
            out.append(f"{indent}class {name}{kind}:\n{_members(node, indent + '    ', kind)}")
    return "".join(out)


def _method(name: str, path: str, tool: Tool, types: PythonTypes, *, checked: bool) -> str:
    root, title = tool.input_schema, "".join(part[:1].upper() + part[1:] for part in re.split(r"\W|_", path))
    result = types.of(tool.output_schema, tool.output_schema, f"{title}Result") if tool.output_schema is not None else "Any"
    required = required_names(root)
    properties = dict(islice((root.get("properties") or {}).items(), MAX_PROPERTIES))
    is_cut = len(properties) < len(root.get("properties") or {})
    rows = []
    for key in properties if checked else sorted(properties, key=lambda key: key not in required):
        kind = types.of(properties[key], root, f"{title}{_title(key)}", taken=True)
        rows.append((key, kind if key in required else f"{kind} = ...", schema_comment(properties[key])))
    all_writable = all(key.isidentifier() and not keyword.iskeyword(key) for key in properties)
    rest = "**more: Any" if root.get("additionalProperties") not in (None, False) or is_cut or not all_writable else ""
    writable = [(key, kind) for key, kind, _ in rows if key.isidentifier() and not keyword.iskeyword(key)]
    listed = _checked_parameters(writable, all_writable) if checked else [f"{key}: {kind}" for key, kind in writable]
    if tool.takes != "object":
        listed, rest = ["*args: Any"] if checked else [], "" if checked else "*args: Any"
    given = ", ".join([*(["*"] if listed and not checked else []), *listed, *([rest] if rest else [])])
    text = "\n".join([clean(tool_comment(tool)), *(f"{key}: {note}" for key, _, note in rows if note)]).strip()
    doc = f'    """{_quoted(text)}"""' if text else "    ..."
    if checked:
        given, result = _alias_builtins(given), _alias_builtins(result)
    head = f"@staticmethod\nasync def {name}({given}) -> {result}:\n"
    return f"{head}    ..." if checked else head + _indented(doc)


def _checked_parameters(rows: Sequence[tuple[str, str]], all_writable: bool) -> list[str]:
    """Return the parameters of every call that the bridge accepts: keywords, one dict, or values in the schema's order.

    A call in one form leaves out the parameters of the others, so none of them is required.
    """
    if not rows or not all_writable:
        return ["*values: Any", *(f"{key}: {kind.removesuffix(' = ...')} = ..." for key, kind in rows)]
    (first, kind), *others = [(key, kind.removesuffix(" = ...")) for key, kind in rows]
    return [f"{first}: {kind} | dict[str, Any] = ...", *(f"{key}: {kind} = ..." for key, kind in others)]


def _alias_builtins(types: str) -> str:
    return _BUILTIN_NAME.sub(lambda found: f"_{found[1]}" if found[1] else found[0], types)


class PythonTypes:
    """Writes the types of schemas, each class once, within a budget of nodes; `Any` beyond that."""

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self._taken = taken  # names of tools, which would hide a type of the same name
        self.classes: dict[str, str] = {}
        self._named: dict[tuple[int, str, bool], str] = {}
        self._promised: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._left = 0

    def of(self, schema: Any, root: Any, title: str, *, taken: bool = False) -> str:
        """Return the Python type of a schema; `taken` is for parameters, which accept more types than results have."""
        self._left = MAX_NODES
        return self._of(schema, root, title, taken, 0)

    def _of(self, schema: Any, root: Any, title: str, taken: bool, depth: int) -> str:
        self._left -= 1
        if not isinstance(schema, Mapping) or self._left < 0 or depth > MAX_DEPTH:
            return "Any"
        if "$ref" in schema:
            return self._reference(schema["$ref"], root, taken, depth)
        found = self._without_nullable(schema, root, title, taken, depth)
        return f"{found} | None" if schema.get("nullable") is True and found != "Any" else found

    def _reference(self, target: Any, root: Any, taken: bool, depth: int) -> str:
        key = (id(root), str(target), taken)
        if key in self._named:
            return self._named[key]
        schema = resolve(root, target)
        if schema is None:
            return "Any"
        title = self._free(_title(str(target).rpartition("/")[2]))
        self._named[key] = f'"{title}"'  # its own members may refer to it
        self._promised.add(title)
        kind = self._named[key] = self._of(schema, root, title, taken, depth + 1)
        if title in self._promised:  # it is no object and got no class, but its members may refer to one
            self._promised.discard(title)
            self.classes[title] = f"{title} = Any"
        return kind

    def _without_nullable(self, schema: Mapping[str, Any], root: Any, title: str, taken: bool, depth: int) -> str:
        if "const" in schema:
            return _literals([schema["const"]])
        if isinstance(schema.get("enum"), Sequence):
            return _literals(schema["enum"][:MAX_ENUM_VALUES])
        for word in ("anyOf", "oneOf"):
            if isinstance(schema.get(word), Sequence) and schema[word]:
                members = [self._of(one, root, f"{title}{n or ''}", taken, depth + 1) for n, one in enumerate(schema[word])]
                return _union(members)
        if isinstance(schema.get("allOf"), Sequence) and schema["allOf"]:
            return self._all_of(schema, root, title, taken, depth)
        kind = schema.get("type")
        if kind is None and "properties" not in schema:
            return "Any"
        kinds = kind if isinstance(kind, Sequence) and not isinstance(kind, str) else [kind or "object"]
        return _union([self._typed(one, schema, root, title, taken, depth) for one in kinds])

    def _all_of(self, schema: Mapping[str, Any], root: Any, title: str, taken: bool, depth: int) -> str:
        """Merge objects into one. Otherwise return the only member, or Any."""
        merged: dict[str, Any] = {"type": "object", "properties": {}, "required": []}
        for part in (*schema["allOf"], schema):
            one = resolve(root, part["$ref"]) if isinstance(part, Mapping) and "$ref" in part else part
            if not isinstance(one, Mapping):
                return "Any"
            if "properties" not in one and one is not schema:
                return self._of(part, root, title, taken, depth + 1) if len(schema["allOf"]) == 1 else "Any"
            merged["properties"] |= one.get("properties") or {}
            merged["required"] += one.get("required") or []
        return self._object(merged, root, title, taken, depth)

    def _typed(self, kind: Any, schema: Mapping[str, Any], root: Any, title: str, taken: bool, depth: int) -> str:  # noqa: PLR0917
        if kind == "array":
            prefix = schema.get("prefixItems")
            if isinstance(prefix, Sequence) and prefix:
                return "list[Any]"
            return f"list[{self._of(schema.get('items', True), root, f'{title}Item', taken, depth + 1)}]"
        if kind == "object":
            return self._object(schema, root, title, taken, depth)
        if kind == "string":
            if schema.get("contentEncoding") == "base64" or schema.get("format") == "binary":
                return "bytes | str" if taken else "bytes"
            return "str | datetime" if taken and schema.get("format") == "date-time" else "str"
        return PRIMITIVES.get(str(kind), "Any")

    def _object(self, schema: Mapping[str, Any], root: Any, title: str, taken: bool, depth: int) -> str:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or not properties:
            rest = schema.get("additionalProperties", True)
            kind = self._of(rest, root, f"{title}Value", taken, depth + 1) if isinstance(rest, Mapping) else "Any"
            return f"dict[str, {kind}]"
        name = title if title in self._promised else self._free(title)
        self._promised.discard(name)
        self.classes[name] = ""  # reserves the name, and a position before the types that it uses
        required = required_names(schema)
        rows = []
        for key, member in islice(properties.items(), MAX_PROPERTIES):
            kind = self._of(member, root, f"{name}{_title(key)}", taken, depth + 1)
            rows.append((key, kind if key in required else f"NotRequired[{kind}]", schema_comment(member)))
        self.classes[name] = _typed_dict(name, rows)
        return f'"{name}"'

    def _free(self, title: str) -> str:
        name = title
        while name in self.classes or name in self._promised or name in self._taken or name in RESERVED_TYPE_NAMES:
            self._numbers[title] = number = self._numbers.get(title, 1) + 1
            name = f"{title}{number}"
        return name


def _typed_dict(name: str, rows: list[tuple[str, str, str]]) -> str:
    named = {word for _, kind, _ in rows for word in re.findall(r"\w+", kind)}
    if all(_is_plain(key) and key not in named for key, _, _ in rows):  # a field would hide a type of the same name
        lines = [f"    {key}: {kind}" + (f"  # {' '.join(note.split())}" if note else "") for key, kind, note in rows]
        return "\n".join([f"class {name}(TypedDict):", *lines])
    return f"{name} = TypedDict({name!r}, {{{', '.join(f'{key!r}: {_lazy(kind)}' for key, kind, _ in rows)}}})"


def _is_plain(key: str) -> bool:
    return key.isidentifier() and not keyword.iskeyword(key) and not key.startswith("__")


def _lazy(kind: str) -> str:
    return kind if kind.startswith(("Not", '"')) and kind.count('"') <= 2 else repr(kind.replace('"', ""))


def _literals(values: Sequence[Any]) -> str:
    plain = [value for value in values if value is None or isinstance(value, str | int | bool)]
    return f"Literal[{', '.join(dict.fromkeys(map(repr, plain)))}]" if plain and len(plain) == len(values) else "Any"


def _union(members: Sequence[str]) -> str:
    unique = dict.fromkeys(part for member in members for part in [member])
    if not unique or "Any" in unique:
        return "Any"
    # At run time a quoted name can't be an operand of `|`, but the types of a stub are never evaluated.
    return " | ".join(unique)


def _title(name: str) -> str:
    found = "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", name))
    return found if found[:1].isalpha() else f"T{found}"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''").rstrip('"') + ("" if not text.endswith('"') else "'")


def _indented(doc: str) -> str:
    return doc.replace("\n", "\n    ")
