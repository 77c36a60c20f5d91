"""Combine the parameters and the body of an operation into one object of arguments, with its schema."""

from __future__ import annotations

from typing import Any, NamedTuple

from gloveport.sources.openapi.compile.parameters import Argument
from gloveport.sources.openapi.compile.request_body import CompiledBody
from gloveport.sources.openapi.operation import Parameter, RequestBody
from gloveport.sources.schemas.keywords import Schema

PARAMETER_PLACES = ("path", "query", "header", "cookie")


class CompiledArguments(NamedTuple):
    """The schema of the arguments, and the parts of an Operation that map them to a request."""

    schema: Schema
    parameters: tuple[Parameter, ...]
    body: RequestBody | None
    grouped: bool


class _ObjectSchema:
    """An object schema under construction. Required properties come first, for callers that pass arguments by position."""

    def __init__(self) -> None:
        self._required: dict[str, Any] = {}
        self._optional: dict[str, Any] = {}
        self.rest: Any = False
        self.needs: dict[str, list[str]] = {}  # by an optional property: what must come with it
        self.choices: list[Schema] = []

    def add(self, name: str, schema: Any, required: bool) -> None:
        (self._required if required else self._optional)[name] = schema

    def schema(self) -> Schema:
        out: Schema = {"type": "object", "properties": self._required | self._optional}
        if self._required:
            out["required"] = list(self._required)
        if self.needs:
            out["dependentRequired"] = self.needs
        out["additionalProperties"] = self.rest
        if len(self.choices) == 1:
            out |= self.choices[0]
        elif self.choices:
            out["allOf"] = self.choices
        return out

    @property
    def needed(self) -> bool:
        return bool(self._required)


def compile_arguments(arguments: list[Argument], payload: CompiledBody | None) -> CompiledArguments:
    """Return the arguments: flat when no names clash, else grouped by place."""
    # A body that is optional as a whole but has required properties gets an argument of its own. Spread out, a body that
    # is left out would look the same as one that was forgotten.
    spread = payload.spread if payload else None
    if payload and spread and not payload.required and (spread.required or spread.choices):
        spread = None
    names = [argument.parameter.argument for argument in arguments]
    if payload:
        names += list(spread.properties) if spread else ["body"]
        names += ["content_type"] if len(payload.contents) > 1 else []
    grouped = len(set(names)) < len(names)
    top = _ObjectSchema()
    if grouped:
        _add_groups(top, arguments)
    else:
        for argument in arguments:
            top.add(argument.parameter.argument, argument.schema, argument.parameter.required)
    body = None
    if payload:
        _add_body(top, payload, grouped=grouped, spread=spread is not None)
        body = RequestBody(payload.contents, "body" if grouped or spread is None else None, payload.required)
    return CompiledArguments(top.schema(), tuple(argument.parameter for argument in arguments), body, grouped)


def _add_groups(top: _ObjectSchema, arguments: list[Argument]) -> None:
    for place in PARAMETER_PLACES:
        group = _ObjectSchema()
        members = [argument for argument in arguments if argument.parameter.place == place]
        for argument in members:
            group.add(argument.parameter.argument, argument.schema, argument.parameter.required)
        if members:
            top.add(place, group.schema(), group.needed)


def _add_body(top: _ObjectSchema, payload: CompiledBody, *, grouped: bool, spread: bool) -> None:
    if payload.spread and spread:
        target = _ObjectSchema() if grouped else top
        for name, schema in payload.spread.properties.items():
            target.add(name, schema, name in payload.spread.required)
        target.choices += payload.spread.choices
        if payload.spread.rest not in (None, False):
            target.rest = payload.spread.rest
        if grouped:
            top.add("body", target.schema(), payload.required)
    else:
        top.add("body", payload.schema, payload.required)
    if len(payload.contents) > 1:
        types = [content.media_type for content in payload.contents]
        text = "How the body is sent; without it, as the first of these types that fits the body."
        schema = {"type": "string", "enum": types, "description": text}
        top.add("content_type", schema, required=False)
        if not payload.required and (grouped or not spread):
            top.needs["content_type"] = ["body"]
