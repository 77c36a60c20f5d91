"""Records one run in the store: its start and end, its calls, what was decided about them and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from gloveport.errors import GloveportError
from gloveport.rules.labels import LabelledRead
from gloveport.store.contents import digest
from gloveport.store.event_log import NOTHING, Contents, EventLog, Statement
from gloveport.store.labelled_reads import note_read
from gloveport.types import Decision
from gloveport.values import encode

MAX_CONTENT_BYTES = 256 * 1024
"""Larger arguments and results are recorded by their digest alone."""
SCALARS = frozenset({type(None), bool, int, float, str})


class Encoded(msgspec.Struct, gc=False, frozen=True):
    """A value for the store: its form, or its digest if that is too large to be kept."""

    content: bytes | None
    digest: str = ""


class WriteGuard(Protocol):
    """Knows whether a write may leave now."""

    def uses(self, tool: str) -> None:
        """Note that a tool is called."""
        ...

    def write_leaves(self, call: int, changed: bytes | None) -> Statement:
        """Return the change that says that a write leaves now. If it changes no row, the write is refused.

        `changed` are the arguments that it is made with, encoded, if a person has changed them.
        """
        ...


class RunAudit:
    """The record of one run. A write is on the disk before it leaves; nothing else waits for the disk."""

    def __init__(
        self, log: EventLog, run: str, agent: str, recorder: WriteGuard | None = None, session: str | None = None
    ) -> None:
        self._log = log
        self._session = session
        self._recorder = recorder
        self._agent = agent
        self._about = {"run": run, "agent": agent}

    def started(self, code: str, language: str, engine: str) -> None:
        """Record that the run starts, with the digest of its program."""
        contents = {"code": code.encode("utf-8", "surrogatepass")}
        self._log.append("run-started", {**self._about, "language": language, "engine": engine}, contents)

    def follows_plan(self, plan: str, digest: str, approver: str) -> None:
        """Record that the run follows the plan of another run, and who has approved it."""
        self._append("plan-approved", {"plan": plan, "digest": digest, "approver": approver})

    def rolls_back(self, run: str) -> None:
        """Record that the writes of a run are undone."""
        self._append("run-rolled-back", {"of": run})

    def resumed(self) -> None:
        """Record that this host goes on with the run."""
        self._append("run-resumed", {})

    def released(self) -> None:
        """Record that the run waits without a process."""
        self._append("run-released", {})

    def ended(self, status: str, error: str | None) -> None:
        """Record how the run has ended."""
        self._append("run-ended", {"status": status, "error": error})

    def denied(self, call: int, tool: str, args: Any, decision: Decision) -> None:
        """Record that the rules deny a call."""
        self._append("call-denied", {"call": call, "tool": tool, "rule": decision.rule}, "args", args)

    def planned(self, call: int, tool: str, args: Any) -> None:
        """Record that a write was held back."""
        self._append("call-planned", {"call": call, "tool": tool}, "args", args)

    def asked(self, call: int, tool: str, args: Any, request: str, reads: Sequence[LabelledRead] = ()) -> None:
        """Record that a person is asked about a call, with the labelled reads because of which it asks."""
        body: dict[str, Any] = {"call": call, "tool": tool, "request": request}
        if reads:
            body["reads"] = [{"tool": one.tool, "labels": list(one.labels), "at": one.at, "run": one.run} for one in reads]
        self._append("call-asked", body, "args", args)

    def answered(self, call: int, request: str, answer: Mapping[str, Any], args: Any = None) -> None:
        """Record what the person answered, with the arguments if they changed them."""
        self._append("call-answered", {"call": call, "request": request, **answer}, "args", args)

    def call_started(self, call: int, tool: str, args: dict[str, Any] | Encoded, step: str | None = None) -> None:
        """Record soon that a call is made, one that writes nothing. Whoever makes it may change the arguments then."""
        if self._recorder is not None:
            self._recorder.uses(tool)
        if type(args) is dict:
            args = args.copy() if SCALARS.issuperset(map(type, args.values())) else encoded(args)
        self._log.append("call-started", _CallStarted(self._about, call, tool, args, step))

    async def call_started_now(
        self,
        call: int,
        tool: str,
        args: Any,
        *,
        writes: bool,
        step: str | None = None,
        read: LabelledRead | None = None,
        changed: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that a call is made, and note `read`; return when that is on the disk. Raise StoreError if it can't be.

        `changed` are the arguments of a write, if a person has changed them.
        """
        if self._recorder is not None:
            self._recorder.uses(tool)
        if read is not None:
            self._log.put(note_read(self._agent, read))
            if self._session is not None:
                self._log.put(note_read(self._agent, read, self._session))
        sent = None if changed is None else encode(dict(changed))
        guard = self._recorder.write_leaves(call, sent) if writes and self._recorder is not None else None
        body, contents = _CallStarted(self._about, call, tool, args, step, writes)()
        await self._log.append_now("call-started", body, contents, guard)

    def call_ended(self, call: int, status: str, error: str | None, result: Any = None) -> None:
        """Record soon how a call has ended."""
        kind = type(result)
        if kind not in SCALARS and kind is not Encoded:
            result = encoded(result)
        self._log.append("call-ended", _CallEnded(self._about, call, status, error, result))

    def _append(self, kind: str, body: Mapping[str, Any], name: str = "", value: Any = None) -> None:
        self._log.append(kind, *_with({**self._about, **body}, name, value))


def encoded(value: Any) -> Encoded:
    """Return a value as it is recorded. Do this for a large one in a thread, in advance."""
    try:
        content = encode(value)
    except GloveportError:
        return Encoded(None, "not recorded: it can't be encoded")
    return Encoded(content) if len(content) <= MAX_CONTENT_BYTES else Encoded(None, digest(content).hex())


# Programs make many calls, so the bodies of these events are put together in the writer's thread. Until then, they hold
# nothing that anybody could change.


class _CallStarted(msgspec.Struct, gc=False):
    about: Mapping[str, Any]
    call: int
    tool: str
    args: Any
    step: str | None
    writes: bool = False

    def __call__(self) -> tuple[Mapping[str, Any], Contents]:
        body = {**self.about, "call": self.call, "tool": self.tool, "rule": "", "writes": self.writes}
        return _with(body if self.step is None else {**body, "step": self.step}, "args", self.args)


class _CallEnded(msgspec.Struct, gc=False):
    about: Mapping[str, Any]
    call: int
    status: str
    error: str | None
    result: Any

    def __call__(self) -> tuple[Mapping[str, Any], Contents]:
        body = {**self.about, "call": self.call, "status": self.status, "error": self.error}
        return _with(body, "result", self.result)


def _with(body: dict[str, Any], name: str, value: Any) -> tuple[dict[str, Any], Contents]:
    """Return the body and the contents of an event that has a value. One that is not kept has its digest in the body."""
    if value is None:
        return body, NOTHING
    found = value if type(value) is Encoded else encoded(value)
    return ({**body, name: found.digest}, NOTHING) if found.content is None else (body, {name: found.content})
