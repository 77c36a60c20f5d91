"""What the bridge of a run is told about the run to which its calls belong."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gloveport.store.run_audit import RunAudit
from gloveport.types import CallEvent, CallRecord, Tool

if TYPE_CHECKING:
    from gloveport.bridge.made_call import MadeCall
    from gloveport.bridge.plans import ApprovedPlan, PlanDraft
    from gloveport.bridge.run_bridge import RunBridge
    from gloveport.sources.caller import CallCaller

OnCall = Callable[[CallEvent, CallRecord], None]
CheckCall = Callable[[str, str, Tool, Mapping[str, Any]], Awaitable[str | None]]
"""Returns why an allowed call is denied all the same: of a run, by an agent, of a tool, with these arguments."""


@dataclass(frozen=True, slots=True)
class RunContext:
    """The run to which calls belong: its id, when it began (`time.monotonic()`), and who listens.

    `line_of` returns the line of the program that calls a tool, where only one can be meant. `plan` is the plan that the
    run makes, or the one that it follows. The calls of a snippet belong to the run that called it: `call_base` tells their
    numbers from those of its own. `run_snippet` runs one. `call_caller` makes a call of a tool that the caller has brought.
    """

    run: str = ""
    began: float | None = None
    on_call: OnCall | None = None
    line_of: Callable[[str], int | None] = lambda tool: None
    audit: RunAudit | None = None
    is_resumed: bool = False
    plan: PlanDraft | ApprovedPlan | None = None
    call_base: int = 0
    run_snippet: Callable[[RunBridge, MadeCall, dict[str, Any]], Awaitable[Any]] | None = None
    call_caller: CallCaller | None = None
    session: str | None = None
