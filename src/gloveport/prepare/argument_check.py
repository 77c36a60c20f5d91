"""Check the arguments of a call against a tool's schema, as far as literals allow a certain answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gloveport.suggestions import did_you_mean
from gloveport.types import Tool

COMBINATORS = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "patternProperties", "dependentSchemas"})


class ArgumentValue(Protocol):
    """An argument as the program writes it, or the name of one."""

    @property
    def kind(self) -> str | None:
        """The JSON type of a literal; None for anything else."""
        ...

    @property
    def text(self) -> str:
        """The text of the argument."""
        ...

    @property
    def string(self) -> str | None:
        """The value of a plain string literal; None for anything else."""
        ...

    @property
    def extent(self) -> tuple[int, int]:
        """The offsets in the code where it starts and ends."""
        ...


NamedValues = Mapping[str, tuple[ArgumentValue, ArgumentValue | None]]
"""Arguments by name, each as a pair: the written name, and its value. A value of None can't be checked."""


class CallArguments(NamedTuple):
    """The arguments of a call: by position, by name, or as one object.

    `object_keys` are the keys of that object; None if not all of them are literal.
    """

    positional: Sequence[ArgumentValue] = ()
    named: NamedValues | None = None
    object_keys: NamedValues | None = None


class InvalidArgument(NamedTuple):
    """What is wrong with a call, and the value to mark; without one, the call as a whole is wrong."""

    message: str
    hint: str
    value: ArgumentValue | None = None


def validate_arguments(arguments: CallArguments, tool: Tool) -> InvalidArgument | None:
    """Return the first certain error in the arguments of a call; None when nothing is certainly wrong."""
    if not COMBINATORS.isdisjoint(tool.input_schema):
        return None
    positional = arguments.positional
    if arguments.named:
        return _check_mixed(positional, arguments.named, tool) if positional else _check_named(arguments.named, tool)
    if not positional:
        return _missing(tool, set())
    if len(positional) == 1 and positional[0].kind == "object":
        return _check_object(arguments.object_keys, tool)
    if len(positional) == 1 and positional[0].kind is None:
        return None
    return _check_positional(positional, tool)


def _check_object(keys: NamedValues | None, tool: Tool) -> InvalidArgument | None:
    if keys is None:
        return None
    unknown = [key for key in keys if key not in tool.parameters]
    if unknown and len(unknown) == len(keys) and _only_one_takes_object(tool):
        return None
    return _check_named(keys, tool)


def _check_mixed(values: Sequence[ArgumentValue], keys: NamedValues, tool: Tool) -> InvalidArgument | None:
    """Check values that fill the parameters in their order, and the others by name."""
    if len(values) > len(tool.parameters):
        return _too_many(values, tool)
    filled = dict(zip(tool.parameters, values, strict=False))
    if twice := next((key for key in keys if key in filled), None):
        return InvalidArgument(f"gets `{twice}` twice, by position and by keyword", _parameters(tool), keys[twice][0])
    return _check_named({**{name: (value, value) for name, value in filled.items()}, **keys}, tool)


def _check_named(keys: NamedValues, tool: Tool) -> InvalidArgument | None:
    properties = tool.input_schema.get("properties", {})
    unknown = next((key for key in keys if key not in properties), None)
    if unknown is not None and tool.input_schema.get("additionalProperties") is False:
        return _unknown(unknown, keys[unknown][0], tool)
    missing = _missing(tool, set(keys))
    if missing:
        return missing
    for key, (_, value) in keys.items():
        if value is not None and key in properties:
            wrong = _wrong_type(key, value, properties[key])
            if wrong:
                return wrong
    return None


def _check_positional(values: Sequence[ArgumentValue], tool: Tool) -> InvalidArgument | None:
    names = tool.parameters
    if not names and tool.input_schema.get("additionalProperties") is not False:
        return None
    if len(values) > len(names):
        return _too_many(values, tool)
    missing = _missing(tool, set(names[: len(values)]))
    if missing:
        return missing
    properties = tool.input_schema.get("properties", {})
    for name, value in zip(names, values, strict=False):
        wrong = _wrong_type(name, value, properties[name])
        if wrong:
            return wrong
    return None


def _too_many(values: Sequence[ArgumentValue], tool: Tool) -> InvalidArgument:
    names = tool.parameters
    takes = "no arguments" if not names else f"at most {_count(len(names), 'argument')}"
    return InvalidArgument(f"takes {takes}, not {len(values)}", _parameters(tool), values[len(names)])


def _missing(tool: Tool, present: set[str]) -> InvalidArgument | None:
    required = [name for name in tool.input_schema.get("required", ()) if name not in present]
    if not required:
        return None
    names = " and ".join(f"`{name}`" for name in required[:5])
    return InvalidArgument(f"needs {names}, which {'is' if len(required) == 1 else 'are'} missing", _parameters(tool))


def _unknown(name: str, value: ArgumentValue, tool: Tool) -> InvalidArgument:
    meant = did_you_mean(name, tool.parameters)
    return InvalidArgument(f"has no parameter `{name}`{f'; {meant}' if meant else ''}", _parameters(tool), value)


def _wrong_type(name: str, value: ArgumentValue, schema: Any) -> InvalidArgument | None:
    kind = value.kind
    if kind is None or not isinstance(schema, Mapping) or not COMBINATORS.isdisjoint(schema):
        return None
    allowed = schema.get("type")
    types = {allowed} if isinstance(allowed, str) else set(allowed) if isinstance(allowed, list) else set()
    if types and not _fits(kind, value.text, types):
        wanted = " or ".join(sorted(types))
        return InvalidArgument(
            f"takes {_article(wanted)} {wanted} as `{name}`, not {_described(kind, value.text)}",
            f"`{name}` must be of type {wanted}",
            value,
        )
    choices = schema.get("enum")
    if value.string is not None and isinstance(choices, list) and value.string not in choices:
        listed = ", ".join(f'"{choice}"' if isinstance(choice, str) else str(choice) for choice in choices[:12])
        message = f"does not accept {_cut(value.text)} as `{name}`"
        return InvalidArgument(message, f"`{name}` must be one of {listed}", value)
    return None


def _fits(kind: str, text: str, types: set[str]) -> bool:
    if kind == "number":
        if text.endswith("n") or "number" in types:
            return True
        return "integer" in types and _is_whole(text)
    return kind in types


def _is_whole(text: str) -> bool:
    try:
        return float(text.replace("_", "")).is_integer()
    except (ValueError, OverflowError):
        return True


def _described(kind: str, text: str) -> str:
    return text if kind == "null" else f"the {kind} {_cut(text)}"


def _cut(text: str) -> str:
    return text if len(text) <= 30 else text[:30] + "…"


def _article(word: str) -> str:
    return "an" if word[:1] in "aeio" else "a"


def _only_one_takes_object(tool: Tool) -> bool:
    """Return whether an object may be the tool's only argument instead of all of them, as the bridge allows."""
    if len(tool.parameters) != 1:
        return False
    only = tool.input_schema.get("properties", {}).get(tool.parameters[0])
    if not isinstance(only, Mapping):
        return True
    kinds = only.get("type")
    return kinds is None or kinds == "object" or (isinstance(kinds, list) and "object" in kinds)


def _parameters(tool: Tool) -> str:
    names = tool.parameters
    if not names:
        return "it takes no parameters"
    required = set(tool.input_schema.get("required", ()))
    listed = ", ".join(name if name in required else f"{name}?" for name in names[:20])
    return f"its parameters are {listed}{', …' if len(names) > 20 else ''}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
