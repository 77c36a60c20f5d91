"""The session of one run: its workspace is filled before the program starts, and kept if the program succeeds."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from typing import Any

from gloveport.errors import SandboxError, WorkspaceError
from gloveport.host.sessions.contents import EMPTY_STATE, MAX_STATE_BYTES, SessionContents
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.run_attempt import AttemptResult
from gloveport.sandbox.run_worker import RunWorker
from gloveport.sandbox.workspace import Workspace, WorkspaceFiles
from gloveport.values import encode

_FULL = re.compile(r"No space left on device|disk is full|ENOSPC")
_TOO_LARGE = re.compile(r"File too large|EFBIG")


class RunSession:
    """A session while a run uses it. `save` keeps its new contents, unless the run has done so before it was resumed."""

    def __init__(
        self,
        contents: SessionContents,
        snapshot: str,
        quota: WorkspaceQuota,
        save: Callable[[SessionContents], Awaitable[None]] | None,
    ) -> None:
        self.snapshot = snapshot
        self._contents = contents
        self._quota = quota
        self._save = save
        self._workspace: Workspace | None = None

    @property
    def state(self) -> bytes:
        """The state at the start of the run, encoded."""
        return self._contents.state

    async def enter(self, worker: RunWorker) -> None:
        """Put the files of the session into the workspace of a worker."""
        self._workspace = await fill_workspace(worker, self._contents.files, self._quota)

    async def leave(self, worker: RunWorker, result: AttemptResult, *, keep: bool) -> AttemptResult:
        """End the worker and keep what its program has left, if it succeeded; return the result, or why that fails."""
        assert self._workspace is not None
        if result.error is not None:
            text = str(result.error.get("message"))[:1000]
            full = _TOO_LARGE.search(text) or (_FULL.search(text) and self._workspace.is_full())
            return replace(result, error=_full(result.error), reported_by_guest=False) if full else result
        if not keep or self._save is None:
            return result
        await worker.end()
        try:
            left = replace(self._contents, state=_checked_state(result.state))
            left, is_new = await asyncio.to_thread(self._left, left, self._workspace)
            if is_new:
                await self._save(left)
        except WorkspaceError as error:
            told = {"code": error.code, "message": error.message, "hint": error.hint}
            return replace(result, value=None, error=told, reported_by_guest=False)
        return result

    def _left(self, left: SessionContents, workspace: Workspace) -> tuple[SessionContents, bool]:
        """Return what a run has left, and whether it differs from what it has found. A new session is always kept."""
        before, left = self._contents, replace(left, files=workspace.read())
        had_any = before.files.files or before.files.folders or before.state != EMPTY_STATE
        return left, not had_any or (left.files, left.state) != (before.files, before.state)

    def close(self) -> None:
        """Give up the workspace."""
        if self._workspace is not None:
            self._workspace.close()
            self._workspace = None


async def fill_workspace(worker: RunWorker, files: WorkspaceFiles, quota: WorkspaceQuota) -> Workspace:
    """Put files into the workspace of a worker, and return it for whoever closes it; raise SandboxError if it has none."""
    fd = worker.take_workspace()
    if fd is None:
        raise SandboxError("this sandbox has no workspace", hint="use the engine deno or cpython of this machine")
    workspace = Workspace(fd, quota)
    try:
        await asyncio.to_thread(workspace.fill, files)
    except BaseException:
        workspace.close()
        raise
    return workspace


def _full(error: Mapping[str, Any]) -> dict[str, Any]:
    message = f"the workspace of the session is full: {str(error.get('message'))[:1000]}"
    return {"code": "workspace-full", "message": message, "line": error.get("line"), "column": error.get("column")}


def _checked_state(state: Any) -> bytes:
    """Return what a guest reports as the state of its session, encoded; raise WorkspaceError if it can't be kept."""
    if not isinstance(state, dict):
        raise WorkspaceError("the program has left no state", code="workspace-refused")
    text = encode(state, "state")
    if len(text) > MAX_STATE_BYTES:
        raise WorkspaceError(f"the state of the session has more than {MAX_STATE_BYTES:,} bytes")
    return text
