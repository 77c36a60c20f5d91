"""Runs, requests, snippets and events of the store as JSON data, as `--json` and the HTTP API show them."""

from __future__ import annotations

import re
import time
from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import Any

import orjson

from gloveport.approvals.request import ApprovalRequest
from gloveport.errors import GloveportError, OptionError
from gloveport.host.runs.past_outcome import past_outcome
from gloveport.store.encryption import StoreConnection
from gloveport.store.reading import StoredEvent, payloads
from gloveport.store.sessions import StoredSession
from gloveport.store.snippets import SavedSnippet
from gloveport.store.stored_runs import ListedRun, StoredRun, StoredRuns
from gloveport.undo import Rollback, UndoneWrite
from gloveport.values import from_wire, to_json

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
MAX_TITLE_CHARS = 120
_COMMENT = re.compile(r"^(?://+|/?\*+/?|#+!?|\"{3}|```\w*)\s*|\s*(?:\*/|\"{3})$")
_IMPORT = re.compile(r"(?:import|from)\b")
CANCEL_SECONDS = 5.0  # for the host of a run to end it
CANCEL_POLL_SECONDS = 0.05


def since_time(text: str | None, option: str = "--since") -> int:
    """Return the time that an option names as so long ago, in microseconds since 1970."""
    if text is None:
        return 0
    found = re.fullmatch(r"(\d{1,6})([smhd])", text)
    if found is None:
        raise OptionError(f"{option} takes a time such as 30s, 10m, 1h or 7d, not {text!r:.40}")
    return int((time.time() - int(found[1]) * UNIT_SECONDS[found[2]]) * 1_000_000)


def state_of(run: ListedRun) -> str:
    """Return the status of a run, in one word: `interrupted` if its process has ended before it did."""
    return "interrupted" if run.status == "running" and not run.owned else run.status


def title_of(code: str) -> str:
    """Return the first line of a program that says something, without the marks of a comment; empty if none does."""
    for line in code[: MAX_TITLE_CHARS * 50].splitlines():
        text = _COMMENT.sub("", line.strip()).strip()
        if any(each.isalnum() for each in text) and not _IMPORT.match(text):
            return text[:MAX_TITLE_CHARS]
    return ""


def run_document(run: ListedRun) -> dict[str, Any]:
    """Return a run as JSON data."""
    return {
        "run": run.id,
        "status": state_of(run),
        "agent": run.agent,
        "language": run.language,
        "engine": run.engine,
        "started": datetime.fromtimestamp(run.started, UTC).isoformat(timespec="milliseconds"),
        "seconds": None if run.ended is None else round(run.ended - run.started, 6),
        "calls": run.calls,
        "error": run.error,
        "obstacle": run.obstacle,
    }


def request_document(request: ApprovalRequest) -> dict[str, Any]:
    """Return a request as JSON data."""
    return {
        "id": request.id,
        "digest": request.digest,
        "tool": request.tool,
        "args": to_json(dict(request.args)),
        "agent": request.agent,
        "run": request.run,
        "call": request.call,
        "line": request.line,
        "reason": request.reason,
        "rule": request.rule,
        "shape": request.shape,
        "is_unknown": request.is_unknown,
        "reads": [asdict(one) for one in request.reads],
        "advice": list(request.advice),
        "asked": request.asked,
        "expires": request.expires,
    }


def snippet_document(found: SavedSnippet) -> dict[str, Any]:
    """Return a snippet as JSON data, without its text."""
    snippet = found.snippet
    return {
        "name": snippet.name,
        "description": snippet.description,
        "language": snippet.language,
        "engine": snippet.engine,
        "tools": sorted(snippet.tools),
        "parameters": None if snippet.parameters is None else list(snippet.parameters),
        "run": snippet.run,
        "saver": found.saver,
        "saved": found.saved,
    }


def session_document(found: StoredSession) -> dict[str, Any]:
    """Return a session as JSON data, without its files. `run` is the run that uses it now."""
    return {
        "agent": found.agent,
        "session": found.name,
        "files": found.files,
        "bytes": found.size,
        "used": datetime.fromtimestamp(found.used, UTC).isoformat(),
        "run": found.run,
    }


def rollback_document(found: Rollback) -> dict[str, Any]:
    """Return what became of the writes of a run as JSON data."""
    return {"ok": found.ok, "run": found.run, "writes": list(map(_undone_document, found.writes))}


def _undone_document(write: UndoneWrite) -> dict[str, Any]:
    return {
        "call": write.call,
        "tool": write.tool,
        "args": to_json(write.args),
        "status": write.status,
        "undo": write.undo,
        "undo_args": None if write.undo_args is None else to_json(dict(write.undo_args)),
        "problem": write.problem or None,
    }


def event_document(connection: StoreConnection, event: StoredEvent) -> dict[str, Any]:
    """Return an event as JSON data, with the contents to which it refers."""
    found = {
        "chain": event.chain,
        "number": event.number,
        "at": datetime.fromtimestamp(event.at / 1_000_000, UTC).isoformat(timespec="microseconds"),
        "kind": event.kind,
        "body": dict(event.body),
        "hash": event.hash,
        "payloads": {key: _content(value) for key, value in payloads(connection, event).items()},
    }
    return found if event.raw is None else {**found, "raw": event.raw}


def _content(content: bytes) -> Any:
    """Return arguments or a result as JSON data; anything else as text."""
    try:
        return to_json(from_wire(orjson.loads(content)))
    except (GloveportError, ValueError):
        return content.decode("utf-8", "replace")


def cancel_run(stored: StoredRuns, run: StoredRun, who: str) -> None:
    """End a run, or have the host that runs it end it; raise GloveportError if that fails."""
    if begin_cancel(stored, run, who):
        return
    end = time.monotonic() + CANCEL_SECONDS
    while not stored.find(run.id).is_final:
        if time.monotonic() > end:
            raise not_cancelled(run)
        time.sleep(CANCEL_POLL_SECONDS)


def not_cancelled(run: StoredRun) -> GloveportError:
    """Return the error for a run whose host has not ended it in time."""
    return GloveportError(f"the host of {run.id} has not ended it yet", hint="look at it again, or end its process")


def _calls_of(stored: StoredRuns, run: StoredRun) -> int:
    """Return how many calls a run has made, as far as its steps are kept."""
    try:
        return len(past_outcome(stored, replace(run, status="cancelled")).calls)
    except GloveportError:
        return run.calls


def begin_cancel(stored: StoredRuns, run: StoredRun, who: str) -> bool:
    """End a run, or ask its host to; return whether it has ended already. Raise GloveportError if it can't be ended."""
    if run.is_final:
        raise OptionError(f"the run {run.id} has ended already: {run.status}", code="run-ended")
    if not run.owned:
        if not stored.cancel(run, _calls_of(stored, run)):
            raise OptionError(f"the run {run.id} has changed meanwhile", code="run-taken-over", hint="look at it again")
        return True
    stored.ask_to_cancel(run, who)
    return False
