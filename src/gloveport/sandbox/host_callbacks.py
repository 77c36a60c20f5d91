"""What the sandbox needs of the host for one run: tools, a place for output, and a recorder."""

from __future__ import annotations

from typing import Any, Protocol

from gloveport.errors import ToolError
from gloveport.sandbox.history import PastCall
from gloveport.types import LogLine, ToolCall


class HostCallbacks(Protocol):
    """What a run can reach on the host."""

    async def call(self, call: ToolCall) -> Any:
        """Return the tool's result. The guest receives a ToolError; any other GloveportError ends the run."""
        ...

    async def call_again(self, past: PastCall) -> Any:
        """Return the result of a call that an earlier host made and for which the program has no reply."""
        ...

    async def call_sync(self, name: str, args: list[Any]) -> Any:
        """Return the answer to a look-up that the program waits for."""
        ...

    def stop_asking(self) -> None:
        """Note that the program has ended: nobody needs to answer for it any more."""
        ...

    def report_defect(self, error: Exception) -> ToolError:
        """Log a defect of the host; return an error that shows the guest none of its internals."""
        ...

    def log(self, line: LogLine) -> None:
        """Receive a line of output."""
        ...

    def emit(self, value: Any) -> None:
        """Receive a value for the user."""
        ...


class Recorder(Protocol):
    """Records what passes between host and guest, in order."""

    def event(self, payload: bytes) -> None:
        """Record an event. The first one has just been sent to the guest; each other one is sent afterwards."""
        ...

    def frame(self, payload: bytes) -> None:
        """Record a frame that the guest sent."""
        ...
