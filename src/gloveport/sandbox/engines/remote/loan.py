"""A worker at the sandbox host while it is lent to a caller: frames pass both ways unread, within limits of this host."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, Protocol

from gloveport.errors import GloveportError, WireError
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.remote import messages
from gloveport.sandbox.engines.remote.messages import MAX_PIECE_BYTES, VERSION, Connection
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.run_attempt import HIGH_WATER_BYTES, MAX_TOTAL_BYTES
from gloveport.sandbox.run_worker import RunWorker
from gloveport.types import Limits

logger = logging.getLogger(__name__)

FIRST_MESSAGE_SECONDS = 10.0
BEGIN_SECONDS = 60.0  # from `ready` to the limits of a run
MAX_QUEUED_BYTES = 1024 * 1024  # of the guest, for a caller that does not read
LAST_MESSAGE_SECONDS = 5.0
MAX_LOAN_SECONDS = 24 * 3600  # also while the clock of the run is paused


class Lender(Protocol):
    """The sandboxes of this host."""

    limits: Limits

    async def report(self, wanted: ProcessOptions) -> JailReport:
        """Return the report on the jail of an engine; raise GloveportError for one that can't be had."""
        ...

    def lend(self, wanted: ProcessOptions) -> AbstractAsyncContextManager[RunWorker]:
        """Wait for a fresh worker, and end it after the block."""
        ...


Slot = Callable[[], AbstractAsyncContextManager[Any]]
"""Waits for a turn to run a program; raises GloveportError `busy` when too many wait."""


async def serve_loan(connection: Connection, lender: Lender, slot: Slot) -> None:
    """Give the caller one worker for one run, or the report on the jail. It never raises for what the caller did."""
    try:
        async with asyncio.timeout(FIRST_MESSAGE_SECONDS):
            kind, wanted = _read_request(messages.parse(await connection.receive()))
        if kind == "probe":
            await connection.send(messages.report(await lender.report(wanted)))
        else:
            async with slot(), lender.lend(wanted) as worker, asyncio.timeout(MAX_LOAN_SECONDS):
                await _Loan(connection, worker, lender.limits).run()
    except GloveportError as error:
        with suppress(ConnectionError, TimeoutError):
            async with asyncio.timeout(LAST_MESSAGE_SECONDS):
                await connection.send(messages.text("refused", error.code, error.message, error.hint))
    except (ConnectionError, TimeoutError):
        pass  # the caller is gone, or says nothing
    finally:
        await connection.close()


def _read_request(parts: list[Any]) -> tuple[str, ProcessOptions]:
    match parts:
        case ["probe" | "take" as kind, version, str(engine), bool(allow_eval), bool(allow_wasm)]:
            if version != VERSION:
                raise WireError(f"this sandbox host speaks version {VERSION} of the protocol, not {version!r:.20}")
            return kind, ProcessOptions(engine[:60], allow_eval, allow_wasm, memory_mb=0)
    raise WireError("the first message must ask for a sandbox")


class _Loan:
    """One worker and one connection."""

    def __init__(self, connection: Connection, worker: RunWorker, limits: Limits) -> None:
        self._connection = connection
        self._worker = worker
        self._limits = limits
        self._queue: deque[bytes] = deque()
        self._queued = 0
        self._left = MAX_TOTAL_BYTES
        self._paused = False
        self._dead = False
        self._changed = asyncio.Event()
        self._drained = asyncio.Event()

    async def run(self) -> None:
        """Pass messages until the process dies, the caller goes, or one of them breaks the rules."""
        await self._connection.send(messages.ready(self._worker.engine, self._worker.idle_mb, self._limits))
        async with asyncio.timeout(BEGIN_SECONDS):
            limits = messages.read_limit(messages.parse(await self._connection.receive()))
        self._worker.limit(messages.lower(limits, self._limits), self._die)
        self._worker.listen(self._take)
        passing = [asyncio.create_task(self._pass_in()), asyncio.create_task(self._pass_out())]
        try:
            await asyncio.wait(passing, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in passing:
                task.cancel()
            done = await asyncio.gather(*passing, return_exceptions=True)
        for problem in done:
            if isinstance(problem, Exception):
                raise problem
        await self._report_exit()

    async def _report_exit(self) -> None:
        exit_, stderr = await self._worker.end()
        async with asyncio.timeout(LAST_MESSAGE_SECONDS):
            await self._connection.send(messages.ended(exit_, self._worker.limit_of(exit_), stderr))

    # From the guest.

    def _take(self, data: bytes) -> None:
        self._left -= len(data)
        if not data or self._left < 0:
            self._die()
            return
        for start in range(0, len(data), MAX_PIECE_BYTES):
            self._queue.append(data[start : start + MAX_PIECE_BYTES])
        self._queued += len(data)
        if self._queued > MAX_QUEUED_BYTES and not self._paused:
            self._paused = True
            self._worker.pause()
        self._changed.set()

    def _die(self) -> None:
        self._dead = True
        self._changed.set()

    async def _pass_out(self) -> None:
        """Send what the guest sent, until it is dead. What it sent in time comes first."""
        while self._queue or not self._dead:
            while self._queue:
                piece = self._queue.popleft()
                usage = self._worker.run_cpu_seconds(), self._worker.peak_mb()
                await self._connection.send(messages.with_usage(piece, *usage))
                self._queued -= len(piece)
            if self._paused:
                self._paused = False
                self._worker.resume()
            if not self._dead:
                self._changed.clear()
                await self._changed.wait()

    # From the caller.

    async def _pass_in(self) -> None:
        while True:
            message = await self._connection.receive()
            if isinstance(message, bytes):
                if self._worker.send(message) > HIGH_WATER_BYTES:
                    self._drained.clear()
                    self._worker.when_sent(self._drained.set)
                    await self._drained.wait()
                continue
            match messages.parse(message):
                case ["pause"]:
                    self._worker.pause_clock()
                case ["go-on"]:
                    self._worker.resume_clock()
                case _:
                    raise WireError("the message is not one of the protocol")
