"""Failed calls, as a program in Monty raises and catches them, and exceptions, as the host is told of them.

Monty has no exceptions with fields, so these are kept here; what is raised is one of Python's own types, with a key behind
its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.sandbox.engines.monty.messages import Failed, Raised
from gloveport.sandbox.engines.monty.unsupported import explain

KIND = "binascii.Incomplete"
FAILED = "Incomplete"
MARK = "\0"
FIELDS = ("message", "code", "tool", "status", "data", "retryable", "hint")
MOST = 10_000
MOST_UNSEEN = 20
MOST_CAUSES = 16
MAX_MESSAGE = 10_000
NO_MEMORY = "the program needed more memory than it may have"

Exc = tuple[str, str]
"""An exception: the name of its type, and its message."""


class Failures:
    """The fields of the failed calls of a run, by their key; which of them the program saw; the causes of exceptions."""

    def __init__(self) -> None:
        self._kept: list[dict[str, Any]] = []
        self._unseen: dict[int, str] = {}
        self._causes: dict[Exc, Exc] = {}

    def keep(self, fields: Mapping[str, Any]) -> str:
        """The text of an exception that stands for these fields."""
        told = {name: fields.get(name) for name in FIELDS if fields.get(name) is not None}
        message = str(told.get("message", ""))[:MAX_MESSAGE].replace(MARK, "")
        if len(self._kept) >= MOST:
            return message
        self._kept.append(told | {"message": message})
        return f"{message}{MARK}{len(self._kept) - 1}"

    def failed(self, fields: Mapping[str, Any]) -> Failed:
        """The answer that raises a failed call in the program."""
        return Failed(KIND, self.keep(fields))

    def settled(self, fields: Mapping[str, Any]) -> Failed:
        """The answer to a promised call that failed: raised where the program awaits it, if it does."""
        told = self.failed(fields)
        self._unseen[len(self._kept) - 1] = self._kept[-1]["message"]
        return told

    def find(self, text: str) -> dict[str, Any]:
        """The fields that the text of an exception stands for; the program has seen it now."""
        message, _, key = text.rpartition(MARK)
        if key.isdecimal() and len(key) < 6 and int(key) < len(self._kept):
            self._unseen.pop(int(key), None)
            return self._kept[int(key)]
        return {"message": message or key, "code": "tool-failed"}

    def unseen(self) -> list[dict[str, str]]:
        """The failures that the program never saw."""
        return [{"type": "ToolError", "message": message} for message in [*self._unseen.values()][:MOST_UNSEEN]]

    def add_cause(self, kind: str, message: str, of_kind: str, of_message: str) -> None:
        """Remember what an exception was raised from: in Monty it holds no other."""
        if len(self._causes) < MOST:
            self._causes[kind, message] = of_kind, of_message

    def describe(self, raised: Raised, file: str) -> dict[str, Any]:
        """An exception that the program did not catch, as the host takes it; places are those in `file`."""
        out = self._told(raised.kind.rpartition(".")[2], raised.message)
        own = [place for place in raised.places if place.file == file]
        if own:
            out |= {"line": own[-1].line, "column": own[-1].column}
        if raised.kind == "MemoryError":
            return out | {"code": "memory-limit", "message": NO_MEMORY}
        if raised.kind == "SyntaxError" and own and own[-1].function is None:
            out["load"] = True
        return out | explain(raised)

    def _told(self, kind: str, message: str, depth: int = 0) -> dict[str, Any]:
        out: dict[str, Any] = {"type": kind[:200], "message": message[:MAX_MESSAGE]}
        if kind == FAILED:
            fields = self.find(message)
            out |= {name: fields[name] for name in ("code", "tool", "hint") if isinstance(fields.get(name), str)}
            out |= {name: fields.get(name) for name in ("status", "data")}
            out |= {"type": "ToolError", "message": fields["message"]}
        cause = self._causes.get((kind, message))
        if cause and depth < MOST_CAUSES:
            out["cause"] = self._told(*cause, depth + 1)
        return out
