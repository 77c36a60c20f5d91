"""What a host puts into its log: events, steps of runs, and changes of other tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import msgspec

from gloveport.errors import StoreError

NOTHING: Mapping[str, bytes] = MappingProxyType({})


class Statement(NamedTuple):
    """A change of another table, in the same transaction as the events around it."""

    sql: str
    values: Sequence[Any] | Callable[[], Sequence[Any]]  # a function is called in the thread


class RunStep(msgspec.Struct, gc=False):
    """One step of a run, to be repeated when it is resumed: its number, sender, bytes, and the fence of its owner."""

    run: str
    number: int
    sender: str
    content: bytes
    fence: int = 1


Body = Mapping[str, Any]
Contents = Mapping[str, bytes]
Answer = Callable[[bool | StoreError], None]
"""Called in the thread: with True when an item is written, False when its guard refuses it, or the error of the store."""


class LateEvent(msgspec.Struct, gc=False):
    """An event whose body is made in the thread, from values that cannot change until then."""

    at: int  # nanoseconds since 1970

    def parts(self) -> tuple[str, Body, Contents]:
        """Return the kind of the event, its body, and its contents."""
        raise NotImplementedError

    def size(self) -> int:
        """Return roughly how many bytes the event holds, without those of its run's steps."""
        return 0


class LogEvent(LateEvent, gc=False):
    """An event that waits for the thread. `contents` are stored apart; the body gets their digests.

    `guard` is a statement that must change a row: if it changes none, the event is not written either.
    """

    kind: str
    body: Body
    contents: Contents = NOTHING
    guard: Statement | None = None
    answer: Answer | None = None

    def parts(self) -> tuple[str, Body, Contents]:
        return self.kind, self.body, self.contents

    def size(self) -> int:
        return sum(map(len, self.contents.values()))


class Barrier(NamedTuple):
    """An item without content: when it is answered, everything before it is written."""

    answer: Answer


Item = LateEvent | Statement | RunStep | Barrier


def size_of(item: Item) -> int:
    """Return roughly how many bytes an item holds."""
    if isinstance(item, RunStep):
        return len(item.content)
    return item.size() if isinstance(item, LateEvent) else 0


def waits_for(item: Item) -> Answer | None:
    """Return the callback of an item; None when nobody waits for it."""
    return item.answer if isinstance(item, LogEvent | Barrier) else None
