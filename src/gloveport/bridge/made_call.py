"""A call of a run on its way: admitted, then made and recorded."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from gloveport.bridge.arguments import Contract
from gloveport.errors import Origin
from gloveport.large_values import LARGE_BYTES, is_large
from gloveport.rules.labels import LabelledRead
from gloveport.types import CallApproval, CallRecord, CallStatus, ToolCall

ARGUMENTS_NOT_RECORDED = {"…": "not kept: too large"}


class MadeCall(msgspec.Struct, gc=False):
    """A call that has started. `status` goes from `waiting` to `running` and then to its end, and never back."""

    id: int
    contract: Contract
    args: list[Any] | None
    started: float
    status: CallStatus = "running"
    seconds: float | None = None
    error: str | None = None
    origin: Origin | None = None
    setting: str | None = None
    named: dict[str, Any] | None = None  # the arguments by name, where finding the names takes long
    approval: CallApproval | None = None
    step: str | None = None

    @property
    def tool(self) -> str:
        """The tool's path as programs write it."""
        return self.contract.path

    def key(self, run: str) -> str:
        """Return its idempotency key: a UUID, the same whenever this call of the run is made again."""
        return str(UUID(bytes=sha256(f"{run} {self.id}".encode()).digest()[:16], version=4))

    def record(self) -> CallRecord:
        """Return the call as it stands now."""
        if self.args is None:
            args = ARGUMENTS_NOT_RECORDED
        else:
            args = self.contract.named_arguments(self.args) if self.named is None else self.named
        about = self.status, self.started, self.seconds, self.error, self.origin, self.approval, self.setting, self.step
        return CallRecord(self.id, self.tool, args, *about)


class AdmittedCall(NamedTuple):
    """A call that may be made.

    `sent` are the arguments to send. `named` are those to record, where finding their names takes long. `made` is its
    record if it has waited for a person. `reads` are the labelled reads because of which it asks, whatever the rules say.
    """

    contract: Contract
    sent: dict[str, Any]
    named: dict[str, Any] | None = None
    made: MadeCall | None = None
    reads: tuple[LabelledRead, ...] = ()


def recorded_arguments(args: Any, call: ToolCall) -> Any:
    """Return arguments that can be recorded on the event loop."""
    return ARGUMENTS_NOT_RECORDED if call.size > LARGE_BYTES or is_large(args) else args
