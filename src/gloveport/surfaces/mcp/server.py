"""The MCP server: a port's `search`, `describe` and `execute`, for any client, in both revisions of the protocol."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import OrderedDict
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
from mcp.server import NotificationOptions, Server
from mcp.server.context import ServerRequestContext
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    ListToolsResult,
    LoggingLevel,
    PaginatedRequestParams,
    SetLevelRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)

import gloveport
from gloveport.errors import GloveportError
from gloveport.host.port import Gloveport
from gloveport.surfaces.agents.descriptions import INSTRUCTIONS, TAKES, AgentTool
from gloveport.surfaces.agents.tools import AgentAnswer, AgentTools
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.mcp.content import content
from gloveport.surfaces.mcp.progress import ProgressReporter

logger = logging.getLogger("gloveport")

# How long a client waits for its list while sources are still being opened; it is told when they are.
LIST_SECONDS = 1.0
TELL_SECONDS = 5.0
MOST_SESSIONS = 256

Context = ServerRequestContext[Any, Any]
T = TypeVar("T")


class AgentServer:
    """Serves one port to the clients of one owner. `protocol` is the MCP library's server, for any transport."""

    def __init__(self, port: Gloveport, admission: Admission | None = None) -> None:
        self._port = port
        self._tools = AgentTools(port)
        self._admission = admission or Admission()
        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[str, _Session] = OrderedDict()
        self._opening: tuple[asyncio.Task[None], asyncio.Task[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready = False  # sources are open as far as they can be, and there are sandboxes
        self.protocol = _Protocol(
            "gloveport",
            version=gloveport.__version__,
            title="Gloveport",
            instructions=INSTRUCTIONS,
            get_tool_input_schema=TAKES.get,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.protocol.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        port.on_change = self._changed

    def open(self) -> tuple[asyncio.Task[None], asyncio.Task[None]]:
        """Begin to open sources, and then sandboxes; what of it is under way. Nobody has to wait for it but runs."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._port.connect()), asyncio.create_task(self._start())
        return self._opening

    async def _start(self) -> None:
        try:
            await self._port.open(naming="")
            self.ready = True
            await self._port.run("")  # the first check of types takes seconds: let nobody wait for it
        except GloveportError as error:  # each run tells it to its own caller
            logger.warning("no sandbox could be started: %s", error.message)

    async def close(self) -> None:
        """Stop what is still being opened; the port is its owner's to close."""
        for task in (*(self._opening or ()), *self._tasks):
            task.cancel()
        await asyncio.gather(*(self._opening or ()), *self._tasks, return_exceptions=True)

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        connecting, _ = self.open()
        await asyncio.wait([connecting], timeout=LIST_SECONDS)
        self._session(context).listens = context.session
        return ListToolsResult(tools=[_listed(tool) for tool in self._tools.listed(opening=not connecting.done())])

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        if params.name not in TAKES:
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!a:.80}")
        progress = ProgressReporter(context, self._session(context).level)
        try:
            async with progress:
                answer = await _to_its_end(self._answer(params, progress))
        except GloveportError as error:
            return _refused(error)
        except Exception as error:  # the outer edge: a defect of ours is told as one, without what it says of the host
            reference = secrets.token_hex(4)
            logger.error("%s: internal error %s", params.name, reference, exc_info=error)
            return _refused(GloveportError(f"something broke in Gloveport (reference {reference})"))
        return CallToolResult(
            content=content(answer, self._fitted), structured_content=dict(answer.data), is_error=answer.failed
        )

    async def _answer(self, params: CallToolRequestParams, progress: ProgressReporter) -> AgentAnswer:
        args = params.arguments or {}
        if "code" not in args:
            return await self._tools.call(params.name, args)
        async with self._admission.turn():
            return await self._tools.call(params.name, args, progress.event if progress.wanted else None)

    def _fitted(self, text: str) -> str:
        shown, rest = self._tools.fitted(text)
        return f"{shown}\n[the rest: result_id {rest['result_id']}]" if rest else shown

    async def _set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        self._session(context).level = params.level
        return EmptyResult()

    # Clients of the earlier revision have sessions; those of the later one say everything with each request.

    def _session(self, context: Context) -> _Session:
        headers = getattr(context.request, "headers", {})
        key = headers.get("mcp-session-id", "")
        session = self._sessions.setdefault(key, _Session())
        self._sessions.move_to_end(key)
        if len(self._sessions) > MOST_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _changed(self) -> None:
        task = asyncio.get_running_loop().create_task(self._tell())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self) -> None:
        await self._bus.publish(ToolsListChanged())
        listening = [session.listens for session in self._sessions.values() if session.listens is not None]
        notes = (asyncio.wait_for(session.send_tool_list_changed(), TELL_SECONDS) for session in listening)
        await asyncio.gather(*notes, return_exceptions=True)  # one that has gone, or does not read, holds up nobody


class _Session:
    """What is known of a client between its requests."""

    def __init__(self) -> None:
        self.level: LoggingLevel | None = None
        self.listens: ServerSession | None = None


class _Protocol(Server[Any]):
    """The library's server, which says on every transport that its list can change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **keywords: Any
    ) -> InitializationOptions:
        """What `initialize` answers."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *args, **keywords)


def _listed(tool: AgentTool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema),
        annotations=ToolAnnotations(read_only_hint=tool.reads_only, open_world_hint=not tool.reads_only),
    )


def _refused(error: GloveportError) -> CallToolResult:
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return CallToolResult(content=[TextContent(text=f"{error.code}: {error.message}{hint}")], is_error=True)


async def _to_its_end(work: Coroutine[Any, Any, T]) -> T:
    """The result. A cancelled request cancels the work and waits until it has let go of its sandbox.

    The library cancels by anyio scopes, which cancel every wait anew: that would interrupt the cleaning up.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
