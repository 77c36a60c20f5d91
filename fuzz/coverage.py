"""Coverage: the pairs of successive lines that an input executes in the watched files."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType, TracebackType
from typing import Any

from fuzz.target import SOURCE

Step = Callable[[FrameType, str, Any], Any]


class Ways:
    """All pairs of lines seen so far. `with ways:` records what runs inside, and `new` counts the pairs that it added."""

    def __init__(self, watched: tuple[str, ...]) -> None:
        self.new = 0
        self._seen: set[tuple[CodeType, int, int]] = set()
        self._watched = tuple(str(SOURCE / path) for path in watched)
        self._before: Any = None

    def __len__(self) -> int:
        return len(self._seen)

    def __enter__(self) -> None:
        self.new = 0
        self._before = sys.gettrace()
        if self._watched:
            sys.settrace(self._enter)

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self._watched:
            sys.settrace(self._before)

    def _enter(self, frame: FrameType, _event: str, _argument: Any) -> Step | None:
        code, last = frame.f_code, 0
        if not code.co_filename.startswith(self._watched):
            return None

        def step(frame: FrameType, event: str, _argument: Any) -> Step:
            nonlocal last
            if event == "line":
                way = (code, last, frame.f_lineno)
                last = frame.f_lineno
                if way not in self._seen:
                    self._seen.add(way)
                    self.new += 1
            return step

        return step
