"""Records one run in the store: its start and end, its calls, what was decided about them and by whom."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec
import orjson

from gloveport.errors import GloveportError
from gloveport.rules.labels import LabelledRead
from gloveport.store.agent_uses import note_read
from gloveport.store.contents import REPLY_HEAD, digest
from gloveport.store.event_log import EventLog
from gloveport.store.log_items import NOTHING, Contents, LateEvent, Statement
from gloveport.store.run_recorder import ReplyEvent, RunRecorder
from gloveport.types import Decision
from gloveport.values import encode, encode_large, from_wire

MAX_CONTENT_BYTES = 256 * 1024
"""Larger arguments and results are recorded by their digest alone."""
SCALARS = frozenset({type(None), bool, int, float, str})


class Encoded(msgspec.Struct, gc=False, frozen=True):
    """A value for the store: its form, or its digest if that is too large to be kept."""

    content: bytes | None
    digest: str = ""


NOT_ENCODED = Encoded(None, "not recorded: it can't be encoded")
NO_ARGS: dict[str, Any] = {}


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
        self._steps = recorder if isinstance(recorder, RunRecorder) else None
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

    def call_started(
        self, call: int, tool: str, args: dict[str, Any] | Encoded, step: str | None = None, frame: bytes | None = None
    ) -> None:
        """Record soon that a call is made, one that writes nothing. Whoever makes it may change the arguments then.

        With a `frame`, the arguments are the only value that the guest has sent in it.
        """
        if self._recorder is not None:
            self._recorder.uses(tool)
        if frame is not None:
            args = NO_ARGS
        elif type(args) is dict:
            args = args.copy() if SCALARS.issuperset(map(type, args.values())) else encoded(args)
        self._log.put_next(_CallStarted(time.time_ns(), self._about, call, tool, args, step, frame))

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
        kind, body, contents = _CallStarted(0, self._about, call, tool, args, step, None, writes).parts()
        await self._log.append_now(kind, body, contents, guard)

    def call_ended(self, call: int, status: str, error: str | None, result: Any = None) -> None:
        """Record soon how a call has ended."""
        kind = type(result)
        if kind not in SCALARS and kind is not Encoded:
            result = encoded(result)
        self._log.put_next(_CallEnded(time.time_ns(), self._about, call, status, error, result))

    def call_replied(self, call: int, result: Any) -> None:
        """Record soon that a call has ended with a small result, which the guest of a recorded run gets now."""
        if self._steps is None:
            self.call_ended(call, "ok", None, result)
        else:
            self._steps.replied = _CallReplied(time.time_ns(), b"", self._about, call)

    def _append(self, kind: str, body: Mapping[str, Any], name: str = "", value: Any = None) -> None:
        self._log.append(kind, *_with({**self._about, **body}, name, value))


def encoded(value: Any) -> Encoded:
    """Return a value as it is recorded. Do this for a large one in a thread, in advance."""
    try:
        content = encode_large(value)
    except GloveportError:
        return NOT_ENCODED
    return kept(content)


def kept(content: bytes) -> Encoded:
    """Return an encoded value as it is recorded."""
    return Encoded(content) if len(content) <= MAX_CONTENT_BYTES else Encoded(None, digest(content).hex())


# Programs make many calls, so the bodies of these events are put together in the writer's thread.


class _CallStarted(LateEvent, gc=False):
    about: Mapping[str, Any]
    call: int
    tool: str
    args: Any
    step: str | None
    frame: bytes | None
    writes: bool = False

    def parts(self) -> tuple[str, Mapping[str, Any], Contents]:
        args = self.args if self.frame is None else _arguments(self.frame)
        body = {**self.about, "call": self.call, "tool": self.tool, "rule": "", "writes": self.writes}
        return "call-started", *_with(body if self.step is None else {**body, "step": self.step}, "args", args)

    def size(self) -> int:
        return _bytes_in(self.args)


class _CallEnded(LateEvent, gc=False):
    about: Mapping[str, Any]
    call: int
    status: str
    error: str | None
    result: Any

    def parts(self) -> tuple[str, Mapping[str, Any], Contents]:
        body = {**self.about, "call": self.call, "status": self.status, "error": self.error}
        return "call-ended", *_with(body, "result", self.result)

    def size(self) -> int:
        return _bytes_in(self.result)


class _CallReplied(ReplyEvent, gc=False):
    about: Mapping[str, Any]
    call: int

    def parts(self) -> tuple[str, Mapping[str, Any], Contents]:
        found = REPLY_HEAD.match(self.reply)
        is_sent = found is not None and int(found[1]) == self.call
        result = kept(self.reply[found.end() : -1]) if found is not None and is_sent else NOT_ENCODED
        body = {**self.about, "call": self.call, "status": "ok", "error": None}
        return "call-ended", *_with(body, "result", None if result.content == b"null" else result)


def _bytes_in(value: Any) -> int:
    """Return the bytes of a value that is encoded; any other is small."""
    return len(value.content or b"") if type(value) is Encoded else 0


def _arguments(frame: bytes) -> Any:
    """Return the only value in the frame of a call. It is read as the sandbox has read it: `"\\u0024"` begins no tag."""
    args = orjson.loads(frame)[3][0]
    return from_wire(args) if b'"$' in frame else args


def _with(body: dict[str, Any], name: str, value: Any) -> tuple[dict[str, Any], Contents]:
    """Return the body and the contents of an event that has a value. One that is not kept has its digest in the body."""
    if value is None:
        return body, NOTHING
    found = value if type(value) is Encoded else encoded(value)
    return ({**body, name: found.digest}, NOTHING) if found.content is None else (body, {name: found.content})
