"""Write tools as documented TypeScript: for agents to read, and for the type checker to check programs against.

The definitions come from others, so they are shown as data: their text can't close a comment, control and invisible
characters are dropped, and the size is bounded (M3).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from gloveport.types import Tool

MAX_NODES = 600
MAX_REFERENCE_CHAIN = 50
MAX_PROPERTIES = 500
"""The most properties of an object that are shown."""
MAX_DEPTH = 12
MAX_TEXT_CHARS = 600
MAX_ENUM_VALUES = 40
IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*\Z")
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
PRIMITIVES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}
# Keywords that comments repeat, unless the value is obvious: dates have a type, and 32-bit integers are common.
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
DOCUMENTED_KEYWORDS = ("format", *_BOUNDS, "pattern", "minLength", "maxLength")
OBVIOUS_VALUES = ("date-time", -(2**31), 2**31 - 1)


def declaration(tools: Iterable[tuple[str, Tool]], *, checked: bool = False) -> str:
    """Return one `declare const tools` for the tools, each under the path that programs write.

    With `checked`, the text is for a type checker: it allows what the bridge allows, and what is not known is `any`.
    """
    tree: dict[str, Any] = {}
    for path, tool in tools:
        *above, leaf = path.split(".")
        node = tree
        for part in above:
            node = node.setdefault(part, {})
        node[leaf] = {**node[leaf], "": tool} if isinstance(node.get(leaf), dict) else tool
    return f"declare const tools: {_members(tree, '', checked=checked)};\n"


def _members(tree: Mapping[str, Any], indent: str, *, checked: bool) -> str:
    inner = indent + "  "
    lines = [f"{inner}[key: string]: any;"] if checked else []
    for name, node in tree.items():
        if isinstance(node, Tool):
            lines.append(
                _comment(tool_comment(node), inner) + f"{inner}{_key(name)}{_callable(node, inner, checked=checked)};"
            )
        else:
            lines.append(f"{inner}{_key(name)}: {_members(node, inner, checked=checked)};")
    return "{\n" + "\n".join(lines) + f"\n{indent}}}" if lines else "{}"


def tool_comment(tool: Tool) -> str:
    """Return the comment for a tool: its description, after `@deprecated` if it is."""
    return f"@deprecated {tool.description}".strip() if tool.deprecated else tool.description


def _callable(tool: Tool, indent: str, *, checked: bool) -> str:
    """Return the type of a tool's property: its call signature, and `pages` if it has pages.

    A reader gets the types once; a type checker needs them for both.
    """
    write = checked_signature if checked else signature
    if not tool.pages:
        return write(tool, indent)
    inner = indent + "  "
    call = write(tool, inner)
    taken, _, result = call.rpartition("): Promise<")
    pages = f"{inner}pages{taken}): AsyncIterable<{result};"
    if not checked:
        pages = f"{inner}/** Takes the same arguments, and yields such a result for each page. */\n"
        pages += f"{inner}pages(args?: object): AsyncIterable<unknown>;"
    return f": {{\n{inner}{call};\n{pages}\n{indent}}}"


def signature(tool: Tool, indent: str = "") -> str:
    """Return `(args: {…}): Promise<…>` for a tool."""
    taken, result = _taken(tool), result_type(tool, indent)
    if tool.takes != "object":
        return f"(...args: unknown[]): Promise<{result}>"
    if not tool.parameters and not tool.input_schema.get("additionalProperties"):
        return f"(): Promise<{result}>"
    optional = "" if tool.input_schema.get("required") else "?"
    return f"(args{optional}: {taken.of(taken.root, indent)}): Promise<{result}>"


def checked_signature(tool: Tool, indent: str = "") -> str:
    """Return the signature of every call that the bridge accepts: one object, or the values in the order of the schema.

    It is one signature, not overloads: a type checker names the wrong value only where one signature could be meant.
    """
    taken, result = _taken(tool, "any"), result_type(tool, indent, "any")
    if tool.takes != "object":
        return f"(...args: any[]): Promise<{result}>"
    properties = list(islice(tool.input_schema.get("properties", {}).values(), MAX_PROPERTIES))
    values = [taken.of(schema, indent) for schema in properties]
    first = " | ".join([taken.of(taken.root, indent), *values[:1]])
    optional = "" if tool.input_schema.get("required") else "?"
    listed = [f"args{optional}: {first}", *(f"value{at}?: {kind}" for at, kind in enumerate(values[1:], 2))]
    return f"({', '.join(listed)}): Promise<{result}>"


def _taken(tool: Tool, opaque: str = "unknown") -> TypeScriptTypes:
    return TypeScriptTypes(tool.input_schema, dates="Date | string", binary="Uint8Array | string", opaque=opaque)


def result_type(tool: Tool, indent: str = "", opaque: str = "unknown") -> str:
    """Return the type of what a tool returns."""
    if tool.output_schema is None:
        return opaque
    dates = "Date" if tool.kind == "function" else "string"
    types = TypeScriptTypes(tool.output_schema, dates=dates, binary="Uint8Array", opaque=opaque)
    return types.of(types.root, indent)


def parameters(tool: Tool) -> Iterator[dict[str, Any]]:
    """Yield each parameter as plain data: name, type, required, and description and default if there are any."""
    required = required_names(tool.input_schema)
    types = _taken(tool)
    for name, schema in islice(tool.input_schema.get("properties", {}).items(), MAX_PROPERTIES):
        row: dict[str, Any] = {"name": name, "type": types.of(schema, ""), "required": name in required}
        if isinstance(schema, Mapping):
            if text := clean(schema.get("description")):
                row["description"] = text
            if "default" in schema:
                row["default"] = schema["default"]
        yield row


def required_names(schema: Mapping[str, Any]) -> frozenset[str]:
    """Return the properties that a schema requires; whatever else its list has is left out."""
    listed = schema.get("required")
    return frozenset(name for name in listed if isinstance(name, str)) if isinstance(listed, (list, tuple)) else frozenset()


class TypeScriptTypes:
    """Writes the types of one schema, and of the definitions in it, within a budget of nodes.

    `opaque` is the type of what is not known or beyond the budget: `unknown`, or `any` for a type checker.
    """

    def __init__(self, root: Mapping[str, Any], *, dates: str, binary: str, opaque: str = "unknown") -> None:
        self.root = root
        self._opaque = opaque
        self._formats = {"date-time": dates}
        self._binary = binary
        self._left = MAX_NODES
        self._open: list[str] = []

    def of(self, schema: Any, indent: str) -> str:
        """Return the TypeScript type of a schema."""
        self._left -= 1
        if schema is False:
            return "never"
        if not isinstance(schema, Mapping) or self._left < 0 or len(indent) > 2 * MAX_DEPTH:
            return self._opaque
        if "$ref" in schema:
            return self._reference(schema["$ref"], indent)
        found = self._without_nullable(schema, indent)
        return f"{found} | null" if schema.get("nullable") is True and found != self._opaque else found

    def _reference(self, target: Any, indent: str) -> str:
        name = str(target).rpartition("/")[2]
        if len(self._open) > MAX_REFERENCE_CHAIN:
            return self._opaque
        if target in self._open:
            return f"{self._opaque} /* {clean(name)} again */".replace("**/", "* /")
        schema = resolve(self.root, target)
        if schema is None:
            return self._opaque
        self._open.append(target)
        try:
            return self.of(schema, indent)
        finally:
            self._open.pop()

    def _without_nullable(self, schema: Mapping[str, Any], indent: str) -> str:
        if "const" in schema:
            return self._literal(schema["const"])
        if isinstance(schema.get("enum"), Sequence):
            return self._union([self._literal(value) for value in schema["enum"][:MAX_ENUM_VALUES]])
        parts = []
        for word, joined in (("anyOf", self._union), ("oneOf", self._union), ("allOf", self._intersection)):
            if isinstance(schema.get(word), Sequence) and schema[word]:
                parts.append(joined([self.of(member, indent) for member in schema[word]]))
        kind = schema.get("type")
        if kind is not None or "properties" in schema:
            kinds = kind if isinstance(kind, Sequence) and not isinstance(kind, str) else [kind or "object"]
            parts.append(self._union([self._typed(one, schema, indent) for one in kinds]))
        return self._intersection(parts)

    def _typed(self, kind: Any, schema: Mapping[str, Any], indent: str) -> str:
        if kind == "array":
            return self._array(schema, indent)
        if kind == "object":
            return self._object(schema, indent)
        if kind == "string":
            if schema.get("contentEncoding") == "base64" or schema.get("format") == "binary":
                return self._binary
            return self._formats.get(str(schema.get("format")), "string")
        return PRIMITIVES.get(str(kind), self._opaque)

    def _array(self, schema: Mapping[str, Any], indent: str) -> str:
        prefix = schema.get("prefixItems")
        items = schema.get("items", True)
        if isinstance(prefix, Sequence) and prefix:
            members = [self.of(member, indent) for member in prefix]
            if items is not False and schema.get("maxItems") != len(prefix):
                members.append(f"...{_parenthesize(self.of(items, indent))}[]")
            return f"[{', '.join(members)}]"
        return f"{_parenthesize(self.of(items, indent))}[]"

    def _object(self, schema: Mapping[str, Any], indent: str) -> str:
        properties = schema.get("properties")
        rest = schema.get("additionalProperties", not properties)
        inner = indent + "  "
        lines = []
        required = required_names(schema)
        listed = properties if isinstance(properties, Mapping) else {}
        for name, member in islice(listed.items(), MAX_PROPERTIES):
            note = _comment(schema_comment(member), inner)
            lines.append(f"{note}{inner}{_key(name)}{'' if name in required else '?'}: {self.of(member, inner)};")
        if rest is not False or len(listed) > MAX_PROPERTIES:
            kind = self.of(rest, inner) if not lines else self._opaque
            if not lines:
                return "any" if kind == "any" else f"Record<string, {kind}>"
            lines.append(f"{inner}[key: string]: {self._opaque};")
        return "{\n" + "\n".join(lines) + f"\n{indent}}}" if lines else "Record<string, never>"

    def _literal(self, value: Any) -> str:
        return json.dumps(value) if isinstance(value, (str, int, float)) or value is None else self._opaque

    def _union(self, members: Sequence[str]) -> str:
        unique = dict.fromkeys(members)
        if not unique or self._opaque in unique:
            return self._opaque
        return " | ".join(one for one in unique if not any(other.endswith(f" | {one}") for other in unique))

    def _intersection(self, members: Sequence[str]) -> str:
        unique = [member for member in dict.fromkeys(members) if member != self._opaque]
        if len(unique) <= 1:
            return unique[0] if unique else self._opaque
        return " & ".join(_parenthesize(member) for member in unique)


def resolve(root: Any, target: Any) -> Any:
    """Return the schema that a reference within the same document points to; other references are not followed."""
    if not isinstance(target, str) or not target.startswith("#"):
        return None
    node = root
    for escaped in target[1:].split("/")[1:]:
        part = escaped.replace("~1", "/").replace("~0", "~")
        if not isinstance(node, Mapping) or part not in node:
            return None
        node = node[part]
    return node


def _parenthesize(kind: str) -> str:
    """Put a union or intersection in parentheses: the operator that follows binds tighter."""
    bare = re.sub(r'"(?:[^"\\]|\\.)*"|\{.*\}|<.*>|\[.*\]', "", kind, flags=re.DOTALL)
    return f"({kind})" if "|" in bare or "&" in bare else kind


def _key(name: str) -> str:
    return name if IDENTIFIER.match(name) else json.dumps(name)


def schema_comment(schema: Any) -> str:
    """Return the description with default and bounds, which the type itself can't express."""
    if not isinstance(schema, Mapping):
        return ""
    notes = [str(schema.get("description") or "")]
    if schema.get("deprecated") is True:
        notes.append("@deprecated")
    if "default" in schema:
        notes.append(f"Default {_shorten(schema['default'])}.")
    stated = [word for word in DOCUMENTED_KEYWORDS if word in schema and schema[word] not in OBVIOUS_VALUES]
    notes += [f"{word} {_shorten(schema[word])}." for word in stated]
    return " ".join(note for note in notes if note)


def _shorten(value: Any) -> str:
    try:
        text = json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError):
        text = "…"
    return text if len(text) <= 80 else text[:79] + "…"


def clean(text: Any) -> str:
    """Return text from a definition without invisible characters and comment ends, cut at the maximum length."""
    if not isinstance(text, str):
        return ""
    shown = HIDDEN.sub("", text).replace("*/", "*\\/").strip()
    return shown if len(shown) <= MAX_TEXT_CHARS else shown[: MAX_TEXT_CHARS - 1] + "…"


def _comment(text: str, indent: str) -> str:
    lines = [line.strip() for line in clean(text).splitlines() if line.strip()]
    if not lines:
        return ""
    if len(lines) == 1:
        return f"{indent}/** {lines[0]} */\n"
    return f"{indent}/**\n" + "".join(f"{indent} * {line}\n" for line in lines) + f"{indent} */\n"
