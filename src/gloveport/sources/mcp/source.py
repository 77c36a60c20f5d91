"""An MCP server as a source: one live session, shared by all calls and begun again when it dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import mcp_types as mcp
import msgspec
from pydantic import TypeAdapter

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, ToolError
from gloveport.sources.mcp.connection import Call, Connection
from gloveport.sources.mcp.elicitation import OnElicit, OnProgress, Progress
from gloveport.sources.mcp.listing import all_pages, tools_of
from gloveport.sources.mcp.offerings import Offering, offerings
from gloveport.sources.mcp.restarts import Restarts
from gloveport.sources.mcp.results import value_of
from gloveport.sources.mcp.session import UNABLE, Session, Startled
from gloveport.sources.texts import clean
from gloveport.types import Tool

logger = logging.getLogger("gloveport")

CALLED: TypeAdapter[Any] = TypeAdapter(mcp.CallToolResult | mcp.InputRequiredResult)
MOST_ROUNDS = 10
MOST_WARNINGS = 100
MOST_QUESTIONS = 16
POLL_SECONDS = 0.25
RELIST_SECONDS = 1.0


class McpSource:
    """The tools, resources and prompts of one server; made by `open_mcp`.

    `on_change`, where set, is called when the list of tools has changed. A tool that is not as it was when the caller got
    it is not called any more (M4): its address answers again once the caller has taken the new one from `tools()`.
    """

    def __init__(
        self,
        config: SourceConfig,
        connect: Callable[[], Connection],
        *,
        on_progress: OnProgress | None = None,
        on_elicit: OnElicit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = config.name
        self.title = ""
        self.warnings: tuple[str, ...] = ()
        self.on_change: Callable[[], None] | None = None
        self._config = config
        self._connect = connect
        self._on_progress = on_progress
        self._on_elicit = on_elicit
        self._restarts = Restarts(clock)
        self._lock = asyncio.Lock()
        self._session: Session | None = None
        self._newest: Session | None = None
        self._legacy = False
        self._closed = False
        self._tools: dict[str, tuple[Tool, str]] = {}
        self._offerings: Mapping[str, Offering] = {}
        self._stale = False
        self._refresher: asyncio.Task[None] | None = None

    def tools(self) -> Sequence[Tool]:
        """The server's tools as it listed them last, then what it offers besides."""
        return [tool for tool, _ in self._tools.values()] + [each.tool for each in self._offerings.values()]

    @property
    def state(self) -> str:
        """Whether it can be called, in a word or two."""
        if self._session and self._session.alive:
            return "live"
        return f"rests for {self._restarts.wait:.0f} s" if self._restarts.wait else "starts with the next call"

    # Calls.

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """What the server answered. A call that was under way when the server died is never made again."""
        sent = _sent(tool, args)
        for last in (False, True):
            session = await self._live()
            self._check(tool)
            call = Call(tool.address)
            try:
                return await self._made(session, call, tool, sent)
            except ToolError as error:
                if call.forgotten and not last:
                    continue  # a server that did not know the session has not done anything
                error.tool = tool.address
                error.hint = error.hint or call.refused
                raise
        raise AssertionError("unreachable")

    async def _made(self, session: Session, call: Call, tool: Tool, args: dict[str, Any]) -> Any:
        async def send(request: Any, result: Any) -> Any:
            return await self._answered(session, call, request, result)

        if offering := self._offerings.get(tool.address):
            return await offering.call(send, args, self._config.max_response_bytes)
        name = self._tools[tool.address][1]
        request = mcp.CallToolRequest(params=mcp.CallToolRequestParams(name=name, arguments=args))
        return value_of(await send(request, CALLED), tool.address)

    async def _answered(self, session: Session, call: Call, request: Any, result: Any) -> Any:
        """The final result: a 2026-07-28 server may ask for input first, and be asked again with the answers."""
        on_progress = self._progress(call) if self._on_progress else None
        for _ in range(MOST_ROUNDS):
            found = await session.run(call, _sender(request, result, on_progress))
            if not isinstance(found, mcp.InputRequiredResult):
                return found
            answers = await self._answers(session, call, found.input_requests or {})
            more = {"input_responses": answers or None, "request_state": found.request_state}
            request = request.model_copy(update={"params": request.params.model_copy(update=more)})
        raise ToolError("the server asks for input again and again", tool=call.tool)

    async def _answers(self, session: Session, call: Call, asked: Mapping[str, mcp.InputRequest]) -> dict[str, Any]:
        if not asked:
            await asyncio.sleep(POLL_SECONDS)  # it only wants to be asked again
        if len(asked) > MOST_QUESTIONS:
            raise ToolError("the server asks for too much input at once", tool=call.tool)
        return {key: await self._answer(session, call, each) for key, each in asked.items()}

    async def _answer(self, session: Session, call: Call, asked: mcp.InputRequest) -> Any:
        if not isinstance(asked, mcp.ElicitRequest):
            message = f"the server asks for {asked.method}, which it can't have here"
            raise ToolError(message, tool=call.tool)
        if self._on_elicit is None:
            message = f"the server asks: {clean(asked.params.message, 500)}"
            raise ToolError(message, tool=call.tool, hint=UNABLE)
        return await session.ask(asked.params, call)

    def _progress(self, call: Call) -> Any:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if self._on_progress:
                told = clean(message, 500) if message else None
                self._on_progress(Progress(self.name, call.tool, progress, total, told))

        return report

    def _check(self, tool: Tool) -> None:
        if tool.address in self._offerings:
            return
        now = self._tools.get(tool.address)
        if now is None:
            message = f"the server of {self.name} does not have this tool any more"
            raise ToolError(message, code="unknown-tool", tool=tool.address)
        if not _same(now[0], tool):
            message = f"the server of {self.name} has changed this tool since it was listed"
            raise ToolError(message, code="tool-suspended", tool=tool.address, hint="look at the change and accept it")

    # Life.

    async def open(self) -> McpSource:
        """Begins the first session and lists the tools; raises SourceError."""
        async with self._lock:
            await self._begin()
        return self

    async def close(self) -> None:
        """Ends the session and the server's process, its children too; calling it twice is no error."""
        self._closed = True
        if self._refresher:
            self._refresher.cancel()
            await asyncio.wait({self._refresher})
        if self._newest:
            await self._newest.close()

    async def _live(self) -> Session:
        """The session, begun again if it has died; raises ToolError when it can't be, or not yet."""
        if self._session and self._session.alive:
            return self._session
        async with self._lock:
            if self._closed:
                raise ToolError(f"the source {self.name} is closed", code="source-unreachable")
            if self._session and self._session.alive:
                return self._session
            if self._session:
                await self._bury(self._session)
            if wait := self._restarts.wait:
                message = (
                    f"the server of {self.name} has died {self._restarts.deaths} times in a row; it rests for {wait:.0f} s"
                )
                raise ToolError(message, code="source-unreachable", retryable=True)
            try:
                return await self._begin()
            except SourceError as error:
                self._restarts.died()
                code = "source-unreachable" if error.code == SourceError.code else error.code
                raise ToolError(error.message, code=code, retryable=True, hint=error.hint) from None

    async def _bury(self, session: Session) -> None:
        self._session = None
        self._restarts.died()
        await session.close()

    async def _begin(self) -> Session:
        try:
            session = await self._started(legacy=self._legacy)
        except Startled:
            session = await self._started(legacy=True)
        self._legacy = session.legacy
        self._restarts.born()
        self._stale = False
        try:
            await self._list(session)
        except ToolError as error:
            await session.close()
            raise SourceError(f"the tools of the source {self.name} can't be listed: {error.message}") from None
        except BaseException:
            await session.close()
            raise
        self._session = session
        if self._stale:
            self._list_changed()
        return session

    async def _started(self, *, legacy: bool) -> Session:
        session = self._newest = Session(
            self.name,
            self._connect(),
            timeout=self._config.timeout_seconds,
            on_elicit=self._on_elicit,
            on_listing=self._list_changed,
            legacy=legacy,
        )
        await session.start()
        return session

    # The list of tools.

    async def _list(self, session: Session) -> None:
        warnings: list[str] = []
        capabilities, info = session.client.server_capabilities, session.client.server_info
        listed: list[mcp.Tool] = []
        if capabilities and capabilities.tools:
            listed = await all_pages(
                lambda params: session.run(Call("tools/list"), lambda client: client.list_tools(params=params)),
                lambda page: page.tools,
                self._config.max_response_bytes,
                warnings.append,
            )
        tools = tools_of(self.name, listed, trust_annotations=self._config.trust_annotations, warn=warnings.append)
        others = offerings(self.name, capabilities)
        chosen = self._chosen([*tools, *others], warnings)
        before = self.tools()
        self._tools = {address: self._as_before(tools[address]) for address in chosen if address in tools}
        self._offerings = {address: others[address] for address in chosen if address in others}
        self.title = clean(info.title or info.name, 200) if info else ""
        self.warnings = (*session.dropped(), *warnings)[:MOST_WARNINGS]
        now = self.tools()
        if len(now) != len(before) or not all(map(_same, now, before)):
            self._tell()

    def _as_before(self, listed: tuple[Tool, str]) -> tuple[Tool, str]:
        """The tool that callers have already, where it is the same."""
        before = self._tools.get(listed[0].address)
        return before if before and before[1] == listed[1] and _same(before[0], listed[0]) else listed

    def _tell(self) -> None:
        if self.on_change is None:
            return
        try:
            self.on_change()
        except Exception:
            logger.exception("on_change of the source %s raised; the source goes on", self.name)

    def _chosen(self, addresses: Sequence[str], warnings: list[str]) -> list[str]:
        """The addresses that `include` and `exclude` leave; their patterns don't have the source's name."""
        paths = {address: address.partition(".")[2] for address in addresses}
        for pattern in (*self._config.include, *self._config.exclude):
            if not any(fnmatchcase(path, pattern) for path in paths.values()):
                warnings.append(f"no tool matches {pattern!r}")

        def among(path: str, patterns: tuple[str, ...]) -> bool:
            return any(fnmatchcase(path, pattern) for pattern in patterns)

        include, exclude = self._config.include, self._config.exclude
        return [a for a, path in paths.items() if (not include or among(path, include)) and not among(path, exclude)]

    def _list_changed(self) -> None:
        self._stale = True
        if self._session and not self._closed and (self._refresher is None or self._refresher.done()):
            self._refresher = asyncio.create_task(self._refresh())

    async def _refresh(self) -> None:
        while self._stale and (session := self._session) and session.alive:
            self._stale = False
            try:
                await self._list(session)
            except ToolError as error:
                logger.info("the tools of the source %s could not be listed again: %s", self.name, error.code)
            await asyncio.sleep(RELIST_SECONDS)  # a server that says so all the time is not asked all the time


def _same(one: Tool, other: Tool) -> bool:
    # The order of the properties is that of positional arguments, and no part of equality.
    return one is other or (one == other and one.parameters == other.parameters)


def _sent(tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
    """The arguments as JSON has them: dates as text, bytes in base64."""
    sent = msgspec.to_builtins(args, str_keys=True)
    try:
        msgspec.json.encode(sent)
    except (UnicodeEncodeError, RecursionError):
        message = "an argument has half of a surrogate pair in it, or is nested too deeply"
        raise ToolError(message, code="bad-arguments", tool=tool.address) from None
    return sent


def _sender(request: Any, result: Any, on_progress: Any) -> Callable[[Any], Any]:
    return lambda client: client.send_request(request, result, progress_callback=on_progress)
