"""What a person is asked about a call, what they may answer, and the shape of arguments that a standing approval covers."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from gloveport.errors import OptionError
from gloveport.values import encode

Scope = Literal["once", "run", "always"]
"""What an approval covers: this call, or also every later call of the same shape, in its run or in any."""

MAX_SHAPE_DEPTH = 20
MAX_SHAPE_NODES = 1000


def call_digest(tool: str, args: Mapping[str, Any]) -> str:
    """Return the digest of a call: equal for equal tools and arguments, whatever the order of the keys."""
    return hashlib.sha256(encode([tool, _sorted(args)])).hexdigest()


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for a person. Times are seconds since 1970; `line` is the line of the program.

    `reason` is why it asks, and `rule` the rule that says so.
    """

    run: str
    call: int
    tool: str
    args: Mapping[str, Any]
    agent: str
    asked: float
    expires: float
    reason: str = ""
    rule: str = ""
    line: int | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def digest(self) -> str:
        """The digest of the tool and its arguments, to which an answer refers."""
        return call_digest(self.tool, self.args)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: who gave it, and what may happen. With `args`, the call is made with these instead."""

    approved: bool
    approver: str
    scope: Scope = "once"
    reason: str = ""
    args: Mapping[str, Any] | None = None

    @classmethod
    def of(cls, given: Answer | bool, approver: str) -> Answer:
        """Return an answer that code gave: an Answer, or True or False for this call."""
        if isinstance(given, Answer):
            return given
        if isinstance(given, bool):
            return cls(given, approver)
        raise OptionError(f"an answer is True, False or Answer(…), not {given!r:.60}")


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """An approval for every later call of a tool by an agent whose arguments have the same shape. It can be revoked.

    With `run`, it covers the calls of that run alone.
    """

    tool: str
    agent: str
    shape: str
    approver: str
    given: float
    run: str | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))

    def covers(self, request: ApprovalRequest) -> bool:
        """Return whether it approves this call."""
        same = (self.tool, self.agent) == (request.tool, request.agent) and self.run in (None, request.run)
        return same and self.shape == shape_of(request.args)


def shape_of(args: Mapping[str, Any]) -> str:
    """Return the names and kinds of arguments without their values: `{amount: number, to: [{email: text}]}`.

    Two calls have the same shape only if neither has a name that the other lacks: no arguments are not any arguments. A
    value that is too deep or too large to look at has a shape that no other has.
    """
    left = [MAX_SHAPE_NODES]
    return _shape(args, 0, left)


def _shape(value: Any, depth: int, left: list[int]) -> str:
    left[0] -= 1
    if depth > MAX_SHAPE_DEPTH or left[0] < 0:
        return f"?{secrets.token_hex(8)}"
    if isinstance(value, Mapping):
        names = sorted(map(str, value))
        return "{" + ", ".join(f"{name!r}: {_shape(value[name], depth + 1, left)}" for name in names) + "}"
    if isinstance(value, list | tuple):
        return "[" + " | ".join(sorted({_shape(item, depth + 1, left) for item in value})) + "]"
    if value is None or isinstance(value, bool):
        return "null" if value is None else "truth"
    return "number" if isinstance(value, int | float) else "text" if isinstance(value, str) else type(value).__name__
