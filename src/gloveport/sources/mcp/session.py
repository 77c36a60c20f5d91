"""A live session with one server: one task owns it from the first message to the last, and any task may call through it.

The library's scopes must be left by the task that entered them. `_own` is that task; callers only wait for replies.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, TypeVar

import anyio
import mcp_types as mcp
from mcp.client import ClientRequestContext, ClientSession, IncomingMessage
from mcp.client.subscriptions import SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from gloveport.errors import SourceError, ToolError
from gloveport.sources.mcp.connection import CURRENT_CALL, REPLY_TOO_LARGE, ActiveCall, ServerConnection
from gloveport.sources.mcp.dispatcher import TolerantDispatcher, first_error
from gloveport.sources.mcp.elicitation import OnElicit, to_question, to_result
from gloveport.sources.mcp.results import MAX_MESSAGE_CHARS
from gloveport.sources.mcp.tool_list import ListedPage
from gloveport.sources.texts import clean

logger = logging.getLogger("gloveport")

ResultT = TypeVar("ResultT")

CLIENT = mcp.Implementation(name="gloveport", version="1")
CLOSE_SECONDS = 10.0
FIRST_RELISTEN_SECONDS = 5.0
MAX_RELISTEN_SECONDS = 300.0
INPUT_REQUIRED_CODES = (mcp.URL_ELICITATION_REQUIRED, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY)
NOBODY_TO_ASK = "the server wants to ask a person or a model, and there is none to ask here"


class Session:
    """One session. It ends when its server does, or by `close`; from then on `alive` is false."""

    def __init__(
        self,
        source: str,
        connection: ServerConnection,
        *,
        timeout: float,
        on_elicit: OnElicit | None,
        on_list_changed: Callable[[], None],
        legacy: bool = False,
    ) -> None:
        self._source = source
        self._connection = connection
        self._timeout = timeout
        self._on_elicit = on_elicit
        self._on_list_changed = on_list_changed
        self._legacy = legacy
        self._client: ClientSession | None = None
        self._calls: set[ActiveCall] = set()
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None
        self._dispatcher: TolerantDispatcher | None = None

    @property
    def alive(self) -> bool:
        """Whether calls can be made."""
        return self._client is not None and not self._connection.lost.is_set()

    @property
    def client(self) -> ClientSession:
        """The library's session, which exists from `start` on."""
        assert self._client is not None
        return self._client

    @property
    def legacy(self) -> bool:
        """Whether the server speaks 2025-11-25 or an earlier version."""
        return self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS

    def take_listed(self) -> list[ListedPage]:
        """Return, and forget, the pages of tools that the server has listed."""
        assert self._dispatcher
        listed, self._dispatcher.listed = self._dispatcher.listed, []
        return listed

    # Life cycle.

    async def start(self) -> None:
        """Connect and agree on a protocol version; raise SourceError, after which nothing is left of the attempt."""
        call = ActiveCall("")
        token = CURRENT_CALL.set(call)  # the owner inherits it, so that the connection can report what was wrong
        self._owner = asyncio.create_task(self._own(), name=f"gloveport mcp {self._source}")
        CURRENT_CALL.reset(token)
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.shield(self._ready)
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise self._failed(f"did not answer within {self._timeout:g} s") from None
            if (problem := call.problem) and isinstance(error, Exception):
                message = f"the source {self._source} can't be opened: {problem.message}"
                raise SourceError(message, code=problem.code, hint=problem.advice) from None
            raise

    async def close(self) -> None:
        """End the session; the server's process is gone when this returns."""
        self._closing.set()
        owner = self._owner
        if owner is None:
            return
        if self._client is None:
            owner.cancel()  # the session has not begun yet
        _, late = await asyncio.wait({owner}, timeout=CLOSE_SECONDS)
        if late:
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_SECONDS)

    async def _own(self) -> None:
        try:
            async with self._connection.open() as (read, write):
                dispatcher = self._dispatcher = TolerantDispatcher(read, write, self._connection.claim, self._note_refused)
                async with ClientSession(
                    dispatcher=dispatcher,
                    client_info=CLIENT,
                    message_handler=self._receive,
                    elicitation_callback=self._elicit if self._on_elicit else None,
                ) as client:
                    await self._negotiate(client)
                    dispatcher.version = client.protocol_version or ""
                    self._client = client
                    self._settle(None)
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._listen, client)
                        await self._ended()
                        group.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - the outer edge of the session: its callers get the error
            self._settle(error)
        finally:
            self._connection.lost.set()
            self._settle(None)

    def _settle(self, error: BaseException | None) -> None:
        if self._ready.done():
            if error is not None:
                logger.info("the session of the source %s ended: %s", self._source, type(error).__name__)
            return
        if self._client is not None:
            self._ready.set_result(None)
            return
        own = _first(error, SourceError) if error else None
        self._ready.set_exception(own or self._failed("can't be talked to", error))
        self._ready.exception()  # mark it as retrieved: whoever waited may have gone

    async def _ended(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._closing, self._connection.lost)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _negotiate(self, client: ClientSession) -> None:
        """Agree on the newest protocol that both speak: `server/discover` for 2026-07-28, else the older handshake."""
        for last in (False, True):
            with suppress(MCPError, ValidationError, RuntimeError):
                if not self._legacy:
                    await client.discover()
                    return
            if not self._legacy and self._connection.lost.is_set():
                raise EndedDuringDiscovery(f"the server of the source {self._source} ended")
            call = CURRENT_CALL.get()
            refused = call.problem if call and call.problem and call.problem.code == "auth-required" else None
            try:
                await client.initialize()
            except MCPError as error:
                # A server that was slow to start has answered `server/discover` after all: use that.
                if last or error.code != mcp.UNSUPPORTED_PROTOCOL_VERSION:
                    if call and refused:  # it does not speak the older protocol: what it wants is a credential
                        call.problem = refused
                    raise
            else:
                return

    # What the server sends by itself.

    async def _receive(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp.ToolListChangedNotification):
            self._on_list_changed()

    async def _listen(self, client: ClientSession) -> None:
        """Subscribe to changes of the tool list: in 2026-07-28 a server notifies only those who listen."""
        tools = client.server_capabilities.tools if client.server_capabilities else None
        if self.legacy or not tools or not tools.list_changed:
            return
        wait = FIRST_RELISTEN_SECONDS
        while True:
            with suppress(MCPError, SubscriptionLost):
                async with listen(client, tools_list_changed=True) as changes:
                    wait = FIRST_RELISTEN_SECONDS
                    self._on_list_changed()  # it may have changed before we listened
                    async for _ in changes:
                        self._on_list_changed()
            await anyio.sleep(wait)
            wait = min(2 * wait, MAX_RELISTEN_SECONDS)

    async def _elicit(self, context: ClientRequestContext, params: mcp.ElicitRequestParams) -> mcp.ElicitResult:
        call = next(iter(self._calls)) if len(self._calls) == 1 else None
        return await self.ask(params, call)

    async def ask(self, params: mcp.ElicitRequestParams, call: ActiveCall | None) -> mcp.ElicitResult:
        """Return a person's answer; meanwhile the deadlines of the calls that may wait for it are suspended."""
        assert self._on_elicit
        question = to_question(self._source, call.tool if call else None, params)
        waiting = [call] if call else list(self._calls)
        for each in waiting:
            each.pause()
        try:
            return to_result(question, await self._on_elicit(question))
        finally:
            for each in waiting:
                each.resume(self._timeout)

    def _note_refused(self, method: str) -> None:
        """Note that a request of the server was refused, for the calls that may fail because of it."""
        for call in self._calls:
            call.refused = f"{NOBODY_TO_ASK}: it asked for {method}"

    # Calls.

    async def run(self, call: ActiveCall, send: Callable[[ClientSession], Awaitable[ResultT]]) -> ResultT:
        """Return the server's answer to what `send` sends; raise ToolError. A timeout or cancellation tells it to stop."""
        token = CURRENT_CALL.set(call)
        self._calls.add(call)
        try:
            async with asyncio.timeout(self._timeout) as call.deadline:
                return await send(self.client)
        except TimeoutError:
            message = f"the server of {self._source} did not answer within {self._timeout:g} s; it was told to stop"
            raise ToolError(message, code="source-timeout", tool=call.tool) from None
        except MCPError as error:
            raise await self._to_tool_error(error, call) from None
        except ValidationError as error:
            raise ToolError(f"the server's answer is not valid MCP: {first_error(error)}", tool=call.tool) from None
        finally:
            call.deadline = None
            self._calls.discard(call)
            CURRENT_CALL.reset(token)

    async def _to_tool_error(self, error: MCPError, call: ActiveCall) -> ToolError:
        if call.problem is not None:
            return call.problem
        if error.code == REPLY_TOO_LARGE:
            return ToolError(error.message, code="reply-too-large", tool=call.tool)
        if error.code == mcp.CONNECTION_CLOSED and not self.alive:
            if self._owner:
                await asyncio.wait({self._owner}, timeout=CLOSE_SECONDS)
            message = f"the server of {self._source} ended during the call; whether it did what was asked is not known"
            report = self._connection.exit_report()
            return ToolError(f"{message}: {report}" if report else message, code="source-unreachable", tool=call.tool)
        data = {"code": error.code} if error.data is None else {"code": error.code, "data": error.data}
        hint = NOBODY_TO_ASK if error.code in INPUT_REQUIRED_CODES else call.refused
        message = clean(error.message, MAX_MESSAGE_CHARS) or "the server refused the call"
        return ToolError(message, origin="tool", tool=call.tool, data=data, hint=hint)

    def _failed(self, problem: str, error: BaseException | None = None) -> SourceError:
        report = self._connection.exit_report()
        why = _first(error, MCPError, OSError, RuntimeError, ValidationError) if error else None
        parts = [f"the server of the source {self._source} {problem}", str(why)[:500] if why else "", report]
        return SourceError(": ".join(part for part in parts if part), hint="check that it starts and speaks MCP")


class EndedDuringDiscovery(SourceError):
    """The server ended when it was asked for the newest protocol. Started again, it may accept the older handshake."""


def _first(error: BaseException, *kinds: type[BaseException]) -> Any:
    """Return the first error of these kinds, also from within exception groups."""
    if isinstance(error, kinds):
        return error
    below = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for each in below if (found := _first(each, *kinds)) is not None), None)
