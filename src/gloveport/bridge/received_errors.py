"""The errors that the host has sent to a run. They verify what its guest reports about them."""

from __future__ import annotations

from typing import NamedTuple

from gloveport.errors import Origin, ToolError

MAX_ERRORS = 1000


class ReceivedError(NamedTuple):
    """What the host knows about an error that a program received, and that the program can't change."""

    origin: Origin
    hint: str | None = None
    setting: str | None = None


class ReceivedErrors:
    """The latest error for each code and tool, at most `MAX_ERRORS`.

    Once a tool has reported an error under some code, that code of that tool is the tool's for the rest of the run: a
    program can't pass a tool's `denied` off as a decision of Gloveport.
    """

    def __init__(self) -> None:
        self._errors: dict[tuple[str, str | None], ReceivedError] = {}

    def add(self, error: ToolError) -> None:
        """Note an error that the program is about to receive."""
        key = error.code, error.tool
        earlier = self._errors.get(key)
        if earlier is None and len(self._errors) >= MAX_ERRORS:
            return
        if earlier is None or earlier.origin == "gloveport":
            self._errors[key] = ReceivedError(error.origin, error.hint, error.setting)

    def find(self, code: str, tool: str | None) -> ReceivedError | None:
        """Return what is known about an error of this code and tool; None when the run has received none."""
        return self._errors.get((code, tool))
