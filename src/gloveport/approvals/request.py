"""What a person is asked about a call, what they may answer, and the shape of arguments that a standing approval covers."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from gloveport.errors import OptionError
from gloveport.large_values import sha256
from gloveport.rules.labels import LabelledRead
from gloveport.types import FETCH_TOOLS
from gloveport.urls import origin_of
from gloveport.values import encode

Scope = Literal["once", "run", "always"]
"""What an approval covers: this call, or also those of the same shape that wait or come later, in its run or in any."""

EXPIRY_MARGIN_SECONDS = 60.0
"""An approval that was given in time counts so much longer: clocks are set while runs wait."""
MAX_SHAPE_DEPTH = 20
MAX_SHAPE_NODES = 1000


def call_digest(tool: str, args: Mapping[str, Any], *about: str | bool) -> str:
    """Return the digest of a call: equal for equal tools and arguments, whatever the order of the keys."""
    return sha256(encode([tool, _sorted(args), *about])).hex()


def _sorted(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value, key=str)}
    return [_sorted(item) for item in value] if isinstance(value, list | tuple) else value


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A call that waits for a person. Times are seconds since 1970; `line` is the line of the program.

    `reason` is why it asks, and `rule` the rule that says so. `definition` is the fingerprint of the tool. `is_unknown` if
    the call has left a host that ended before it got the answer: nobody knows whether it was made. `reads` are the private
    and untrusted reads after which it could send data out: then the answer is for this call alone. `advice` says where to
    look in the program. It may miss anything, and changes no decision.
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
    definition: str = ""
    is_unknown: bool = False
    reads: tuple[LabelledRead, ...] = ()
    advice: tuple[str, ...] = ()
    id: str = field(default_factory=lambda: secrets.token_hex(16))

    @property
    def shape(self) -> str:
        """What a standing approval of this call covers: the shape of its arguments, and of `fetch` method and origin."""
        shape = shape_of(self.args)
        if self.tool not in FETCH_TOOLS:
            return shape
        return f"{self.args.get('method')} {origin_of(str(self.args.get('url')))} {shape}"

    @property
    def digest(self) -> str:
        """The digest of the tool, its definition and its arguments, to which an answer refers."""
        after = ("after labelled reads",) if self.reads else ()
        return call_digest(self.tool, self.args, self.definition, self.is_unknown, *after)


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a request: who gave it, and what may happen. With `args`, the call is made with these instead.

    For a call of which nobody knows whether it was made, approved means that it is made again. With `happened`, it was
    made and returned `value`.
    """

    approved: bool
    approver: str
    scope: Scope = "once"
    reason: str = ""
    args: Mapping[str, Any] | None = None
    happened: bool = False
    value: Any = None

    def __post_init__(self) -> None:
        # "no" is true for Python, and an unknown scope must not become the widest one.
        if not isinstance(self.approved, bool) or self.scope not in get_args(Scope):
            raise OptionError("an answer has approved=True or False, and a scope of once, run or always")
        if not (isinstance(self.approver, str) and isinstance(self.reason, str)):  # they are recorded as text
            raise OptionError("the approver and the reason of an answer are text")

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

    With `run`, it covers the calls of that run alone. It holds for one definition of the tool.
    """

    tool: str
    agent: str
    shape: str
    approver: str
    given: float
    run: str | None = None
    id: str = field(default_factory=lambda: secrets.token_hex(8))
    definition: str = ""

    def covers(self, request: ApprovalRequest) -> bool:
        """Return whether it approves this call."""
        named = (self.tool, self.definition, self.agent) == (request.tool, request.definition, request.agent)
        same = named and self.run in (None, request.run) and not request.is_unknown and not request.reads
        return same and self.shape == request.shape


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
