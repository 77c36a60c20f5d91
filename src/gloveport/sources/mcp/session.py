"""A live session with one server: a single task owns it from the first message to the last; any task may call through it.

The library's scopes must be left by the task that entered them, so `_own` is that task, and callers only wait for replies.
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
from gloveport.sources.mcp.connection import CURRENT, REPLY_TOO_LARGE, Call, Connection
from gloveport.sources.mcp.elicitation import OnElicit, question, wire_answer
from gloveport.sources.mcp.results import LONGEST_MESSAGE
from gloveport.sources.mcp.wire import Wire, shown
from gloveport.sources.texts import clean

logger = logging.getLogger("gloveport")

ResultT = TypeVar("ResultT")

CLIENT = mcp.Implementation(name="gloveport", version="1")
ENDING_SECONDS = 10.0
RELISTEN_SECONDS = 5.0
LONGEST_SECONDS = 300.0
NEEDS = (mcp.URL_ELICITATION_REQUIRED, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY)
UNABLE = "the server wants to ask a person or a model, and there is none to ask here"


class Session:
    """One session. It ends when its server does, or by `close`; then `alive` is false for ever."""

    def __init__(
        self,
        source: str,
        connection: Connection,
        *,
        timeout: float,
        on_elicit: OnElicit | None,
        on_listing: Callable[[], None],
        legacy: bool = False,
    ) -> None:
        self._source = source
        self._connection = connection
        self._timeout = timeout
        self._on_elicit = on_elicit
        self._on_listing = on_listing
        self._legacy = legacy
        self._client: ClientSession | None = None
        self._calls: set[Call] = set()
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._owner: asyncio.Task[None] | None = None
        self._wire: Wire | None = None

    @property
    def alive(self) -> bool:
        """True while calls can be made."""
        return self._client is not None and not self._connection.lost.is_set()

    @property
    def client(self) -> ClientSession:
        """The library's session; there is one from `start` on."""
        assert self._client is not None
        return self._client

    @property
    def legacy(self) -> bool:
        """True for a server that speaks 2025-11-25 or before."""
        return self.client.protocol_version not in MODERN_PROTOCOL_VERSIONS

    def dropped(self) -> list[str]:
        """What was left out of the lists of tools since this was last asked."""
        assert self._wire
        dropped, self._wire.dropped = self._wire.dropped, []
        return dropped

    # Life.

    async def start(self) -> None:
        """Connects and agrees on a protocol; raises SourceError, after which nothing is left of the attempt."""
        call = Call("")
        token = CURRENT.set(call)  # the owner inherits it, so that the connection can say what was wrong
        self._owner = asyncio.create_task(self._own(), name=f"gloveport mcp {self._source}")
        CURRENT.reset(token)
        try:
            async with asyncio.timeout(self._timeout):
                await asyncio.shield(self._ready)
        except BaseException as error:
            await self.close()
            if isinstance(error, TimeoutError):
                raise self._failed(f"did not answer within {self._timeout:g} s") from None
            if (problem := call.problem) and isinstance(error, Exception):
                message = f"the source {self._source} can't be opened: {problem.message}"
                raise SourceError(message, code=problem.code, hint=problem.hint) from None
            raise

    async def close(self) -> None:
        """Ends the session; the server's process is gone when this returns."""
        self._closing.set()
        owner = self._owner
        if owner is None:
            return
        if self._client is None:
            owner.cancel()  # it is still being talked into a session
        _, late = await asyncio.wait({owner}, timeout=ENDING_SECONDS)
        if late:
            owner.cancel()
            await asyncio.wait({owner}, timeout=ENDING_SECONDS)

    async def _own(self) -> None:
        try:
            async with self._connection.open() as (read, write):
                wire = self._wire = Wire(read, write, self._refused)
                async with ClientSession(
                    dispatcher=wire,
                    client_info=CLIENT,
                    message_handler=self._hear,
                    elicitation_callback=self._asked if self._on_elicit else None,
                ) as client:
                    await self._agree(client)
                    wire.version = client.protocol_version or ""
                    self._client = client
                    self._settle(None)
                    async with anyio.create_task_group() as group:
                        group.start_soon(self._watch, client)
                        await self._until_over()
                        group.cancel_scope.cancel()
        except Exception as error:  # noqa: BLE001 - the outer edge of the session: its callers are told, others go on
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
        self._ready.exception()  # whoever waited may have gone

    async def _until_over(self) -> None:
        waits = [asyncio.ensure_future(event.wait()) for event in (self._closing, self._connection.lost)]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()

    async def _agree(self, client: ClientSession) -> None:
        """The newest protocol that both speak: `server/discover` for 2026-07-28, the handshake for what came before."""
        for last in (False, True):
            with suppress(MCPError, ValidationError, RuntimeError):
                if not self._legacy:
                    await client.discover()
                    return
            if not self._legacy and self._connection.lost.is_set():
                raise Startled(f"the server of the source {self._source} ended")
            try:
                await client.initialize()
            except MCPError as error:
                # A server that was slow to start has answered `server/discover` after all, and is held to that.
                if last or error.code != mcp.UNSUPPORTED_PROTOCOL_VERSION:
                    raise
            else:
                return

    # What comes from the server unasked.

    async def _hear(self, message: IncomingMessage) -> None:
        if isinstance(message, mcp.ToolListChangedNotification):
            self._on_listing()

    async def _watch(self, client: ClientSession) -> None:
        """In 2026-07-28, notice of changed tools comes only to those who listen."""
        tools = client.server_capabilities.tools if client.server_capabilities else None
        if self.legacy or not tools or not tools.list_changed:
            return
        wait = RELISTEN_SECONDS
        while True:
            with suppress(MCPError, SubscriptionLost):
                async with listen(client, tools_list_changed=True) as changes:
                    wait = RELISTEN_SECONDS
                    self._on_listing()  # what changed before anybody listened
                    async for _ in changes:
                        self._on_listing()
            await anyio.sleep(wait)
            wait = min(2 * wait, LONGEST_SECONDS)

    async def _asked(self, context: ClientRequestContext, params: mcp.ElicitRequestParams) -> mcp.ElicitResult:
        call = next(iter(self._calls)) if len(self._calls) == 1 else None
        return await self.ask(params, call)

    async def ask(self, params: mcp.ElicitRequestParams, call: Call | None) -> mcp.ElicitResult:
        """What a person answers; meanwhile the deadlines of the calls that may wait for it stand still."""
        assert self._on_elicit
        asked = question(self._source, call.tool if call else None, params)
        waiting = [call] if call else list(self._calls)
        for each in waiting:
            each.pause()
        try:
            return wire_answer(asked, await self._on_elicit(asked))
        finally:
            for each in waiting:
                each.resume(self._timeout)

    def _refused(self, method: str) -> None:
        """Notes that the server asked for something that nobody gives, for the calls that may fail for it."""
        for call in self._calls:
            call.refused = f"{UNABLE}: it asked for {method}"

    # Calls.

    async def run(self, call: Call, send: Callable[[ClientSession], Awaitable[ResultT]]) -> ResultT:
        """What the server answers to what is sent; raises ToolError. What times out or is cancelled, it is told to stop."""
        token = CURRENT.set(call)
        self._calls.add(call)
        try:
            async with asyncio.timeout(self._timeout) as call.clock:
                return await send(self.client)
        except TimeoutError:
            message = f"the server of {self._source} did not answer within {self._timeout:g} s; it was told to stop"
            raise ToolError(message, code="source-timeout", tool=call.tool) from None
        except MCPError as error:
            raise await self._told(error, call) from None
        except ValidationError as error:
            raise ToolError(f"the server's answer is not valid MCP: {shown(error)}", tool=call.tool) from None
        finally:
            call.clock = None
            self._calls.discard(call)
            CURRENT.reset(token)

    async def _told(self, error: MCPError, call: Call) -> ToolError:
        if call.problem is not None:
            return call.problem
        if error.code == REPLY_TOO_LARGE:
            return ToolError(error.message, code="reply-too-large", tool=call.tool)
        if error.code == mcp.CONNECTION_CLOSED and not self.alive:
            if self._owner:
                await asyncio.wait({self._owner}, timeout=ENDING_SECONDS)
            message = f"the server of {self._source} ended during the call; whether it did what was asked is not known"
            words = self._connection.last_words()
            return ToolError(f"{message}: {words}" if words else message, code="source-unreachable", tool=call.tool)
        data = {"code": error.code} if error.data is None else {"code": error.code, "data": error.data}
        hint = UNABLE if error.code in NEEDS else call.refused
        message = clean(error.message, LONGEST_MESSAGE) or "the server refused the call"
        return ToolError(message, tool=call.tool, data=data, hint=hint)

    def _failed(self, problem: str, error: BaseException | None = None) -> SourceError:
        words = self._connection.last_words()
        why = _first(error, MCPError, OSError, RuntimeError, ValidationError) if error else None
        parts = [f"the server of the source {self._source} {problem}", str(why)[:500] if why else "", words]
        return SourceError(": ".join(part for part in parts if part), hint="check that it starts and speaks MCP")


class Startled(SourceError):
    """The server ended when it was asked for the newest protocol; an older one may be started with the handshake."""


def _first(error: BaseException, *kinds: type[BaseException]) -> Any:
    """The first error of these kinds, in groups and causes too."""
    if isinstance(error, kinds):
        return error
    below = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for each in below if (found := _first(each, *kinds)) is not None), None)
