"""Records one run in the store: its start and end, its calls, what was decided about them and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from gloveport.errors import GloveportError
from gloveport.rules.labels import LabelledRead
from gloveport.store.contents import digest
from gloveport.store.event_log import NOTHING, EventLog, Statement
from gloveport.store.labelled_reads import note_read
from gloveport.types import Decision
from gloveport.values import encode

MAX_CONTENT_BYTES = 256 * 1024
"""Larger arguments and results are recorded by their digest alone."""


class Encoded(NamedTuple):
    """A value for the store: its form, or its digest if that is too large to be kept."""

    content: bytes | None
    digest: str = ""

    @classmethod
    def of(cls, content: bytes) -> Encoded:
        """Return what is recorded of a content."""
        return cls(content) if len(content) <= MAX_CONTENT_BYTES else cls(None, digest(content).hex())


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

    def __init__(self, log: EventLog, run: str, agent: str, recorder: WriteGuard | None = None) -> None:
        self._log = log
        self._recorder = recorder
        self._run = run
        self._agent = agent

    def started(self, code: str, language: str, engine: str) -> None:
        """Record that the run starts, with the digest of its program."""
        contents = {"code": code.encode("utf-8", "surrogatepass")}
        self._log.append("run-started", self._body({"language": language, "engine": engine}), contents)

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
        self._append_with("call-denied", {"call": call, "tool": tool, "rule": decision.rule}, "args", args)

    def planned(self, call: int, tool: str, args: Any) -> None:
        """Record that a write was held back."""
        self._append_with("call-planned", {"call": call, "tool": tool}, "args", args)

    def asked(self, call: int, tool: str, args: Any, request: str, reads: Sequence[LabelledRead] = ()) -> None:
        """Record that a person is asked about a call, with the labelled reads because of which it asks."""
        body: dict[str, Any] = {"call": call, "tool": tool, "request": request}
        if reads:
            body["reads"] = [{"tool": one.tool, "labels": list(one.labels), "at": one.at, "run": one.run} for one in reads]
        self._append_with("call-asked", body, "args", args)

    def answered(self, call: int, request: str, answer: Mapping[str, Any], args: Any = None) -> None:
        """Record what the person answered, with the arguments if they changed them."""
        self._append_with("call-answered", {"call": call, "request": request, **answer}, "args", args)

    async def call_started(
        self,
        call: int,
        tool: str,
        args: Any,
        *,
        writes: bool,
        rule: str = "",
        step: str | None = None,
        read: LabelledRead | None = None,
        changed: Mapping[str, Any] | None = None,
    ) -> None:
        """Record that a call is made, and note `read`. `changed` are its arguments, if a person has changed them.

        For a write, or with `read`, return when that is on the disk; raise StoreError when it can't be.
        """
        if self._recorder is not None:
            self._recorder.uses(tool)
        body: dict[str, Any] = {"call": call, "tool": tool, "rule": rule, "writes": writes}
        body, contents = self._with(body if step is None else {**body, "step": step}, "args", args)
        if read is not None:
            self._log.change(note_read(self._agent, read))
        if writes or read is not None:
            sent = None if changed is None else encode(dict(changed))
            guard = self._recorder.write_leaves(call, sent) if writes and self._recorder is not None else None
            await self._log.append_now("call-started", self._body(body), contents, guard)
        else:
            self._log.append("call-started", self._body(body), contents)

    def call_ended(self, call: int, status: str, error: str | None, result: Any = None) -> None:
        """Record how a call has ended."""
        self._append_with("call-ended", {"call": call, "status": status, "error": error}, "result", result)

    def _append_with(self, kind: str, body: dict[str, Any], name: str, value: Any) -> None:
        full, contents = self._with(body, name, value)
        self._log.append(kind, self._body(full), contents)

    def _append(self, kind: str, body: Mapping[str, Any]) -> None:
        self._log.append(kind, self._body(body))

    def _body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"run": self._run, "agent": self._agent, **body}

    @staticmethod
    def encoded(value: Any) -> Encoded:
        """Return a value as it is recorded. Do this for a large one in a thread, in advance."""
        try:
            return Encoded.of(encode(value))
        except GloveportError:
            return Encoded(None, "not recorded: it can't be encoded")

    def _with(self, body: dict[str, Any], name: str, value: Any) -> tuple[dict[str, Any], Mapping[str, bytes]]:
        if value is None:
            return body, NOTHING
        found = value if isinstance(value, Encoded) else self.encoded(value)
        return ({**body, name: found.digest}, NOTHING) if found.content is None else (body, {name: found.content})
