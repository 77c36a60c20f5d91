"""An MCP server as a source: one live session, shared by all calls and restarted when it dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from typing import Any, Literal

import mcp_types as mcp
import msgspec
from pydantic import TypeAdapter

from gloveport.config import SourceConfig
from gloveport.errors import SourceError, TooComplexError, ToolError
from gloveport.large_values import off_loop
from gloveport.policy.credentials.configured import TOKEN_SLOT
from gloveport.sources import SourceInfo
from gloveport.sources.context import TaskRunner
from gloveport.sources.mcp.connection import ActiveCall, ServerConnection
from gloveport.sources.mcp.elicitation import CallProgress, OnElicit, OnProgress
from gloveport.sources.mcp.pagination import all_pages
from gloveport.sources.mcp.restart_backoff import RestartBackoff
from gloveport.sources.mcp.results import value_of
from gloveport.sources.mcp.server_features import ServerFeature, server_features
from gloveport.sources.mcp.session import NOBODY_TO_ASK, EndedDuringDiscovery, Session
from gloveport.sources.mcp.tool_list import ListedTool, digest, read_only_hints, to_parts
from gloveport.sources.mcp.tool_rows import ServerTool, check_rows, fingerprint
from gloveport.sources.pins import definition_text
from gloveport.sources.texts import clean
from gloveport.sources.unknown_slots import unknown_slots
from gloveport.types import Tool

logger = logging.getLogger("gloveport")

COMPILE_TASK = "gloveport.sources.mcp.compile.task:compile_tool_list"
CALL_RESULT: TypeAdapter[Any] = TypeAdapter(mcp.CallToolResult | mcp.InputRequiredResult)
MAX_INPUT_ROUNDS = 10
MAX_WARNINGS = 100
MAX_QUESTIONS = 16
POLL_SECONDS = 0.25
RELIST_SECONDS = 1.0


class McpSource:
    """The tools, resources and prompts of one server; made by `open_mcp`.

    A tool that has changed since the caller got it is not called any more (M4): its address answers again once the caller
    has taken the new one from `tools()`. Subscribers learn when that is due.
    """

    attributes_errors: Literal[True] = True

    def __init__(
        self,
        config: SourceConfig,
        connect: Callable[[], ServerConnection],
        tasks: TaskRunner,
        *,
        on_progress: OnProgress | None = None,
        on_elicit: OnElicit | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = config.name
        self._title = ""
        self._warnings: tuple[str, ...] = ()
        self._subscribers: list[Callable[[], None]] = []
        self._config = config
        self._connect = connect
        self._tasks = tasks
        self._on_progress = on_progress
        self._on_elicit = on_elicit
        self._backoff = RestartBackoff(clock)
        self._lock = asyncio.Lock()
        self._session: Session | None = None
        self._newest: Session | None = None
        self._legacy = False
        self._closed = False
        self._tools: dict[str, ServerTool] = {}
        self._compiled: tuple[str, dict[str, ServerTool], list[str]] | None = None
        self._hints: Mapping[str, bool] = {}
        self._features: dict[str, ServerFeature] = {}
        self._fingerprints: dict[str, str] = {}
        self._stale = False
        self._refresher: asyncio.Task[None] | None = None

    def source_info(self) -> SourceInfo:
        """Return the server's title, and warnings about its last list of tools."""
        definition_of = partial(_definition, self._tools, self._features)
        prints = self._fingerprints
        read_only = tuple(address for address, tool in self._tools.items() if self._hints.get(tool.name))
        return SourceInfo(
            self._title, warnings=self._warnings, fingerprints=prints, definition_of=definition_of, read_only=read_only
        )

    def subscribe_to_changes(self, on_change: Callable[[], None]) -> None:
        """Call `on_change` each time that the list of tools has changed."""
        self._subscribers.append(on_change)

    def tools(self) -> Sequence[Tool]:
        """Return the tools of the server's last list, then those for its resources and prompts."""
        return [each.tool for each in self._tools.values()] + [each.tool for each in self._features.values()]

    @property
    def state(self) -> str:
        """Whether it can be called, in a few words."""
        if self._session and self._session.alive:
            return "live"
        return f"rests for {self._backoff.wait:.0f} s" if self._backoff.wait else "starts with the next call"

    # Calls.

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """Return the server's answer. A call that was in progress when the server died is never repeated."""
        sent = _to_json_data(tool, args)
        for last in (False, True):
            session = await self._live_session()
            self._check_unchanged(tool)
            call = ActiveCall(tool.address)
            try:
                return await self._call_once(session, call, tool, sent)
            except ToolError as error:
                if call.session_unknown and not last:
                    continue  # the server has done nothing: start a new session and call again
                error.tool = tool.address
                error.hint = error.hint or call.refused
                raise
        raise AssertionError("unreachable")

    async def _call_once(self, session: Session, call: ActiveCall, tool: Tool, args: dict[str, Any]) -> Any:
        async def send(request: Any, result: Any) -> Any:
            return await self._final_result(session, call, request, result)

        if feature := self._features.get(tool.address):
            return await feature.call(send, args, self._config.max_response_bytes)
        name = self._tools[tool.address].name
        request = mcp.CallToolRequest(params=mcp.CallToolRequestParams(name=name, arguments=args))
        return await value_of(await send(request, CALL_RESULT), call.structured, tool.address)

    async def _final_result(self, session: Session, call: ActiveCall, request: Any, result: Any) -> Any:
        """Return the final result; a 2026-07-28 server may first ask for input, and then gets the request again."""
        on_progress = self._progress(call) if self._on_progress else None
        for _ in range(MAX_INPUT_ROUNDS):
            found = await session.run(call, _sender(request, result, on_progress))
            if not isinstance(found, mcp.InputRequiredResult):
                return found
            answers = await self._answers(session, call, found.input_requests or {})
            more = {"input_responses": answers or None, "request_state": found.request_state}
            request = request.model_copy(update={"params": request.params.model_copy(update=more)})
        raise ToolError("the server asks for input again and again", tool=call.tool)

    async def _answers(self, session: Session, call: ActiveCall, asked: Mapping[str, mcp.InputRequest]) -> dict[str, Any]:
        if not asked:
            await asyncio.sleep(POLL_SECONDS)  # the server only asks for the request to be repeated
        if len(asked) > MAX_QUESTIONS:
            raise ToolError("the server asks for too much input at once", tool=call.tool)
        return {key: await self._answer(session, call, each) for key, each in asked.items()}

    async def _answer(self, session: Session, call: ActiveCall, asked: mcp.InputRequest) -> Any:
        if not isinstance(asked, mcp.ElicitRequest):
            message = f"the server asks for {asked.method}, which it can't have here"
            raise ToolError(message, tool=call.tool)
        if self._on_elicit is None:
            message = f"the server asks: {clean(asked.params.message, 500)}"
            raise ToolError(message, tool=call.tool, hint=NOBODY_TO_ASK)
        return await session.ask(asked.params, call)

    def _progress(self, call: ActiveCall) -> Any:
        async def report(progress: float, total: float | None, message: str | None) -> None:
            if self._on_progress:
                text = clean(message, 500) if message else None
                self._on_progress(CallProgress(self.name, call.tool, progress, total, text))

        return report

    def _check_unchanged(self, tool: Tool) -> None:
        if tool.address in self._features:
            return
        now = self._tools.get(tool.address)
        if now is None:
            message = f"the server of {self.name} does not have this tool any more"
            raise ToolError(message, code="unknown-tool", tool=tool.address)
        if now.tool is not tool and now.fingerprint != fingerprint(tool):
            message = f"the server of {self.name} has changed this tool since it was listed"
            setting = f"look at the change with `gloveport tools changes {self.name}` and accept it"
            raise ToolError(message, code="tool-suspended", tool=tool.address, setting=setting)

    # Life cycle.

    async def open(self) -> McpSource:
        """Begin the first session and list the tools; raise SourceError."""
        async with self._lock:
            await self._begin()
        return self

    async def close(self) -> None:
        """End the session and the server's process, with its children; calling it twice is no error."""
        self._closed = True
        if self._refresher:
            self._refresher.cancel()
            await asyncio.wait({self._refresher})
        if self._newest:
            await self._newest.close()

    async def _live_session(self) -> Session:
        """Return the session, restarted if it has died; raise ToolError when that fails or is not allowed yet."""
        if self._session and self._session.alive:
            return self._session
        async with self._lock:
            if self._closed:
                raise ToolError(f"the source {self.name} is closed", code="source-unreachable")
            if self._session and self._session.alive:
                return self._session
            if self._session:
                await self._discard(self._session)
            if wait := self._backoff.wait:
                message = (
                    f"the server of {self.name} has died {self._backoff.deaths} times in a row; it rests for {wait:.0f} s"
                )
                raise ToolError(message, code="source-unreachable", retryable=True)
            try:
                return await self._begin()
            except SourceError as error:
                self._backoff.died()
                code = "source-unreachable" if error.code == SourceError.code else error.code
                raise ToolError(error.message, code=code, retryable=True, setting=error.hint) from None

    async def _discard(self, session: Session) -> None:
        self._session = None
        self._backoff.died()
        await session.close()

    async def _begin(self) -> Session:
        try:
            session = await self._start_session(legacy=self._legacy)
        except EndedDuringDiscovery:
            session = await self._start_session(legacy=True)
        self._legacy = session.legacy
        self._backoff.started()
        self._stale = False
        try:
            await self._list(session)
        except ToolError as error:
            await session.close()
            message = f"the tools of the source {self.name} can't be listed: {error.message}"
            code = error.code if error.code == "definition-too-complex" else None
            raise SourceError(message, code=code, hint=error.advice) from None
        except BaseException:
            await session.close()
            raise
        self._session = session
        if self._stale:
            self._list_changed()
        return session

    async def _start_session(self, *, legacy: bool) -> Session:
        session = self._newest = Session(
            self.name,
            self._connect(),
            timeout=self._config.timeout_seconds,
            on_elicit=self._on_elicit,
            on_list_changed=self._list_changed,
            legacy=legacy,
        )
        await session.start()
        return session

    # The list of tools.

    async def _list(self, session: Session) -> None:
        has_slot = isinstance(self._config.location, str)  # a command gets its secrets in its environment
        warnings = list(unknown_slots(self.name, tuple(self._config.credentials), (TOKEN_SLOT,))) if has_slot else []
        capabilities, info = session.client.server_capabilities, session.client.server_info
        tools: dict[str, ServerTool] = {}
        if capabilities and capabilities.tools:
            tools = await self._compile(await self._listed(session, warnings), warnings)
        features = server_features(self.name, capabilities)
        before = self._fingerprints
        self._tools, self._features, self._fingerprints = await off_loop(self._chosen, tools, features, warnings)
        self._title = clean(info.title or info.name, 200) if info else ""
        self._warnings = tuple(warnings[:MAX_WARNINGS])
        if before != self._fingerprints or list(before) != list(self._fingerprints):
            self._notify()

    def _chosen(
        self, tools: Mapping[str, ServerTool], features: Mapping[str, ServerFeature], warnings: list[str]
    ) -> tuple[dict[str, ServerTool], dict[str, ServerFeature], dict[str, str]]:
        """Return the tools and features that the settings leave, and the fingerprint of each by address."""
        addresses = self._filtered([*tools, *features], warnings)
        kept = {address: self._unchanged_or(tools[address]) for address in addresses if address in tools}
        offered = {address: features[address] for address in addresses if address in features}
        prints = {address: each.fingerprint for listed in (kept, offered) for address, each in listed.items()}
        return kept, offered, prints

    async def _listed(self, session: Session, warnings: list[str]) -> list[ListedTool]:
        """Return the tools of all pages of the server's list."""
        session.take_listed()  # what a list that failed has left behind

        def take(_: mcp.ListToolsResult) -> list[ListedTool]:
            pages = session.take_listed()
            warnings.extend(warning for page in pages for warning in page.warnings[:MAX_WARNINGS])
            return [tool for page in pages for tool in page.tools]

        return await all_pages(
            lambda params: session.run(ActiveCall("tools/list"), lambda client: client.list_tools(params=params)),
            take,
            lambda _, tools: sum(len(tool.text) for tool in tools),
            self._config.max_response_bytes,
            warnings.append,
        )

    async def _compile(self, listed: list[ListedTool], warnings: list[str]) -> dict[str, ServerTool]:
        """Return the compiled tools of a list; a task compiles it unless it is the same list as before."""
        parts = await off_loop(to_parts, listed)
        key = await off_loop(digest, parts)
        if self._compiled is None or self._compiled[0] != key:
            try:
                batches = await self._tasks.run(COMPILE_TASK, parts)
                trusted = self._config.trust_annotations
                self._hints = hints = read_only_hints(listed)
                checked = await off_loop(check_rows, self.name, batches, hints, trust_annotations=trusted)
            except (SourceError, TooComplexError) as error:
                code = "definition-too-complex" if isinstance(error, TooComplexError) else error.code
                raise ToolError(error.message, code=code, setting=error.hint) from None
            self._compiled = key, *checked
        _, tools, problems = self._compiled
        warnings += problems
        return tools

    def _unchanged_or(self, listed: ServerTool) -> ServerTool:
        """Return the tool that callers already have where it is the same, else the listed one."""
        before = self._tools.get(listed.tool.address)
        same = before and before.name == listed.name and before.fingerprint == listed.fingerprint
        return before if before and same else listed

    def _notify(self) -> None:
        for on_change in self._subscribers:
            try:
                on_change()
            except Exception:
                logger.exception("a subscriber of the source %s raised; the source goes on", self.name)

    def _filtered(self, addresses: Sequence[str], warnings: list[str]) -> list[str]:
        """Return the addresses that `include` and `exclude` leave; their patterns omit the source's name."""
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
            await asyncio.sleep(RELIST_SECONDS)  # a server that announces changes all the time is not asked all the time


def _definition(tools: Mapping[str, ServerTool], features: Mapping[str, ServerFeature], tool: Tool) -> bytes:
    """Return the description and the schemas of a tool as one JSON text, without decoding them."""
    if found := tools.get(tool.address):
        return definition_text(tool.description, found.takes, found.gives)
    feature = features[tool.address].tool
    takes, gives = map(msgspec.json.encode, (feature.input_schema, feature.output_schema))
    return definition_text(feature.description, takes, gives)


def _to_json_data(tool: Tool, args: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments as JSON data: dates as text, bytes in base64."""
    sent = msgspec.to_builtins(args, str_keys=True)
    try:
        msgspec.json.encode(sent)
    except (UnicodeEncodeError, RecursionError):
        message = "an argument has half of a surrogate pair in it, or is nested too deeply"
        raise ToolError(message, code="bad-arguments", tool=tool.address) from None
    return sent


def _sender(request: Any, result: Any, on_progress: Any) -> Callable[[Any], Any]:
    return lambda client: client.send_request(request, result, progress_callback=on_progress)
