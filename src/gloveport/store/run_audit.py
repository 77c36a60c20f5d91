"""Records one run in the store: its start and end, its calls, what was decided about them and by whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from gloveport.errors import GloveportError
from gloveport.store.event_log import EventLog, digest
from gloveport.types import Decision
from gloveport.values import encode

MAX_PAYLOAD_BYTES = 256 * 1024
"""Larger arguments and results are recorded by their digest alone."""


class Encoded(NamedTuple):
    """A value for the store: its digest, and its form unless it is too large to be kept."""

    digest: str
    payloads: tuple[bytes, ...]


class RunAudit:
    """The record of one run. A write is on the disk before it leaves; nothing else waits for the disk."""

    def __init__(self, log: EventLog, run: str, agent: str) -> None:
        self._log = log
        self._run = run
        self._agent = agent

    def started(self, code: str, language: str, engine: str) -> None:
        """Record that the run starts, with the digest of its program."""
        text = code.encode("utf-8", "surrogatepass")
        body = {"language": language, "engine": engine, "code": digest(text).hex()}
        self._append("run-started", body, [text] if len(text) <= MAX_PAYLOAD_BYTES else [])

    def ended(self, status: str, error: str | None) -> None:
        """Record how the run has ended."""
        self._append("run-ended", {"status": status, "error": error})

    def denied(self, call: int, tool: str, args: Any, decision: Decision) -> None:
        """Record that the rules deny a call."""
        self._append_with("call-denied", {"call": call, "tool": tool, "rule": decision.rule}, "args", args)

    def asked(self, call: int, tool: str, args: Any, request: str) -> None:
        """Record that a person is asked about a call."""
        self._append_with("call-asked", {"call": call, "tool": tool, "request": request}, "args", args)

    def answered(self, call: int, request: str, answer: Mapping[str, Any], args: Any = None) -> None:
        """Record what the person answered, with the arguments if they changed them."""
        self._append_with("call-answered", {"call": call, "request": request, **answer}, "args", args)

    async def call_started(self, call: int, tool: str, args: Any, *, writes: bool, rule: str = "") -> None:
        """Record that a call is made. For a write, return when that is on the disk; raise StoreError when it can't be."""
        body, payloads = self._with({"call": call, "tool": tool, "rule": rule, "writes": writes}, "args", args)
        if writes:
            await self._log.append_now("call-started", self._body(body), payloads)
        else:
            self._log.append("call-started", self._body(body), payloads)

    def call_ended(self, call: int, status: str, error: str | None, result: Any = None) -> None:
        """Record how a call has ended."""
        self._append_with("call-ended", {"call": call, "status": status, "error": error}, "result", result)

    def _append_with(self, kind: str, body: dict[str, Any], name: str, value: Any) -> None:
        full, payloads = self._with(body, name, value)
        self._append(kind, full, payloads)

    def _append(self, kind: str, body: Mapping[str, Any], payloads: Sequence[bytes] = ()) -> None:
        self._log.append(kind, self._body(body), payloads)

    def _body(self, body: Mapping[str, Any]) -> dict[str, Any]:
        return {"run": self._run, "agent": self._agent, **body}

    @staticmethod
    def encoded(value: Any) -> Encoded:
        """Return the digest of a value, and its form in the store. Do this for a large one in a thread, in advance."""
        try:
            content = encode(value)
        except GloveportError:
            return Encoded("not recorded: it can't be encoded", ())
        return Encoded(digest(content).hex(), (content,) if len(content) <= MAX_PAYLOAD_BYTES else ())

    def _with(self, body: dict[str, Any], name: str, value: Any) -> tuple[dict[str, Any], Sequence[bytes]]:
        if value is None:
            return body, ()
        found = value if isinstance(value, Encoded) else self.encoded(value)
        return {**body, name: found.digest}, found.payloads
