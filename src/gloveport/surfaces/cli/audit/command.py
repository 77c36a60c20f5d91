"""`gloveport audit`: shows, verifies and exports what hosts have recorded in the store."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from gloveport.errors import CODES, GloveportError, OptionError, StoreError, exit_code
from gloveport.store.database import hint_for
from gloveport.store.encryption import StoreConnection
from gloveport.store.reading import DIGEST, StoredEvent, events, last_events, open_for_reading
from gloveport.store.stored_runs import RUN_ID
from gloveport.store.verification import AuditReport, damaged_payloads, verify
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import answer_document, to_text, write_document
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.record_documents import event_document, since_time
from gloveport.surfaces.terminal import Stream, clip, visible_line

SHOWN_ID_CHARS = 8
MAX_SHOWN_PROBLEMS = 100


def show_events_command(view: ViewOptions, run: str | None, tool: str | None, since: str | None, limit: int) -> int:
    """Show the last events; return the exit code."""
    path, after = view.store_path, since_time(since)
    with _reading(path) as connection:
        found = last_events(connection, limit, run=_run(run), tool=_tool(tool), since=after)
        documents = [event_document(connection, event) for event in found]
    if view.as_json:
        write_document(view.out, {"ok": True, "file": str(path), "events": documents})
        return 0
    for event, document in zip(found, documents, strict=True):
        view.out.line(_line(view.out, event, document["payloads"]))
    if not found:
        view.err.line("nothing was recorded that fits")
    return 0


def verify_command(view: ViewOptions, head: str | None) -> int:
    """Check all chains; return 0 if they are intact, else 1."""
    if head is not None and not DIGEST.fullmatch(head.lower()):
        raise OptionError("--head takes a hash of 64 hexadecimal digits", hint="`gloveport audit verify` prints the heads")
    path = view.store_path
    with _reading(path) as connection:
        report = verify(connection, head.lower() if head else None)
        damaged = _damaged(view, connection)
    count = len(report.problems) + len(damaged)
    message = f"{path} is not as it was recorded: {count:,} problem{'s' * (count != 1)}"
    wrong = GloveportError(message, code="audit-broken", hint=CODES["audit-broken"].fix) if count else None
    if view.as_json:
        write_document(view.out, answer_document(_report_document(path, report, damaged), wrong))
    else:
        _show_report(view, report, damaged)
    return exit_code(wrong.code) if wrong else 0


def _damaged(view: ViewOptions, connection: StoreConnection) -> tuple[str, ...]:
    """Return the contents that were changed. Without the key of an encrypted store, only the chains are checked."""
    try:
        return damaged_payloads(connection)
    except StoreError as error:
        if error.code != "store-key":
            raise
        view.err.line(f"{view.err.paint('!', 'yellow')} only the chains are checked, not the contents: {error.message}")
        return ()


def export_command(view: ViewOptions, run: str | None, tool: str | None, since: str | None) -> int:
    """Print the events, one JSON object on each line, or all in one document; return the exit code."""
    path, after = view.store_path, since_time(since)
    with _reading(path) as connection:
        found = events(connection, run=_run(run), tool=_tool(tool), since=after)
        if view.as_json:
            documents = [event_document(connection, event) for event in found]
            write_document(view.out, {"ok": True, "file": str(path), "events": documents})
            return 0
        for event in found:
            view.out.line(to_text(event_document(connection, event), indented=False))
    return 0


@contextmanager
def _reading(path: Path) -> Iterator[StoreConnection]:
    """Yield a connection to the store; what SQLite can't read is an error of the store."""
    with closing(open_for_reading(path)) as connection:
        try:
            yield connection
        except sqlite3.Error as error:
            raise StoreError(f"the store {path} can't be read: {error}", hint=hint_for(error)) from None


def _run(text: str | None) -> str:
    if text is not None and not RUN_ID.fullmatch(text):
        raise OptionError(f"--run takes the id of a run, not {text!r:.40}", hint="`gloveport audit show` shows the ids")
    return text or ""


def _tool(text: str | None) -> str | None:
    return None if text is None else text.removeprefix("tools.")


def _line(out: Stream, event: StoredEvent, contents: dict[str, Any]) -> str:
    """Return an event on one line; on a terminal it is cut to the width, with an ellipsis."""
    at = datetime.fromtimestamp(event.at / 1_000_000).strftime("%Y-%m-%d %H:%M:%S")
    parts = [f"{at}  {event.kind:<13}"]
    body = dict(event.body)
    run, agent = str(body.pop("run", "")), str(body.pop("agent", ""))
    parts += [f"{run[:SHOWN_ID_CHARS]}  {agent}"] if run else [event.chain[:SHOWN_ID_CHARS]]
    call, tool = body.pop("call", None), body.pop("tool", None) or event.tool
    parts += [f"#{call} {tool or ''}".rstrip()] if call is not None else []
    for key, value in sorted(body.items(), key=lambda item: item[0] in contents):  # what may be long comes last
        shown = contents.get(key, value)
        if value not in (None, "", {}) and not (isinstance(shown, str) and DIGEST.fullmatch(shown)):
            parts.append(f"{key}={shown if isinstance(shown, str) else to_text(shown, indented=False)}")
    parts += [event.raw] if event.raw is not None else []
    text = visible_line("  ".join(parts))
    return clip(text, out.columns) if out.terminal else text


def _report_document(path: Path, report: AuditReport, damaged: tuple[str, ...]) -> dict[str, object]:
    return {
        "file": str(path),
        "events": report.events,
        "chains": [{"chain": chain, "events": number, "head": head} for chain, (number, head) in report.heads.items()],
        "problems": [{"chain": one.chain, "number": one.number, "what": one.what} for one in report.problems],
        "damaged_payloads": list(damaged),
    }


def _show_report(view: ViewOptions, report: AuditReport, damaged: tuple[str, ...]) -> None:
    problems = [*map(str, report.problems), *(f"the arguments or result {one} were changed" for one in damaged)]
    counted = f"{report.events:,} event{'s' * (report.events != 1)} in {_chains(len(report.heads))}"
    if not problems:
        view.out.line(f"{view.out.paint('✓', 'green')} {counted}, intact")
    else:
        view.out.line(f"{view.out.paint('✗', 'red')} {counted}, not as recorded:")
        for problem in problems[:MAX_SHOWN_PROBLEMS]:
            view.out.line(f"  {visible_line(problem)}")
        if len(problems) > MAX_SHOWN_PROBLEMS:
            view.out.line(f"  … and {len(problems) - MAX_SHOWN_PROBLEMS:,} more; --json lists all")
    for head in report.newest:
        view.out.line(f"  head {visible_line(head)}")
    if not problems and view.err.terminal:
        text = "  keep it elsewhere: `gloveport audit verify --head HASH` proves later that it is there, and all before it"
        view.err.line(view.err.fold(as_typed(text), "  "))


def _chains(count: int) -> str:
    return f"{count:,} chain{'s' * (count != 1)}"
