"""How a request for approval is shown: everything that the call would do, with hostile text made visible, nothing cut."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from gloveport.approvals.request import ApprovalRequest
from gloveport.surfaces.documents import to_text
from gloveport.surfaces.terminal import Stream, visible_line
from gloveport.values import to_json

SHORT_ID_CHARS = 8


def request_document(request: ApprovalRequest) -> dict[str, Any]:
    """Return a request as JSON data."""
    return {
        "id": request.id,
        "digest": request.digest,
        "tool": request.tool,
        "args": to_json(dict(request.args)),
        "agent": request.agent,
        "run": request.run,
        "line": request.line,
        "reason": request.reason,
        "rule": request.rule,
        "asked": request.asked,
        "expires": request.expires,
    }


def request_lines(out: Stream, request: ApprovalRequest) -> Iterator[str]:
    """Yield the lines that show a request."""
    yield f"{out.paint(request.id[:SHORT_ID_CHARS], 'bold')}  tools.{out.paint(visible_line(request.tool), 'bold')}"
    for line in to_text(to_json(dict(request.args)), indented=True).splitlines():
        yield f"    {visible_line(line)}"
    place = f", line {request.line} of its program" if request.line else ""
    yield f"    {out.paint('by', 'dim')} the agent {visible_line(request.agent)}, run {request.run[:SHORT_ID_CHARS]}{place}"
    because = visible_line(request.reason or "a rule says so")
    rule = f" ({visible_line(request.rule)})" if request.rule else ""
    yield f"    {out.paint('asks because', 'dim')} {because}{rule}; {remaining(request)}"


def remaining(request: ApprovalRequest) -> str:
    """Return how long a request still waits."""
    seconds = max(0, request.expires - time.time())
    if seconds < 120:
        return f"expires in {seconds:.0f} s"
    minutes = seconds / 60
    return f"expires in {minutes:.0f} min" if minutes < 120 else f"expires in {minutes / 60:.0f} h"
