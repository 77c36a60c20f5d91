"""How a request for approval is shown: everything that the call would do, with hostile text made visible, nothing cut."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from gloveport.approvals.request import ApprovalRequest
from gloveport.surfaces.documents import to_text
from gloveport.surfaces.terminal import MAX_CHARACTERS_PER_COLUMN, Stream, cells, visible_line
from gloveport.values import to_json

SHORT_ID_CHARS = 8
MAX_ROWS_AS_ONE = 12  # a row with more values than this is slower to read than several


def request_lines(out: Stream, requests: Iterable[ApprovalRequest]) -> Iterator[str]:
    """Yield the lines that show requests; what is the same for some that follow each other comes once, after them."""
    for _, group in groupby(
        requests, lambda one: (one.run, one.line, one.agent, one.reason, one.rule, one.reads, one.advice)
    ):
        calls = list(group)
        for request in calls:
            yield from _call_lines(out, request)
        yield from _about_lines(out, min(calls, key=lambda one: one.expires))


def _call_lines(out: Stream, request: ApprovalRequest) -> Iterator[str]:
    yield f"{out.paint(request.id[:SHORT_ID_CHARS], 'bold')}  tools.{out.paint(visible_line(request.tool), 'bold')}"
    yield from argument_lines(out, request.args)


def argument_lines(out: Stream, args: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines that show the arguments of a call."""
    rows = argument_rows(args, out.columns - 7 if out.terminal else None) if args else ["no arguments"]
    yield from (f"    {out.paint('│', 'dim')} {row}" for row in rows)


def _about_lines(out: Stream, request: ApprovalRequest) -> Iterator[str]:
    place = f", line {request.line} of its program" if request.line else ""
    yield out.fold(f"    agent {visible_line(request.agent)}, run {request.run[:SHORT_ID_CHARS]}{place}", " " * 6)
    because = visible_line(request.reason or "a rule says so")
    rule = f" ({visible_line(request.rule)})" if request.rule else ""
    yield out.fold(f"    asks because {because}{rule}", " " * 6)
    yield from (out.fold(f"    after {visible_line(str(one))}", " " * 6) for one in request.reads)
    yield from (out.fold(f"    advice: {visible_line(one)}", " " * 6) for one in request.advice)
    yield f"    {remaining(request)}"


def argument_rows(args: Mapping[str, Any], columns: int | None) -> list[str]:
    """Return arguments as JSON in rows of so many columns: in one row if it fits, so that many calls can be looked over.

    After a mark at the edge, none of the rows passes for a line of our own.
    """
    lines = to_text(to_json(dict(args)), indented=True).split("\n")
    if columns is None:
        return lines
    if len(lines) <= MAX_ROWS_AS_ONE and cells(row := " ".join(map(str.strip, lines))) <= columns:
        return [row]
    return [row for line in lines for row in _pieces(line, columns)]


def _pieces(line: str, columns: int) -> Iterator[str]:
    if line.isascii():
        yield from (line[at : at + columns] for at in range(0, max(len(line), 1), columns))
        return
    start, used = 0, 0
    for at, character in enumerate(line):
        used += cells(character)
        if used > columns or at - start >= columns * MAX_CHARACTERS_PER_COLUMN:
            yield line[start:at]
            start, used = at, cells(character)
    yield line[start:]


def remaining(request: ApprovalRequest) -> str:
    """Return how long a request still waits."""
    seconds = max(0, request.expires - time.time())
    if seconds < 120:
        return f"expires in {seconds:.0f} s"
    minutes = seconds / 60
    if minutes < 120:
        return f"expires in {minutes:.0f} min"
    hours = minutes / 60
    return f"expires in {hours:.0f} h" if hours < 48 else f"expires in {hours / 24:.0f} days"
