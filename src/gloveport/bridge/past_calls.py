"""Reads the calls that a run made before it was resumed from its recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gloveport.errors import ToolError, label
from gloveport.types import CallRecord

if TYPE_CHECKING:
    from gloveport.bridge.arguments import Contract
    from gloveport.sandbox.history import PastCall


def error_in_reply(past: PastCall) -> ToolError:
    """Return the error that the program got for a call."""
    told: Mapping[str, Any] = past.reply[1] if past.reply and isinstance(past.reply[1], Mapping) else {}
    return ToolError(
        str(told.get("message", "")),
        code=str(told.get("code", "tool-failed")),
        tool=told.get("tool"),
        hint=told.get("hint"),
        status=told.get("status"),
        data=told.get("data"),
        retryable=bool(told.get("retryable")),
        origin="tool" if told.get("origin") == "tool" else "gloveport",
    )


def past_record(past: PastCall, contract: Contract | None, began: int) -> CallRecord:
    """Return the record of a call. `began` is when the run did, in microseconds since 1970."""
    given = past.call.args if past.sent is None else [past.sent]
    if contract is not None:
        path, args = contract.path, contract.named_arguments(given)
    else:
        path, args = past.call.name, given[0] if len(given) == 1 and isinstance(given[0], dict) else {"…": given}
    failed = past.reply is None or past.reply[0] is not True
    error = error_in_reply(past) if failed else None
    return CallRecord(
        past.call.id,
        path,
        args,
        "failed" if failed else "ok",
        (past.started - began) / 1e6,
        None if past.ended is None else (past.ended - past.started) / 1e6,
        None if error is None else f"{label(error.code, error.origin)}: {error.message}",
        None if error is None else error.origin,
        step=past.call.step,
    )
