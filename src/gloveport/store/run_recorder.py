"""Records a run so that it can be resumed: its row, and every step between host and guest, in order.

A step is written soon, and before the next write leaves. A host that ends loses the last moments of a run at most: these
held no write, so they can be repeated.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from gloveport.errors import StoreError
from gloveport.store.encryption import Private, about
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import LateEvent, RunStep, Statement
from gloveport.store.stored_runs import id_taken
from gloveport.types import MIB, RunStatus

MAX_RUN_BYTES = 64 * MIB
STEP_OVERHEAD_BYTES = 64  # charged for each step, beside its content
TOO_LARGE = "run-too-large-to-resume"
NOT_RECORDED = "store-unavailable"


class ReplyEvent(LateEvent, gc=False):
    """An event that is made of the reply to a call."""

    reply: bytes


class RunRecorder:
    """The record of one run that this host owns. `fence` counts the owners of the run."""

    def __init__(self, log: EventLog, run: str, fence: int = 1, steps: int = 0, calls: int = 0) -> None:
        self.run = run
        self.obstacle: str | None = None  # why it can't be resumed
        self._log = log
        self._fence = fence
        self._steps = steps
        self._room = MAX_RUN_BYTES  # for more steps
        self._is_stopped = False
        self._tools: set[str] = set()
        self.calls = calls
        self.replied: ReplyEvent | None = None
        """The event of a call whose reply is the next event that the guest gets."""

    async def claim(self, agent: str, language: str, asked: str | None) -> None:
        """Record that an id chosen by the caller belongs to a new run of this host; raise OptionError if it is taken.

        `asked` is a digest of what the caller asks for.
        """
        about, request = {"run": self.run, "agent": agent}, {} if asked is None else {"asked": asked}
        try:
            row = self._new_row("NOTHING", agent, language, "", lambda: request)
            await self._log.append_now("run-named", about, guard=row)
        except StoreError as error:
            raise id_taken(self.run) if error.code == "run-taken-over" else error from None

    def started(self, agent: str, language: str, engine: str, request: Callable[[], Mapping[str, Any]]) -> None:
        """Record a new run, also one whose id was claimed. `request` is what it takes to go on with it."""
        changed = ("engine", "request", "code", "snapshot")
        known = f"UPDATE SET {', '.join(f'{one} = excluded.{one}' for one in changed)}"
        self._log.put(self._new_row(known, agent, language, engine, request))

    def _new_row(
        self, conflict: str, agent: str, language: str, engine: str, request: Callable[[], Mapping[str, Any]]
    ) -> Statement:
        now = time.time_ns() // 1000
        return Statement(
            "INSERT INTO runs (id, agent, status, host, fence, started, language, engine, request, code, snapshot)"
            f" VALUES (?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO {conflict}",
            lambda: self._row(agent, now, language, engine, request()),
        )

    def _row(self, agent: str, now: int, language: str, engine: str, request: Mapping[str, Any]) -> tuple[Any, ...]:
        text, code = Private(orjson.dumps(request), about("runs", "request", self.run)), request.get("code")
        snapshot = bytes.fromhex(request["snapshot"]) if "snapshot" in request else None
        return self.run, agent, self._log.chain, self._fence, now, language, engine, text, code, snapshot

    def event(self, payload: bytes) -> None:
        """Record an event, before it is sent to the guest."""
        size = len(payload)
        self._room -= size + STEP_OVERHEAD_BYTES
        if (replied := self.replied) is not None:
            self.replied, replied.reply = None, payload
            self._log.put_next(replied)
        if self._room < 0:
            self._check_room()
            return
        self._steps += 1
        self._log.put_next(RunStep(self.run, self._steps, "host", payload, self._fence), size)

    def frame(self, payload: bytes) -> None:
        """Record a frame that the guest sent."""
        size = len(payload)
        self._room -= size + STEP_OVERHEAD_BYTES
        if self._room < 0:
            self._check_room()
            return
        self._steps += 1
        self._log.put(RunStep(self.run, self._steps, "guest", payload, self._fence), size)

    def uses(self, tool: str) -> None:
        """Note that the run calls a tool."""
        self.calls += 1
        if tool not in self._tools:
            self._tools.add(tool)
            self._log.put(Statement("INSERT OR IGNORE INTO run_tools VALUES (?, ?)", (tool, self.run)))

    def write_leaves(self, call: int, changed: bytes | None) -> Statement:
        """Return the step that says that a write leaves now. It is refused when this host no longer owns the run."""
        self._steps += 1
        return Statement(
            "INSERT INTO run_steps SELECT ?, ?, 'write', ?, NULL"
            " WHERE EXISTS (SELECT 1 FROM runs WHERE id = ? AND host = ? AND fence = ?)",
            (
                self.run,
                self._steps,
                Private(
                    b"%d" % call if changed is None else b'["write",%d,%b]' % (call, changed),
                    about("run_steps", "content", self.run, self._steps),
                ),
                self.run,
                self._log.chain,
                self._fence,
            ),
        )

    def status(self, status: RunStatus) -> None:
        """Record that the run waits for a person, or goes on."""
        calls = self.calls
        self._change("status = ?, calls = ?", lambda: (status, calls))

    async def is_complete(self) -> bool:
        """Return whether all steps so far are in the store: then the run can be resumed."""
        try:
            await self._log.flush()
        except StoreError:
            return False
        self.look_for_obstacle()
        return self.obstacle is None

    def look_for_obstacle(self) -> None:
        """Note whether steps could not be recorded."""
        if self.obstacle is None and self._log.has_lost_steps(self.run):
            self._give_up(NOT_RECORDED)

    def stop(self) -> None:
        """Record no more steps: what the host does to end the process is not part of the run."""
        self._room, self._is_stopped = 0, True

    def release(self) -> None:
        """Give the run up, so that any host can go on with it."""
        calls = self.calls
        self._change("status = 'waiting', host = NULL, calls = ?", lambda: (calls,))

    def ended(self, status: RunStatus, error: str | None, calls: int, outcome: Callable[[], bytes]) -> None:
        """Record how the run has ended."""
        self.look_for_obstacle()
        now = time.time_ns() // 1000
        changes = "status = ?, ended = ?, error = ?, calls = ?, outcome = ?, host = NULL"
        place = about("runs", "outcome", self.run)
        self._change(changes, lambda: (status, now, error, calls, Private(outcome(), place)))

    def _change(self, changes: str, values: Callable[[], tuple[Any, ...]] = tuple) -> None:
        self._log.put(
            Statement(
                f"UPDATE runs SET {changes} WHERE id = ? AND host = ? AND fence = ?",
                lambda: (*values(), self.run, self._log.chain, self._fence),
            )
        )

    def _check_room(self) -> None:
        """Give up, unless no more steps are recorded anyway."""
        if not self._is_stopped and self.obstacle is None:
            self._give_up(TOO_LARGE)

    def _give_up(self, obstacle: str) -> None:
        """Keep no steps: a part of a run can't be repeated."""
        self.obstacle, self._room = obstacle, 0
        self._change("obstacle = ?", lambda: (obstacle,))
        self._log.put(Statement("DELETE FROM run_steps WHERE run = ?", (self.run,)))
