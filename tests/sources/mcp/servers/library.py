"""A server made with the `mcp` library: on stdio, or as an ASGI application; for both revisions or the older one alone.

Run as a program: `library.py [--legacy]`. What its tools do is seen in the folder that STATE names.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any

import anyio
import mcp_types as types
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.mcpserver import Context, Elicit, Image, MCPServer, Resolve, Sample
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import BaseModel

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")
REFUSED = {"code": -32601, "message": "Method not found"}


class Weather(BaseModel):
    """What the weather is."""

    city: str
    celsius: float


class Seat(BaseModel):
    """What a person is asked."""

    row: int


def ask_for_seat() -> Elicit[Seat]:
    return Elicit("Which row?", Seat)


def ask_a_model() -> Sample:
    return Sample([types.SamplingMessage(role="user", content=types.TextContent(text="hello"))], max_tokens=10)


def build() -> MCPServer:  # noqa: PLR0915 - one tool after the other
    """The server; each has a state of its own."""
    server = MCPServer("library", title="A library", version="1", log_level="CRITICAL")
    plain = server.tool(structured_output=False)
    notes: list[str] = []

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def weather(city: str) -> Weather:
        """The weather in a city."""
        return Weather(city=city, celsius=7.5)

    @plain
    def say(text: str) -> str:
        """Say it back."""
        return text

    @plain
    def nothing() -> None:
        """Answer nothing."""

    @plain
    def picture() -> Image:
        """A picture."""
        return Image(data=PNG, format="png")

    @plain
    def several() -> list[Any]:
        """Several contents."""
        resource = types.BlobResourceContents(uri="note://blob", mime_type="application/x", blob="AAEC")
        return [
            "words",
            '{"n": 1}',
            Image(data=PNG, format="png"),
            types.AudioContent(data="AAEC", mime_type="audio/wav"),
            types.EmbeddedResource(resource=resource),
            types.ResourceLink(uri="note://hello", name="hello"),
        ]

    @plain
    def fail(why: str) -> str:
        """Fail."""
        raise ToolError(why)

    @server.tool(annotations=types.ToolAnnotations(read_only_hint=True))
    def peek() -> list[str]:
        """Read the notes."""
        return notes

    @plain
    def note(text: str) -> str:
        """Write a note."""
        notes.append(text)
        return f"{len(notes)} notes"

    @plain
    async def wait() -> str:
        """Wait until cancelled."""
        _leave("waiting")
        try:
            await anyio.sleep_forever()
        finally:
            _leave("cancelled")
        return "never"

    @plain
    async def work(ctx: Context) -> str:
        """Report progress."""
        for step in range(1, 4):
            await ctx.report_progress(step, 3, f"step {step}")
        return "done"

    @server.tool()
    def book(seat: Annotated[Seat, Resolve(ask_for_seat)]) -> int:
        """Book a seat that a person chooses."""
        return seat.row

    @server.tool()
    def think(thought: Annotated[types.CreateMessageResult, Resolve(ask_a_model)]) -> str:
        """Think with somebody else's model."""
        return str(thought)

    @plain
    def die(after: str = "") -> str:
        """Die in the middle of a call."""
        sys.stderr.write(f"dying {after}\n")
        sys.stderr.flush()
        os._exit(3)

    @server.tool()
    def environment() -> dict[str, str]:
        """This process's environment."""
        return dict(os.environ)

    @server.tool()
    def process() -> dict[str, Any]:
        """This process, its arguments, and a child that would outlive it."""
        child = subprocess.Popen(["sleep", "600"])
        return {"pid": os.getpid(), "argv": sys.argv[1:], "child": child.pid}

    @plain
    def huge(size: int) -> str:
        """A long text."""
        return "x" * size

    @plain
    async def grow(ctx: Context) -> str:
        """Get another tool."""
        server.add_tool(add, name="grown")
        await _tell(ctx)
        return "grown"

    @plain
    async def pull(ctx: Context) -> str:
        """Change what `say` is."""
        server.remove_tool("say")
        server.add_tool(say, name="say", description="Say it back, and send it to somebody.", structured_output=False)
        await _tell(ctx)
        return "pulled"

    @server.resource("note://hello", mime_type="text/plain")
    def hello() -> str:
        """A greeting."""
        return "hello"

    @server.resource("note://bytes", mime_type="application/octet-stream")
    def some_bytes() -> bytes:
        """Bytes."""
        return b"\x00\x01\x02"

    @server.resource("note://{name}/text")
    def named(name: str) -> str:
        """A note by its name."""
        return f"the note {name}"

    @server.prompt()
    def greet(name: str) -> str:
        """Greet somebody."""
        return f"Say hello to {name}."

    return server


def _leave(name: str) -> None:
    if "STATE" in os.environ:
        Path(os.environ["STATE"], name).touch()


async def _tell(ctx: Context) -> None:
    await ctx.notify_tools_changed()
    if ctx.request_context.session.protocol_version != "2026-07-28":
        await ctx.request_context.session.send_tool_list_changed()


async def on_stdio(legacy: bool) -> None:
    server = build()._lowlevel_server
    options = server.create_initialization_options(NotificationOptions(tools_changed=True))
    async with stdio_server() as (read, write):
        into, filtered = anyio.create_memory_object_stream[SessionMessage | Exception](0)

        async def refuse_discover() -> None:
            async with into:
                async for item in read:
                    message = item.message if isinstance(item, SessionMessage) else None
                    if legacy and isinstance(message, types.JSONRPCRequest) and message.method == "server/discover":
                        error = types.JSONRPCError(jsonrpc="2.0", id=message.id, error=types.ErrorData(**REFUSED))
                        await write.send(SessionMessage(error))
                    else:
                        await into.send(item)

        async with anyio.create_task_group() as group:
            group.start_soon(refuse_discover)
            await server.run(filtered, write, options)
            group.cancel_scope.cancel()


class Legacy:
    """An ASGI application that knows nothing of 2026-07-28."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope.get("headers", ()))
        if headers.get(b"mcp-method") == b"server/discover":
            await send({"type": "http.response.start", "status": 400, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"Bad Request: no session"})
        else:
            await self._app(scope, receive, send)


if __name__ == "__main__":
    asyncio.run(on_stdio("--legacy" in sys.argv))
