"""Failed calls, as a program in Monty raises and catches them, and exceptions, as the host is told of them.

Monty has no exceptions with fields, so these are kept here; what is raised is one of Python's own types, with a key behind
its message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.sandbox.monty.lacks import explain
from gloveport.sandbox.monty.messages import Failed, Raised

KIND = "binascii.Incomplete"
MARK = "\0"
FIELDS = ("message", "code", "tool", "status", "data", "retryable", "hint")
MOST = 10_000
MAX_MESSAGE = 10_000
NO_MEMORY = "the program needed more memory than it may have"


class Failures:
    """The fields of the failed calls of a run, by their key."""

    def __init__(self) -> None:
        self._kept: list[dict[str, Any]] = []

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

    def find(self, text: str) -> dict[str, Any]:
        """The fields that the text of an exception stands for."""
        message, _, key = text.rpartition(MARK)
        if key.isdecimal() and len(key) < 6 and int(key) < len(self._kept):
            return self._kept[int(key)]
        return {"message": message or key, "code": "tool-failed"}

    def describe(self, raised: Raised, file: str) -> dict[str, Any]:
        """An exception that the program did not catch, as the host takes it; places are those in `file`."""
        out: dict[str, Any] = {"type": raised.kind.rpartition(".")[2][:200], "message": raised.message[:MAX_MESSAGE]}
        own = [place for place in raised.places if place.file == file]
        if own:
            out |= {"line": own[-1].line, "column": own[-1].column}
        if raised.kind == KIND:
            fields = self.find(raised.message)
            told = {name: fields[name] for name in ("code", "tool", "hint") if isinstance(fields.get(name), str)}
            return out | told | {"type": "ToolError", "message": fields["message"], "data": fields.get("data")}
        if raised.kind == "MemoryError":
            return out | {"code": "memory-limit", "message": NO_MEMORY}
        if raised.kind == "SyntaxError" and own and own[-1].function is None:
            out["load"] = True
        return out | explain(raised)
