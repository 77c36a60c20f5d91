"""The MCP server: a port's `search`, `describe` and `execute`, in both revisions of the protocol."""

from __future__ import annotations

import asyncio
import gc
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from functools import partial
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
    InputRequiredResult,
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
from gloveport.large_values import is_large, off_loop, off_loop_if
from gloveport.sandbox.jail.strength import JailReport
from gloveport.surfaces.activity_log import OnActivity, RunActivity
from gloveport.surfaces.agents.tool_descriptions import INPUT_SCHEMAS, INSTRUCTIONS, AgentTool
from gloveport.surfaces.agents.tools import AgentAnswer, AgentTools
from gloveport.surfaces.http import AGENT_SCOPE_KEY
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.mcp.content import to_content
from gloveport.surfaces.mcp.direct import MAX_ANSWER_CHARS, RESUME, DirectTools, program_of
from gloveport.surfaces.mcp.elicitation import ApprovalElicitation, state_boundary
from gloveport.surfaces.mcp.progress import ProgressReporter
from gloveport.types import DEFAULT_AGENT, Event

logger = logging.getLogger("gloveport")

# How long a client waits for the list of tools while sources are still opening; it is notified when they have opened.
LIST_TIMEOUT_SECONDS = 1.0
NOTIFY_TIMEOUT_SECONDS = 5.0
MAX_SESSIONS = 256

Context = ServerRequestContext[Any, Any]
OnReady = Callable[[JailReport], None]
T = TypeVar("T")


class AgentServer:
    """Serves one port to the clients of one owner. `protocol` is the MCP library's server; it works over any transport."""

    def __init__(
        self,
        port: Gloveport,
        admission: Admission | None = None,
        *,
        agent: str = DEFAULT_AGENT,
        direct: tuple[str, ...] = (),
        on_activity: OnActivity | None = None,
        on_ready: OnReady | None = None,
        pages: str = "",
    ) -> None:
        self._port = port
        self._agent = agent
        self._pages = pages
        self._given_direct = direct
        self._direct: dict[str, DirectTools] = {}  # by agent
        self._on_activity = on_activity
        self._on_ready = on_ready
        self._tools: dict[str, AgentTools] = {}
        self._admission = admission or Admission()
        self._bus = InMemorySubscriptionBus()
        self._sessions: OrderedDict[str, _ClientSession] = OrderedDict()
        self._opening: tuple[asyncio.Task[None], asyncio.Task[None]] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.ready = False  # all sources that work are open, and sandboxes have started
        self.protocol = _Protocol(
            "gloveport",
            version=gloveport.__version__,
            title="Gloveport",
            instructions=None if direct or port.agent(agent).direct else INSTRUCTIONS,
            get_tool_input_schema=INPUT_SCHEMAS.get,
            on_list_tools=self._list,
            on_call_tool=self._call,
            on_subscriptions_listen=ListenHandler(self._bus),
        )
        self.protocol.middleware.append(state_boundary(self._agent_of))
        self.protocol.add_request_handler("logging/setLevel", SetLevelRequestParams, self._set_level)
        port.on_change = self._on_change

    def open(self) -> tuple[asyncio.Task[None], asyncio.Task[None]]:
        """Start to open sources and sandboxes in the background; return the two tasks. Only runs have to wait for them."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._port.connect()), asyncio.create_task(self._start())
        return self._opening

    async def _start(self) -> None:
        try:
            report = await self._port.open(naming="")
            self.ready = True
            if self._on_ready is not None:
                self._on_ready(report)
            gc.freeze()  # a full collection would stop the loop for 60 ms to look at libraries and catalogs once more
            await self._port.warm()  # before a client waits for it
        except GloveportError as error:  # each run reports it to its own caller
            logger.warning("can't start a sandbox: %s", error.message)

    async def close(self) -> None:
        """Stop opening; the owner of the port closes it."""
        for task in (*(self._opening or ()), *self._tasks):
            task.cancel()
        await asyncio.gather(*(self._opening or ()), *self._tasks, return_exceptions=True)

    async def _list(self, context: Context, params: PaginatedRequestParams | None) -> ListToolsResult:
        connecting, _ = self.open()
        await asyncio.wait([connecting], timeout=LIST_TIMEOUT_SECONDS)
        self._session(context).change_listener = context.session
        catalog = await self._port.catalog_of(self._agent_of(context))
        described = self._tools_of(context).descriptions(catalog, opening=not connecting.done())
        if (direct := await self._direct_tools(context)) is not None:
            resume = [_to_mcp_tool(tool) for tool in described if tool.name == RESUME]
            return ListToolsResult(tools=[*direct.listed(), *resume])
        return ListToolsResult(tools=[_to_mcp_tool(tool) for tool in described])

    async def _call(self, context: Context, params: CallToolRequestParams) -> CallToolResult | InputRequiredResult:
        direct = await self._direct_tools(context)
        if direct is not None and params.name not in direct.by_name and not self.open()[0].done():
            await self._port.connect()  # its source may be opening
            direct = await self._direct_tools(context)
        if params.name not in (INPUT_SCHEMAS if direct is None else (*direct.by_name, RESUME)):
            raise MCPError(INVALID_PARAMS, f"there is no tool {params.name!a:.80}")
        progress = ProgressReporter(context, self._session(context).level)
        try:
            async with progress:
                answer = await _finish(self._settled_answer(params, progress, context))
        except GloveportError as error:
            return _error_result(error)
        except Exception as error:  # the outer edge: report a defect of ours without host details
            reference = secrets.token_hex(4)
            logger.error("%s: internal error %s", params.name, reference, exc_info=error)
            return _error_result(GloveportError(f"internal error in Gloveport (reference {reference})"))
        if isinstance(answer, InputRequiredResult):
            return answer
        content = await off_loop_if(is_large(answer.emitted), to_content, answer, partial(self._fit, context))
        return CallToolResult(content=content, structured_content=dict(answer.data), is_error=answer.failed)

    async def _settled_answer(
        self, params: CallToolRequestParams, progress: ProgressReporter, context: Context
    ) -> AgentAnswer | InputRequiredResult:
        """Return the answer to a call; where the client is trusted for it, its user is asked about calls that wait."""
        tools = self._tools_of(context)
        elicitation = ApprovalElicitation(self._port, self._agent_of(context), context, params)

        async def resume(run: str) -> AgentAnswer:
            return await tools.call("resume", {"run": run})

        run = elicitation.resumed
        answer = await (self._answer(params, progress, context) if run is None else resume(run))
        return await elicitation.settle(answer, resume)

    async def _answer(self, params: CallToolRequestParams, progress: ProgressReporter, context: Context) -> AgentAnswer:
        args, tools = params.arguments or {}, self._tools_of(context)
        direct = await self._direct_tools(context)
        chosen = None if direct is None else direct.by_name.get(params.name)
        if chosen is None and "code" not in args:
            return await tools.call(params.name, args)
        run = partial(tools.call, params.name, args)
        if chosen is not None:
            run = partial(tools.run_with, program_of(chosen), args)
        async with self._admission.run_slot(self._agent_of(context)):
            if self._on_activity is None:
                return await run(on_event=progress.on_event if progress.wanted else None)
            activity = RunActivity(self._shown_agent(context), self._on_activity)
            return await _run_logged(run, progress, activity)

    async def _direct_tools(self, context: Context) -> DirectTools | None:
        """Return the tools that the agent gets directly; None for an agent that writes programs."""
        agent = self._agent_of(context)
        patterns = self._patterns(agent)
        if not patterns:
            return None
        catalog, known = await self._port.catalog_of(agent), self._direct.get(agent)
        if known is None or known.catalog is not catalog or known.patterns != patterns:
            known = self._direct[agent] = await off_loop(DirectTools, catalog, patterns)
        return known

    def _patterns(self, agent: str) -> tuple[str, ...]:
        return self._given_direct or self._port.agent(agent).direct

    def _agent_of(self, context: Context) -> str:
        """Return the agent whose token came with the request; over stdio, the one that the command line names."""
        scope = getattr(context.request, "scope", {})
        return scope.get(AGENT_SCOPE_KEY, self._agent)

    def _tools_of(self, context: Context) -> AgentTools:
        agent = self._agent_of(context)
        if agent not in self._tools:
            direct = bool(self._patterns(agent))
            bounds: dict[str, Any] = {"max_chars": MAX_ANSWER_CHARS, "reads_on": False} if direct else {}
            self._tools[agent] = AgentTools(self._port, agent=agent, pages=self._pages, **bounds)
        return self._tools[agent]

    def _shown_agent(self, context: Context) -> str:
        agent = self._agent_of(context)
        return _client_name(context) if agent == DEFAULT_AGENT else agent

    def _fit(self, context: Context, text: str) -> str:
        shown, rest = self._tools_of(context).fit(text)
        more = f"[the rest: result_id {rest['result_id']}]" if "result_id" in rest else "[the rest is left out]"
        return f"{shown}\n{more}" if rest else shown

    async def _set_level(self, context: Context, params: SetLevelRequestParams) -> EmptyResult:
        self._session(context).level = params.level
        return EmptyResult()

    # Clients of the earlier revision have sessions; those of the later one send their settings with each request.

    def _session(self, context: Context) -> _ClientSession:
        headers = getattr(context.request, "headers", {})
        key = headers.get("mcp-session-id", "")
        session = self._sessions.setdefault(key, _ClientSession())
        self._sessions.move_to_end(key)
        if len(self._sessions) > MAX_SESSIONS:
            self._sessions.popitem(last=False)
        return session

    def _on_change(self) -> None:
        task = asyncio.get_running_loop().create_task(self._notify_change())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _notify_change(self) -> None:
        await self._bus.publish(ToolsListChanged())
        listening = [session.change_listener for session in self._sessions.values() if session.change_listener is not None]
        notes = (asyncio.wait_for(session.send_tool_list_changed(), NOTIFY_TIMEOUT_SECONDS) for session in listening)
        await asyncio.gather(*notes, return_exceptions=True)  # a client that is gone or does not read delays nobody


class _ClientSession:
    """What the server remembers of a client between its requests."""

    def __init__(self) -> None:
        self.level: LoggingLevel | None = None
        self.change_listener: ServerSession | None = None


async def _run_logged(
    run: Callable[..., Coroutine[Any, Any, AgentAnswer]], progress: ProgressReporter, activity: RunActivity
) -> AgentAnswer:
    def on_event(event: Event) -> None:
        activity.on_event(event)
        if progress.wanted:
            progress.on_event(event)

    with activity.failing():
        answer = await run(on_event=on_event)
    activity.run = str(answer.data.get("run", ""))
    activity.ended(str(answer.data.get("status")), dict(answer.data.get("error") or {}).get("code"), answer.setting)
    return answer


class _Protocol(Server[Any]):
    """The library's server; it declares on every transport that its list of tools can change."""

    def create_initialization_options(
        self, notification_options: NotificationOptions | None = None, *args: Any, **keywords: Any
    ) -> InitializationOptions:
        """Return the options that `initialize` answers with."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, *args, **keywords)


def _client_name(context: Context) -> str:
    """Return what the client calls itself; a dash if it does not say."""
    known = context.session.client_params
    return (known.client_info.name if known else "") or "-"


def _to_mcp_tool(tool: AgentTool) -> Tool:
    return Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=dict(tool.input_schema),
        output_schema=dict(tool.output_schema),
        annotations=ToolAnnotations(read_only_hint=tool.reads_only, open_world_hint=not tool.reads_only),
    )


def _error_result(error: GloveportError) -> CallToolResult:
    hint = f"\nhint: {error.hint}" if error.hint else ""
    return CallToolResult(content=[TextContent(text=f"{error.code}: {error.message}{hint}")], is_error=True)


async def _finish(work: Coroutine[Any, Any, T]) -> T:
    """Return the result. If the request is cancelled, cancel the work and wait until it has released its sandbox.

    The library cancels with anyio scopes, which cancel every wait again: that would interrupt the clean-up.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.cancel()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([task])
        raise
