"""The labels of `step` in Monty, which has no context of a task: a label follows the events.

Code that runs because of a reply or of the end of a sleep has the label under which the call was made or the sleep began.
"""

from __future__ import annotations

from gloveport.values import encode

MAX_LABEL_CHARS = 200


class StepLabels:
    """The label of the code that runs now, and those of its pending calls and sleeps, by the worker's ids."""

    def __init__(self) -> None:
        self.current = ""
        self._pending: dict[int, str] = {}

    def change(self, label: object) -> None:
        """Enter or leave a step."""
        self.current = str(label or "")[:MAX_LABEL_CHARS]

    def wait(self, call: int) -> bytes:
        """Note that the program waits for a call or a sleep. Return the end of the frame of a call."""
        if not self.current:
            return b""
        self._pending[call] = self.current
        return b",%b" % encode(self.current)

    def resume(self, call: int) -> None:
        """Go on with what waited for a call or a sleep."""
        self.current = self._pending.pop(call, "")

    def of(self, call: int) -> str:
        """Return the label of what waits for a call or a sleep."""
        return self._pending.get(call, "")
