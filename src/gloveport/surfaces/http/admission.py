"""Admission control: limits on concurrent runs, on those that wait for a slot, on WebSockets, and on the bytes of requests.

Callers share the places: the more of them one holds, the more must be free for it to get another. So one that fills the
server leaves places to the others, and slots are given to callers in turn, however many runs of one wait.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager

from gloveport.errors import CODES, GloveportError
from gloveport.limits import MIB

MAX_CONCURRENT_RUNS = max(4, 2 * (os.cpu_count() or 2))
MAX_WAITING_RUNS = 512  # each with its connection: more would not fit into the usual limit of 1,024 descriptors
MAX_SOCKETS = 500  # WebSockets of hosts and of other Gloveports, each with its descriptor
MAX_HELD_BYTES = 256 * MIB  # of requests that are read or answered, and of the runs that they have started
MAX_PLACES_PER_FREE_ONE = 32  # that one caller may hold: alone, it gets all but one in 33
MIN_SHARED_PLACES = 8  # where fewer runs may wait, none of the places is kept for others


class Admission:
    """Counts requests and runs. A request can end before its run does (its client went away), so both are counted."""

    def __init__(self, max_concurrent: int = MAX_CONCURRENT_RUNS, max_waiting: int = MAX_WAITING_RUNS) -> None:
        self.max_runs = max_concurrent + max_waiting
        kept = int(max_waiting >= MIN_SHARED_PLACES)  # for a caller that holds no place
        self._slots = _FairSlots(max_concurrent)
        self._requests = _Places(self.max_runs, kept)
        self._runs = _Places(self.max_runs, kept)
        self._sockets = _Places(MAX_SOCKETS, kept=1, what=("WebSockets", "open"))
        self._held_bytes = 0
        self._idle = asyncio.Event()
        self._idle.set()
        self.stopping = False

    def check(self, caller: str, *, is_socket: bool = False) -> None:
        """Raise GloveportError when no further run of a caller, or WebSocket, is admitted: `stopping` or `busy`."""
        if self.stopping:
            raise GloveportError("the server is about to stop", code="stopping", hint=CODES["stopping"].fix)
        for places in (self._requests, self._runs, *((self._sockets,) if is_socket else ())):
            places.check(caller)

    @property
    def runs(self) -> int:
        """The number of runs that run, or wait for a slot."""
        return self._runs.taken

    @contextmanager
    def memory(self) -> Iterator[Callable[[int], None]]:
        """Yield what counts bytes that are held while the block runs; it raises `busy` when all hold too many together."""
        held = 0

        def hold(size: int) -> None:
            nonlocal held
            if self._held_bytes + size > MAX_HELD_BYTES:
                raise GloveportError("the requests at hand are too large together", code="busy", hint=CODES["busy"].fix)
            self._held_bytes += size
            held += size

        try:
            yield hold
        finally:
            self._held_bytes -= held

    @contextmanager
    def socket(self, caller: str) -> Iterator[None]:
        """Count a caller's WebSocket while the block runs."""
        self._sockets.take(caller)
        try:
            yield
        finally:
            self._sockets.give_back(caller)

    @contextmanager
    def request(self, caller: str) -> Iterator[None]:
        """Count a caller's request for a run while the block runs."""
        self._requests.take(caller)
        self._update_idle()
        try:
            yield
        finally:
            self._requests.give_back(caller)
            self._update_idle()

    @asynccontextmanager
    async def run_slot(self, caller: str) -> AsyncIterator[None]:
        """Wait for a slot and hold it while the block runs; raises `busy` when too many runs wait already."""
        self._runs.check(caller)
        self._runs.take(caller)
        self._update_idle()
        try:
            async with self._slots.held(caller):
                yield
        finally:
            self._runs.give_back(caller)
            self._update_idle()

    async def wait_until_idle(self) -> None:
        """Wait until there is neither a request nor a run."""
        await self._idle.wait()

    def _update_idle(self) -> None:
        if self._requests.taken or self._runs.taken:
            self._idle.clear()
        else:
            self._idle.set()


class _Places:
    """Places that callers hold. `kept` of them are for callers that hold none. `what` takes them, and its state then."""

    def __init__(self, places: int, kept: int, what: tuple[str, str] = ("runs", "waiting")) -> None:
        self._places = places
        self._kept = kept
        self._what, self._state = what
        self._by_caller: Counter[str] = Counter()
        self.taken = 0

    def check(self, caller: str) -> None:
        """Raise `busy` where a caller gets no further place."""
        free, held = self._places - self.taken, self._by_caller[caller]
        if free <= 0:
            raise GloveportError(f"too many {self._what} are {self._state}", code="busy", hint=CODES["busy"].fix)
        if held and held >= MAX_PLACES_PER_FREE_ONE * (free - self._kept):
            problem = f"too many {self._what} of {caller} are {self._state}"
            raise GloveportError(problem, code="busy", hint=CODES["busy"].fix)

    def take(self, caller: str) -> None:
        self._by_caller[caller] += 1
        self.taken += 1

    def give_back(self, caller: str) -> None:
        self.taken -= 1
        self._by_caller[caller] -= 1
        if not self._by_caller[caller]:
            del self._by_caller[caller]


class _FairSlots:
    """Slots for runs. Those who wait get the next one in turn: callers one after the other, each with its oldest run.

    Invariant: while anybody waits, no slot is free.
    """

    def __init__(self, slots: int) -> None:
        self._free = slots
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @asynccontextmanager
    async def held(self, caller: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it while the block runs."""
        if self._free:
            self._free -= 1
        else:
            await self._wait(caller)
        try:
            yield
        finally:
            self._release()

    async def _wait(self, caller: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(caller, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._release()
            else:
                self._forget(caller, turn)
            raise

    def _forget(self, caller: str, turn: asyncio.Future[None]) -> None:
        turns = self._waiting.get(caller, deque())
        if turn in turns:
            turns.remove(turn)
            if not turns:
                del self._waiting[caller]

    def _release(self) -> None:
        while self._waiting:
            caller, turns = self._waiting.popitem(last=False)
            turn = turns.popleft()
            if turns:
                self._waiting[caller] = turns  # behind the others
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
