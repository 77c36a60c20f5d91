"""Failed calls as exceptions in Monty, and Monty's exceptions as errors for the host.

Monty has no exceptions with fields, so the fields are kept here. The program sees a built-in exception with a key after
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
FIELDS = ("message", "code", "origin", "tool", "status", "data", "retryable", "hint")
MAX_KEPT_ERRORS = 10_000
MAX_UNSEEN = 20
MAX_CAUSES = 16
MAX_MESSAGE_CHARS = 10_000
NO_MEMORY = "the program needed more memory than its limit"

Exc = tuple[str, str]
"""An exception: the name of its type, and its message."""


class ToolErrors:
    """The fields of a run's failed calls by key, which of them the program has seen, and the causes of exceptions."""

    def __init__(self) -> None:
        self._kept: list[dict[str, Any]] = []
        self._unseen: dict[int, str] = {}
        self._causes: dict[Exc, Exc] = {}

    def keep(self, fields: Mapping[str, Any]) -> str:
        """Keep the fields and return the text of the exception that stands for them."""
        kept = {name: fields.get(name) for name in FIELDS if fields.get(name) is not None}
        message = str(kept.get("message", ""))[:MAX_MESSAGE_CHARS].replace(MARK, "")
        if len(self._kept) >= MAX_KEPT_ERRORS:
            return message
        self._kept.append(kept | {"message": message})
        return f"{message}{MARK}{len(self._kept) - 1}"

    def failed(self, fields: Mapping[str, Any]) -> Failed:
        """Return the answer that raises a failed call in the program."""
        return Failed(KIND, self.keep(fields))

    def settled(self, fields: Mapping[str, Any]) -> Failed:
        """Return the answer to a pending call that failed. It is raised where the program awaits it, if it does."""
        answer = self.failed(fields)
        self._unseen[len(self._kept) - 1] = self._kept[-1]["message"]
        return answer

    def find(self, text: str) -> dict[str, Any]:
        """Return the fields that the text of an exception stands for, and note that the program has seen it."""
        message, _, key = text.rpartition(MARK)
        if key.isdecimal() and len(key) < 6 and int(key) < len(self._kept):
            self._unseen.pop(int(key), None)
            return self._kept[int(key)]
        return {"message": message or key, "code": "tool-failed"}

    def unseen(self) -> list[dict[str, str]]:
        """Return the failures that the program never saw."""
        return [{"type": "ToolError", "message": message} for message in [*self._unseen.values()][:MAX_UNSEEN]]

    def add_cause(self, kind: str, message: str, of_kind: str, of_message: str) -> None:
        """Remember the cause of an exception: Monty does not keep it."""
        if len(self._causes) < MAX_KEPT_ERRORS:
            self._causes[kind, message] = of_kind, of_message

    def describe(self, raised: Raised, file: str) -> dict[str, Any]:
        """Return the error for an exception that the program did not catch, with its place in `file`."""
        out = self._error(raised.kind.rpartition(".")[2], raised.message)
        own = [place for place in raised.places if place.file == file]
        if own:
            out |= {"line": own[-1].line, "column": own[-1].column}
        if raised.kind == "MemoryError":
            return out | {"code": "memory-limit", "message": NO_MEMORY}
        if raised.kind == "SyntaxError" and own and own[-1].function is None:
            out["load"] = True
        return out | explain(raised)

    def _error(self, kind: str, message: str, depth: int = 0) -> dict[str, Any]:
        out: dict[str, Any] = {"type": kind[:200], "message": message[:MAX_MESSAGE_CHARS]}
        if kind == FAILED:
            fields = self.find(message)
            out |= {name: fields[name] for name in ("code", "tool", "hint") if isinstance(fields.get(name), str)}
            out |= {name: fields.get(name) for name in ("status", "data")}
            out |= {"type": "ToolError", "message": fields["message"]}
        cause = self._causes.get((kind, message))
        if cause and depth < MAX_CAUSES:
            out["cause"] = self._error(*cause, depth + 1)
        return out
