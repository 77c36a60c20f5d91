"""An outcome as HTML for notebooks: its result as a table, its calls as a tree; bounded, and inert whatever it holds.

No style sheet, script, link or image: nothing is loaded, and a notebook that removes such things shows the same.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gloveport.types import CallRecord, Outcome

MAX_ROWS, MAX_COLUMNS, MAX_CELL_CHARS = 100, 12, 200
MAX_TEXT_CHARS = 1000  # of an error, a warning or a log line
MAX_STEP_DEPTH = 8
MAX_VALUE_BYTES, MAX_CALLS_BYTES, MAX_LOGS_BYTES, MAX_NOTES_BYTES = 20_000, 16_000, 6_000, 6_000
_PRE = "white-space:pre-wrap;margin:4px 0;overflow-wrap:anywhere"
_END = "</ul></li>"  # of a step
_MARKS = {"ok": "✓", "failed": "✗", "waiting": "…", "running": "…", "queued": "…", "planned": "○", "unknown": "?"}
_COLOURS = {"completed": "#2a7d2a", "failed": "#c0392b", "waiting": "#b7791f", "cancelled": "#777"}

_shorten = reprlib.Repr()
_shorten.maxlevel, _shorten.maxdict, _shorten.maxlist, _shorten.maxset = 3, 8, 8, 8
_shorten.maxstring = _shorten.maxother = _shorten.maxlong = 80


def printable(text: str) -> str:
    """Return the text with escapes for what a terminal or a browser would obey or hide: others wrote parts of it."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return text
    return "".join(one if one == "\n" or one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def outcome_html(outcome: Outcome) -> str:
    """Return the outcome as one HTML element of at most 50 kB."""
    calls = "1 call" if len(outcome.calls) == 1 else f"{len(outcome.calls):,} calls"
    colour = _COLOURS.get(outcome.status, "inherit")
    took = f"{outcome.usage.wall_seconds:.2f} s{f' on {_text(outcome.engine)}' if outcome.engine else ''}"
    head = f"<b style='color:{colour}'>{_text(outcome.status)}</b> in {took} with {calls}"
    parts = [f"<div>{head}</div>"]
    if outcome.error is not None:
        parts.append(f"<pre style='{_PRE}'>{_text(str(outcome.error), 4 * MAX_TEXT_CHARS)}</pre>")
    elif outcome.ok:
        parts.append(_value(outcome.value))
    parts += [_value(value) for value in outcome.emitted[:1]]
    notes = [f"warning: {text}" for text in outcome.warnings] + [f"waits for approval: {one}" for one in outcome.waiting]
    parts.append(_lines(notes, MAX_NOTES_BYTES))
    if outcome.calls:
        parts.append(f"<details open><summary>{calls}</summary>{_calls(outcome.calls)}</details>")
    if outcome.logs:
        logs = _lines((f"{line.level}: {line.text}" for line in outcome.logs), MAX_LOGS_BYTES)
        parts.append(f"<details><summary>log</summary>{logs}</details>")
    # Notebooks set text between dollar signs as formulas, except below these classes.
    return f"<div class='tex2jax_ignore mathjax_ignore' style='max-width:100%;overflow-x:auto'>{''.join(parts)}</div>"


def _text(text: str, most: int = MAX_TEXT_CHARS) -> str:
    """Return a text of others, shortened and inert."""
    import html  # a key press in a shell waits for this module

    return html.escape(printable(text[:most])) + ("…" if len(text) > most else "")


def _short(value: Any) -> str:
    if isinstance(value, str):
        return value
    try:
        return _shorten.repr(value)
    except (ValueError, RecursionError):  # an integer of thousands of digits
        return f"({type(value).__name__})"


def _fitting(pieces: Iterable[str], budget: int, total: int) -> tuple[str, int]:
    """Return as many whole pieces as the budget in bytes takes, joined, and how many of the total are left out."""
    taken = list[str]()
    for piece in islice(pieces, MAX_ROWS):
        budget -= len(piece.encode())
        if budget < 0:
            break
        taken.append(piece)
    return "".join(taken), total - len(taken)


def _left_out(number: int, what: str) -> str:
    return f"<div>… {number:,} more {what}</div>" if number > 0 else ""


def _row(cells: Iterable[Any], kind: str = "td") -> str:
    shown = (f"<{kind}>{_text(_short(cell), MAX_CELL_CHARS)}</{kind}>" for cell in cells)
    return f"<tr>{''.join(shown)}</tr>"


def _value(value: Any) -> str:
    """Return a list of objects, or an object, as a table; anything else as text."""
    if isinstance(value, Mapping) and value:
        return _table("", (_row(pair) for pair in value.items()), len(value), "fields", MAX_VALUE_BYTES // 2)
    if isinstance(value, (list, tuple)) and value and all(isinstance(row, Mapping) for row in value[:MAX_ROWS]):
        columns = list(islice(dict.fromkeys(key for row in value[:MAX_ROWS] for key in row), MAX_COLUMNS))
        rows = (_row(row.get(column, "") for column in columns) for row in value[:MAX_ROWS])
        return _table(_row(columns, "th"), rows, len(value), "rows", MAX_VALUE_BYTES // 2)
    return f"<pre style='{_PRE}'>{_text(_short(value), 4 * MAX_TEXT_CHARS)}</pre>"


def _table(head: str, rows: Iterable[str], total: int, what: str, budget: int) -> str:
    body, left = _fitting(rows, budget, total)
    style = "border-collapse:collapse;margin:4px 0;text-align:left"
    return f"<table border='1' cellpadding='4' style='{style}'>{head}{body}</table>{_left_out(left, what)}"


def _lines(texts: Iterable[str], budget: int) -> str:
    shown = list(texts)
    body, left = _fitting((f"<pre style='{_PRE}'>{_text(text)}</pre>" for text in shown), budget, len(shown))
    return body + _left_out(left, "lines")


def _calls(calls: Iterable[CallRecord]) -> str:
    """Return the calls as nested lists: below each step those that were made in it, in the order in which they began."""
    listed, opened = list(calls), list[str]()
    shown, budget = list[str](), MAX_CALLS_BYTES
    for call in listed[:MAX_ROWS]:
        path = call.step.split("/", MAX_STEP_DEPTH - 1) if call.step else []
        common = 0
        while common < min(len(opened), len(path)) and opened[common] == path[common]:
            common += 1
        steps = "".join(f"<li><b>{_text(step, MAX_CELL_CHARS)}</b><ul>" for step in path[common:])
        piece = f"{_END * (len(opened) - common)}{steps}{_call(call)}"
        budget -= len(piece.encode())
        if budget < 0:
            break
        shown.append(piece)
        opened = path
    tree = f"<ul style='list-style:none;padding-left:1em'>{''.join(shown)}{_END * len(opened)}</ul>"
    return tree + _left_out(len(listed) - len(shown), "calls")


def _call(call: CallRecord) -> str:
    args = _text(_short(call.args), MAX_CELL_CHARS)
    took = "" if call.seconds is None else f" <small>{call.seconds * 1000:,.0f} ms</small>"
    error = f"<br><small>{_text(call.error, MAX_CELL_CHARS)}</small>" if call.error else ""
    return f"<li>{_MARKS.get(call.status, '?')} {_text(call.tool, MAX_CELL_CHARS)} <code>{args}</code>{took}{error}</li>"
