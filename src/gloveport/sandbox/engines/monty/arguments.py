"""The arguments of a tool call of a Monty program: by position, by keyword, or both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gloveport.errors import ToolError, ValueCrossingError
from gloveport.sandbox.engines.monty.nodes import TooHeavyError
from gloveport.values import encode


def encode_arguments(
    tool: str, values: Sequence[Any], options: dict[str, Any], parameters: Sequence[str], limit: int
) -> bytes:
    """Encode the arguments of a call for its frame; raise ToolError or TooHeavyError.

    If there are keywords, positional values fill the tool's parameters in order.
    """
    if options:
        values = [_named(tool, values, options, parameters) if values else options]
    shown = "argument" if len(values) == 1 else "argument {}"
    try:
        text = b"[%b]" % b",".join(encode(value, shown.format(index)) for index, value in enumerate(values, 1))
    except ValueCrossingError as error:
        raise ToolError(f"tools.{tool}: {error.message}", code="bad-value", tool=tool) from None
    if len(text) > limit:
        raise TooHeavyError(len(text))
    return text


def _named(tool: str, values: Sequence[Any], options: dict[str, Any], parameters: Sequence[str]) -> dict[str, Any]:
    if len(values) > len(parameters):
        problem = f"{len(values)} values before its keywords are too many: its parameters are {', '.join(parameters)}"
    elif twice := [name for name in parameters[: len(values)] if name in options]:
        problem = f"it got `{twice[0]}` twice, by position and by keyword"
    else:
        return {**dict(zip(parameters, values, strict=False)), **options}
    raise ToolError(f"bad arguments for `tools.{tool}`: {problem}", code="bad-arguments", tool=tool)


def too_large(name: str, size: int, limit: int) -> dict[str, Any]:
    """Return the error fields for a call or value that exceeds the frame limit."""
    message = f"{name}: {size:,} bytes are over the limit of {limit:,} for one message"
    tool = {"tool": name.removeprefix("tools.")} if name.startswith("tools.") else {}
    return {"message": message, "code": "frame-too-large", **tool}
