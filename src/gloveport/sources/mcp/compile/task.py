"""The task that compiles a server's list of tools: it runs in a jailed process, because the list is hostile."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from gloveport.sources.mcp.compile.tools import compile_tools
from gloveport.sources.mcp.tool_rows import MAX_BATCH_BYTES, MAX_WARNING_CHARS, MAX_WARNINGS, WarningRow


def compile_tool_list(parts: list[bytes], ask: Callable[[bytes], bytes | None]) -> Iterator[bytes]:
    """Yield the compiled tools as batches, each a JSON list of rows. `parts` are JSON lists of tools, as they were sent."""
    warnings: list[str] = []
    listed = (tool for part in parts for tool in msgspec.json.decode(part))
    batch: list[bytes] = []
    size = 0
    for row in compile_tools(listed, warnings.append):
        text = msgspec.json.encode(row)
        if batch and size + len(text) > MAX_BATCH_BYTES:
            yield b"[" + b",".join(batch) + b"]"
            batch, size = [], 0
        batch.append(text)
        size += len(text)
    batch += [msgspec.json.encode(WarningRow(text[:MAX_WARNING_CHARS])) for text in warnings[:MAX_WARNINGS]]
    yield b"[" + b",".join(batch) + b"]"


def rehearse() -> None:
    """Compile a small list, so that the modules are loaded and warm when a process is forked."""
    schema = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^a+$"}, "b": {"$ref": "#/$defs/B"}}}
    tool = {"name": "a-b", "description": "É", "inputSchema": {**schema, "$defs": {"B": {"anyOf": [{"type": "null"}]}}}}
    list(compile_tool_list([msgspec.json.encode([tool, {**tool, "outputSchema": schema, "name": "b"}])], lambda _: None))
