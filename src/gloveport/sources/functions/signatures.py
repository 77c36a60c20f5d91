"""A callable's signature → the schemas of a tool, and the tool's arguments → the call."""

from __future__ import annotations

import contextlib
import functools
import inspect
import typing
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from gloveport.errors import OptionError
from gloveport.large_values import looked_up
from gloveport.sources.functions import docstrings, type_schemas
from gloveport.sources.functions.type_schemas import UnsupportedAnnotation

EMPTY = inspect.Parameter.empty
SIMPLE_TYPES = (str, int, float, bool)
BoundArguments = tuple[list[Any], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Signature:
    """The schemas of a callable's parameters and result, and how to bind a tool's arguments to it."""

    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None
    shape: type[msgspec.Struct]
    positional: tuple[tuple[str, Any], ...]
    extra: Any
    simple: Mapping[str, type]  # parameters whose values need no conversion when they have exactly this type

    def bind(self, args: dict[str, Any]) -> BoundArguments:
        """Return positional and keyword arguments in their annotated types; raise msgspec.ValidationError."""
        for name, value in args.items():
            if type(value) is not self.simple.get(name):
                break
        else:
            return [], args
        try:
            keywords = self._converted(args)
        except msgspec.ValidationError as error:
            keywords = self._converted_leniently(args, error)
        if not self.positional:
            return [], keywords
        return _positionals(self.positional, keywords), keywords

    def _converted(self, args: dict[str, Any]) -> dict[str, Any]:
        struct = msgspec.convert(args, self.shape, str_keys=True, dec_hook=type_schemas.from_plain)
        keywords = msgspec.structs.asdict(struct)
        if self.extra is not None or len(args) != len(keywords):
            keywords = {name: value for name, value in keywords.items() if value is not msgspec.UNSET}
        if self.extra is not None:
            for name in args.keys() - keywords.keys():
                keywords[name] = type_schemas.convert(args[name], self.extra)
        return keywords

    def _converted_leniently(self, args: dict[str, Any], error: msgspec.ValidationError) -> dict[str, Any]:
        """Convert again with a date as text where text is expected, and 5.0 as 5 where an integer is expected."""
        for to_text in (datetime.isoformat, lambda moment: moment.date().isoformat()):
            try:
                return self._converted(_simplified(args, to_text))
            except msgspec.ValidationError:
                continue
        raise error


def _simplified(value: Any, to_text: Callable[[datetime], str]) -> Any:
    if isinstance(value, dict):
        return {key: _simplified(item, to_text) for key, item in value.items()}
    if isinstance(value, list):
        return [_simplified(item, to_text) for item in value]
    if isinstance(value, datetime):
        return to_text(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _positionals(positional: tuple[tuple[str, Any], ...], keywords: dict[str, Any]) -> list[Any]:
    """Take the positional-only arguments out of the keywords, up to the last one that was given."""
    values = [keywords.pop(name, msgspec.UNSET) for name, _ in positional]
    while values and values[-1] is msgspec.UNSET:
        values.pop()
    return [default if value is msgspec.UNSET else value for value, (_, default) in zip(values, positional, strict=False)]


def signature_of(function: Callable[..., Any], name: str) -> Signature:
    """Return the signature of a callable; raise an OptionError that names the parameter a tool can't have."""
    plain, extra = _parameters(function, name)
    hints = _hints(function, name)
    types = {parameter.name: _kind(parameter, hints, name) for parameter in plain}
    described = docstrings.parameters(inspect.getdoc(function), types)
    schema = _input_schema(plain, types, described, _kind(extra, hints, name) if extra else None)
    fields = [(parameter.name, types[parameter.name], msgspec.UNSET) for parameter in plain]
    return Signature(
        input_schema=schema,
        output_schema=_output_schema(hints.get("return", EMPTY)),
        shape=looked_up(msgspec.defstruct("Arguments", fields, kw_only=True)),
        positional=tuple((p.name, p.default) for p in plain if p.kind is inspect.Parameter.POSITIONAL_ONLY),
        extra=looked_up(_kind(extra, hints, name)) if extra else None,
        simple={
            parameter.name: types[parameter.name]
            for parameter in plain
            if types[parameter.name] in SIMPLE_TYPES and parameter.kind is not inspect.Parameter.POSITIONAL_ONLY
        },
    )


def _parameters(function: Callable[..., Any], name: str) -> tuple[list[inspect.Parameter], inspect.Parameter | None]:
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError) as error:
        raise OptionError(f"the function {name} has no signature to read", hint="wrap it in a def of your own") from error
    plain, extra = [], None
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            hint = f"take a list instead: {parameter.name}: list"
            raise OptionError(f"the function {name} takes *{parameter.name}, which a tool can't", hint=hint)
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            extra = parameter
        else:
            plain.append(parameter)
    return plain, extra


def _unwrapped(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield the objects that may hold the annotations, the likeliest first."""
    while isinstance(function, functools.partial):
        function = function.func
    function = inspect.unwrap(function)
    yield function
    if not inspect.isroutine(function):
        yield type(function).__call__


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for place in _unwrapped(function):
        if isinstance(place, type) or not hasattr(place, "__annotations__"):
            continue
        try:
            hints |= typing.get_type_hints(place, include_extras=True)
        except Exception as error:
            missing = f"{type(error).__name__}: {error}"
            raise OptionError(f"the annotations of the function {name} can't be read: {missing}") from error
    return hints


def _kind(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    kind = hints.get(parameter.name, Any)
    if parameter.default is None and kind is not Any:
        kind = typing.Optional[kind]  # noqa: UP045 - `|` does not take every annotation
    try:
        return type_schemas.normalize(kind)
    except UnsupportedAnnotation as error:
        shown = getattr(kind, "__name__", None) or str(kind)
        raise OptionError(
            f"the parameter {parameter.name} of the function {name} is {shown}, which a tool can't take: {error}",
            hint="use plain types, dataclasses, TypedDicts, enums or pydantic models",
        ) from error


def _input_schema(
    plain: list[inspect.Parameter], types: Mapping[str, Any], described: Mapping[str, str], extra: Any
) -> dict[str, Any]:
    listed = [*types.values()] if extra is None else [*types.values(), extra]
    found, definitions = type_schemas.schemas(listed, closed=True)
    rest = False if extra is None else found.pop() or True
    properties = dict(zip(types, found, strict=True))
    for parameter in plain:
        schema = properties[parameter.name]
        if parameter.name in described:
            schema.setdefault("description", described[parameter.name])
        if parameter.default is not EMPTY and parameter.default is not None:
            _add_default(schema, parameter.default)
    schema = {"type": "object", "properties": properties, "additionalProperties": rest}
    if required := [parameter.name for parameter in plain if parameter.default is EMPTY]:
        schema["required"] = required
    return schema | ({"$defs": definitions} if definitions else {})


def _add_default(schema: dict[str, Any], default: Any) -> None:
    # A default that is not plain data is left out of the schema; the function still uses it.
    with contextlib.suppress(TypeError, ValueError, RecursionError):
        schema["default"] = msgspec.to_builtins(default, str_keys=True)


def _output_schema(kind: Any) -> dict[str, Any] | None:
    """Return the schema of the return annotation; None when plain data can't express it."""
    if kind is EMPTY or kind is Any:
        return None
    try:
        (schema,), definitions = type_schemas.schemas([type_schemas.normalize(kind)], closed=False)
    except UnsupportedAnnotation:
        return None
    return schema | ({"$defs": definitions} if definitions else {})
