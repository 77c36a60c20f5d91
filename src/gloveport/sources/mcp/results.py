"""A tool result → the value that a program gets, or the ToolError that it stands for."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Sequence
from typing import Any

import mcp_types as mcp

from gloveport import bounded_json
from gloveport.errors import ToolError
from gloveport.large_values import LARGE_BYTES, off_loop_if

MAX_MESSAGE_CHARS = 4000
MAX_SMALL_BLOCKS = 50
BASE64_PIECE_CHARS = 1024 * 1024


async def value_of(result: mcp.CallToolResult, structured: Any, tool: str) -> Any:
    """Return the structured content, else the one content, a list of several, or None; raise ToolError for `isError`."""
    if structured is not None and not result.is_error:
        return structured
    return await off_loop_if(_is_large(result.content), _value, result, structured, tool)


def _value(result: mcp.CallToolResult, structured: Any, tool: str) -> Any:
    if result.is_error:
        raise _error(result, structured, tool)
    values = _content_values(result.content, tool)
    return values[0] if len(values) == 1 else values or None


def _is_large(blocks: Sequence[mcp.ContentBlock]) -> bool:
    """Whether reading the JSON or base64 in these blocks could take long."""
    return len(blocks) > MAX_SMALL_BLOCKS or any(
        len(text) > LARGE_BYTES
        for block in blocks
        for each in (block, getattr(block, "resource", None))
        if isinstance(text := getattr(each, "text", None) or getattr(each, "data", None) or getattr(each, "blob", ""), str)
    )


def _content_values(blocks: Sequence[mcp.ContentBlock], tool: str) -> list[Any]:
    return [content_value(block, tool) for block in blocks]


def content_value(block: mcp.ContentBlock, tool: str) -> Any:
    """Return a content block as a value: text, or the JSON in it; images, audio and resources as bytes with types."""
    if isinstance(block, mcp.TextContent):
        return _json_or_text(block.text)
    if isinstance(block, (mcp.ImageContent, mcp.AudioContent)):
        return {"type": block.type, "mimeType": block.mime_type, "data": _decode(block.data, tool)}
    if isinstance(block, mcp.EmbeddedResource):
        return {"type": "resource", **resource_value(block.resource, tool)}
    return block.model_dump(mode="json", by_alias=True, exclude_none=True)


def resource_value(found: mcp.TextResourceContents | mcp.BlobResourceContents, tool: str) -> dict[str, Any]:
    """Return a resource's URI, type, and its `text` or, as bytes, its `data`."""
    value: dict[str, Any] = {"uri": found.uri}
    if found.mime_type is not None:
        value["mimeType"] = found.mime_type
    if isinstance(found, mcp.BlobResourceContents):
        return {**value, "data": _decode(found.blob, tool)}
    return {**value, "text": found.text}


def _json_or_text(text: str) -> Any:
    if text.lstrip()[:1] not in ("{", "["):
        return text
    try:
        return bounded_json.read(text.encode())
    except (ValueError, bounded_json.JsonLimitError):
        return text


def _decode(text: str, tool: str) -> bytes:
    pieces = (text[at : at + BASE64_PIECE_CHARS] for at in range(0, len(text), BASE64_PIECE_CHARS))
    try:
        return b"".join(b64decode(piece, validate=True) for piece in pieces)  # each holds the interpreter lock shortly
    except (binascii.Error, ValueError):
        raise ToolError("the server sent bytes that are not base64", tool=tool) from None


def _error(result: mcp.CallToolResult, structured: Any, tool: str) -> ToolError:
    text = "\n".join(block.text for block in result.content if isinstance(block, mcp.TextContent)).strip()
    values = [value for value in _content_values(result.content, tool) if not isinstance(value, str)]
    data = values[0] if len(values) == 1 else values or None
    if structured is not None:
        data = structured
    message = text[:MAX_MESSAGE_CHARS] or "the tool failed without saying why"
    return ToolError(message, origin="tool", tool=tool, data=data)
