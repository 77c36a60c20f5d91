"""Python annotations → JSON Schema, and plain data → values of the annotated types.

msgspec does both for the types that it knows. Two kinds are added as custom types, for which msgspec calls our hooks:
classes with pydantic's `model_validate`, and unions that msgspec refuses because plain data can't tell their members apart
(`Cat | Dog`, `str | datetime`). The members of such a union are tried in order, unless a value already has one of them.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import types
import typing
from datetime import datetime
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

REF_TEMPLATE = "#/$defs/{name}"
DATE_TIME = Annotated[datetime, msgspec.Meta(extra_json_schema={"format": "date-time"})]


class UnsupportedAnnotation(Exception):
    """An annotation that plain data can't express; the message says which."""


def normalize(annotation: Any) -> Any:
    """Return the annotation in a form that `schemas` and `convert` take; raise UnsupportedAnnotation."""
    if annotation is object or isinstance(annotation, typing.TypeVar):
        return Any
    if annotation is datetime:
        return DATE_TIME
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(normalize(args[0]), args[1:])
    if origin in (Union, types.UnionType):
        return _union(Union[tuple(normalize(member) for member in args)])  # noqa: UP007
    if annotation is collections.abc.Iterable or origin is collections.abc.Iterable:
        return list[normalize(args[0])] if args else list
    if args and origin not in (typing.Literal, None):
        inner = tuple(arg if arg is Ellipsis else normalize(arg) for arg in args)
        annotation = annotation.copy_with(inner) if hasattr(annotation, "copy_with") else origin[inner]
    _schema_of((annotation,))
    return annotation


def _union(annotation: Any) -> Any:
    """Return the union itself where msgspec takes it, else a custom type that tries the members in order."""
    try:
        _schema_of((annotation,))
    except UnsupportedAnnotation:
        members = get_args(annotation)
        if not members:
            raise
        return _AnyMember("Either", (_Either,), {"members": members})
    return annotation


class _AnyMember(type):
    """Accepts every value: msgspec checks that what our hook returned is an instance, and any member of the union is."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return True


class _Either(metaclass=_AnyMember):
    members: typing.ClassVar[tuple[Any, ...]] = ()


def _annotated(inner: Any, metadata: tuple[Any, ...]) -> Any:
    texts = [item for item in metadata if isinstance(item, str)]
    extras = [item for item in metadata if isinstance(item, msgspec.Meta)]
    texts += [item.description for item in metadata if _is_described(item)]
    if texts:
        extras.append(msgspec.Meta(description=texts[0]))
    for extra in extras:
        inner = Annotated[inner, extra]
    _schema_of((inner,))
    return inner


def _is_described(item: Any) -> bool:
    """Return whether the metadata has a description, as pydantic's FieldInfo has; msgspec reads its own Meta."""
    return not isinstance(item, msgspec.Meta) and isinstance(getattr(item, "description", None), str)


def schemas(annotations: collections.abc.Iterable[Any], *, closed: bool) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return a JSON Schema for each normalized annotation, and the definitions that they share.

    `closed` refuses fields that a class does not have, as for arguments (B2).
    """
    found, definitions = _schema_of(tuple(annotations))
    if closed:
        for schema in (*found, *definitions.values()):
            _close(schema)
    return found, definitions


def _close(schema: Any) -> None:
    if not isinstance(schema, dict):
        return
    if "properties" in schema:
        schema.setdefault("additionalProperties", False)
    for word in ("properties", "$defs"):
        for member in schema.get(word, {}).values():
            _close(member)
    for member in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        _close(member)


def _schema_of(annotations: tuple[Any, ...]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    definitions: dict[str, Any] = {}

    def hook(kind: Any) -> dict[str, Any]:
        if issubclass(kind, _Either):
            found, more = _schema_of(kind.members)
            schema = {"anyOf": found}
        elif hasattr(kind, "model_json_schema"):
            schema = kind.model_json_schema(ref_template="#/$defs/{model}")
            more = schema.pop("$defs", {})
        else:
            raise UnsupportedAnnotation(f"{kind.__name__} is not plain data")
        for name, definition in more.items():
            if definitions.setdefault(name, definition) != definition:
                raise UnsupportedAnnotation(f"two different types are called {name}")
        return schema

    try:
        found, components = msgspec.json.schema_components(annotations, schema_hook=hook, ref_template=REF_TEMPLATE)
    except UnsupportedAnnotation:
        raise
    except Exception as error:
        raise UnsupportedAnnotation(str(error).splitlines()[0]) from error
    return [dict(schema) for schema in found], {**definitions, **components}


def convert(value: Any, kind: Any) -> Any:
    """Return the plain value as an instance of `kind`; raise msgspec.ValidationError."""
    return msgspec.convert(value, kind, str_keys=True, dec_hook=from_plain)


def from_plain(kind: Any, value: Any) -> Any:
    """Return the value as one of our custom types; msgspec calls this for them."""
    if isinstance(kind, type) and issubclass(kind, _Either):
        return _either(kind.members, value)
    if isinstance(value, kind):
        return value
    return kind.model_validate(value)


def _either(members: tuple[Any, ...], value: Any) -> Any:
    if type(value) in members:
        return value
    for member in members:
        if isinstance(value, dict) and not _has_fields(member, value):
            continue
        try:
            return convert(value, member)
        except (msgspec.ValidationError, ValueError, TypeError):
            continue
    raise ValueError("it fits none of the types that are allowed here")


def _has_fields(member: Any, value: dict[str, Any]) -> bool:
    """Return whether a class has a field for each key; if not, its schema refuses the value and another member is meant."""
    if dataclasses.is_dataclass(member):
        return value.keys() <= {field.name for field in dataclasses.fields(member)}
    if typing.is_typeddict(member):
        return value.keys() <= set(member.__annotations__)
    return True
