"""What a task process has returned for the same input before: an agent's program is read once, however often it runs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

MAX_CACHED_BYTES = 256 * 1024  # of a process: inputs and results
MAX_ENTRY_BYTES = 64 * 1024
ENTRY_OVERHEAD_BYTES = 512  # charged for each entry, beside its size


class ResultCache:
    """The results of one process, the least recently used first. Its owner drops it together with the process.

    A process that hostile text has taken over may have returned anything. So its results must not outlast it.
    """

    def __init__(self) -> None:
        self._results: OrderedDict[tuple[bytes, ...], list[bytes]] = OrderedDict()
        self._bytes = 0

    def find(self, given: Sequence[bytes]) -> list[bytes] | None:
        """Return the result for exactly this input; None if it is not known."""
        if _size(given, ()) > MAX_ENTRY_BYTES:
            return None
        key = tuple(given)
        if (result := self._results.get(key)) is not None:
            self._results.move_to_end(key)
        return result

    def add(self, given: Sequence[bytes], result: list[bytes]) -> None:
        """Keep a result, unless it is too large."""
        key = tuple(given)
        size = _size(key, result)
        if size > MAX_ENTRY_BYTES:
            return
        self._bytes += size - (_size(key, known) if (known := self._results.pop(key, None)) is not None else 0)
        self._results[key] = result
        while self._bytes > MAX_CACHED_BYTES:
            self._bytes -= _size(*self._results.popitem(last=False))


def _size(key: Sequence[bytes], result: Sequence[bytes]) -> int:
    return ENTRY_OVERHEAD_BYTES + sum(map(len, key)) + sum(map(len, result))
