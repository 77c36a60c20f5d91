"""What a port has in the store: the record of its runs, and its requests for approval. The first run opens the file."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.shelf_link import ShelfLink
from gloveport.host.approval_notices import ApprovalNotices
from gloveport.host.run_request import RunRequest
from gloveport.store.event_log import EventLog
from gloveport.store.run_audit import RunAudit
from gloveport.types import Outcome


class PortStore:
    """The store of one port, at a path."""

    def __init__(self, path: Path, notify: str | tuple[str, ...] | None = None) -> None:
        self._path = path
        self._notify = notify
        self._notices: ApprovalNotices | None = None
        self._log: EventLog | None = None
        self._link: ShelfLink | None = None

    def audit(self, desk: ApprovalDesk | None, run: str, agent: str) -> RunAudit:
        """Return the record of a new run. From now on, what waits at the desk can be answered by other processes."""
        if self._log is None:
            self._log = EventLog(self._path)
            if desk is not None:
                self._link = ShelfLink(desk, self._path, self._log.chain)
                self._notices = ApprovalNotices(desk, self._notify) if self._notify else None
        return RunAudit(self._log, run, agent)

    async def record(
        self, desk: ApprovalDesk | None, request: RunRequest, run: Callable[[RunRequest], Awaitable[Outcome]]
    ) -> Outcome:
        """Return the outcome of a run, of which start, calls and end are recorded."""
        audit = self.audit(desk, request.run, request.agent)
        audit.started(request.code, request.language, request.options.engine)
        try:
            outcome = await run(replace(request, audit=audit))
        except BaseException:
            audit.ended("cancelled", None)
            raise
        audit.ended(outcome.status, outcome.error.code if outcome.error else None)
        return outcome

    async def close(self) -> None:
        """Write what is left, and close the file."""
        log, link, self._log, self._link = self._log, self._link, None, None
        if self._notices is not None:
            await self._notices.close()
        if link is not None:
            await link.close()
        if log is not None:
            await log.close()
