"""Runs, requests, snippets and events of the store as JSON data, as `--json` and the HTTP API show them."""

from __future__ import annotations

import re
import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import orjson

from gloveport.approvals.request import ApprovalRequest
from gloveport.errors import GloveportError, OptionError
from gloveport.store.encryption import StoreConnection
from gloveport.store.reading import StoredEvent, payloads
from gloveport.store.sessions import StoredSession
from gloveport.store.snippets import SavedSnippet
from gloveport.store.stored_runs import ListedRun, StoredRun, StoredRuns
from gloveport.values import from_wire, to_json

UNIT_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
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
        "line": request.line,
        "reason": request.reason,
        "rule": request.rule,
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


def begin_cancel(stored: StoredRuns, run: StoredRun, who: str) -> bool:
    """End a run, or ask its host to; return whether it has ended already. Raise GloveportError if it can't be ended."""
    if run.is_final:
        raise OptionError(f"the run {run.id} has ended already: {run.status}", code="run-ended")
    if not run.owned:
        if not stored.cancel(run):
            raise OptionError(f"the run {run.id} has changed meanwhile", code="run-taken-over", hint="look at it again")
        return True
    stored.ask_to_cancel(run, who)
    return False
