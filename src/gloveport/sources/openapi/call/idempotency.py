"""Idempotency keys: where an operation takes one in a header, each write gets its own, and the same one when made again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.sources.openapi.operation import Operation, Parameter


def key_parameter(operation: Operation) -> Parameter | None:
    """Return the header that takes an idempotency key: `Idempotency-Key`, also with `X-`, `_` or no dash."""
    return next((one for one in operation.parameters if one.place == "header" and _is_key(one.name)), None)


def _is_key(name: str) -> bool:
    return name.lower().removeprefix("x-").replace("-", "").replace("_", "") == "idempotencykey"


def with_key(operation: Operation, args: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the arguments with the key, unless the program gave one."""
    parameter = key_parameter(operation)
    group = args.get("header") or {} if operation.grouped else args
    if parameter is None or group.get(parameter.argument) is not None:
        return dict(args)
    given = {**group, parameter.argument: key}
    return {**args, "header": given} if operation.grouped else given


def with_optional_key(operation: Operation, schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the schema of the arguments, in which a program may leave the key out."""
    parameter = key_parameter(operation)
    if parameter is None or not parameter.required:
        return schema
    if not operation.grouped:
        return _without_required(schema, parameter.argument)
    header = _without_required(schema["properties"]["header"], parameter.argument)
    changed = {**schema, "properties": {**schema["properties"], "header": header}}
    return changed if header["required"] else _without_required(changed, "header")


def _without_required(schema: Mapping[str, Any], name: str) -> dict[str, Any]:
    return {**schema, "required": [one for one in schema.get("required", ()) if one != name]}
