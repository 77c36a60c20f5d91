"""The events of a run as server-sent events, made from its steps in the store.

Whoever follows a run may lose its connection, and the run may move to another host: the number of a step is the id of its
event, and following goes on after the last one that arrived.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from functools import partial
from typing import Any

import orjson
from starlette.responses import StreamingResponse

from gloveport.errors import GloveportError
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.sandbox import wire
from gloveport.store.stored_runs import StoredRun, StoredRuns
from gloveport.surfaces.http.api.store_reader import StoreReader
from gloveport.surfaces.record_documents import run_document
from gloveport.values import to_json

POLL_SECONDS = 0.1
KEEP_ALIVE_SECONDS = 15.0
MAX_FOLLOWERS = 500
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class RunEvents:
    """Those who follow runs, each by reading the store again and again while its run goes on."""

    def __init__(self, store: StoreReader) -> None:
        self._store = store
        self._followers = 0

    def response(self, run: StoredRun, last_id: str) -> StreamingResponse:
        """Return the events of a run after one that has arrived; raise GloveportError if too many follow runs."""
        if self._followers >= MAX_FOLLOWERS:
            raise GloveportError(f"{MAX_FOLLOWERS} follow runs already", code="busy", hint="try again later")
        after = int(last_id) if last_id.isascii() and last_id.isdecimal() and len(last_id) < 16 else 0
        return StreamingResponse(self._follow(run, after), headers=HEADERS, media_type="text/event-stream")

    async def _follow(self, run: StoredRun, last: int) -> AsyncIterator[bytes]:
        self._followers += 1
        tools: dict[int, str] = {}
        status, sent_at = "", time.monotonic()
        try:
            while True:
                # The state before the steps, so that none of a run that has ended is missed.
                now, steps = await self._store.runs(partial(_state, run.id, last))
                for number, sender, content in steps:
                    last = number
                    frame = await off_loop_if(len(content) > LARGE_BYTES, _frame_of, number, sender, content, tools)
                    if frame:
                        yield frame
                        sent_at = time.monotonic()
                shown = run_document(now)
                if shown["status"] != status and not steps:
                    status = shown["status"]
                    yield _frame("status", shown, last)
                if now.is_final and not steps:
                    return
                if not steps:
                    if time.monotonic() - sent_at > KEEP_ALIVE_SECONDS:
                        sent_at = time.monotonic()
                        yield b": still here\n\n"
                    await asyncio.sleep(POLL_SECONDS)
        finally:
            self._followers -= 1


def _state(run: str, last: int, runs: StoredRuns) -> tuple[StoredRun, list[tuple[int, str, bytes]]]:
    found = runs.find(run)
    return found, runs.steps_after(found, last)


def _frame(kind: str, data: Mapping[str, Any], id: int) -> bytes:
    return b"event: %b\nid: %d\ndata: %b\n\n" % (kind.encode(), id, orjson.dumps(data))


def _frame_of(number: int, sender: str, content: bytes, tools: dict[int, str]) -> bytes:
    """Return the event that a step is, as it is sent; nothing for one that means nothing outside."""
    event = _event(sender, content, tools)
    return b"" if event is None else _frame(*event, number)


def _event(sender: str, content: bytes, tools: dict[int, str]) -> tuple[str, dict[str, Any]] | None:
    """Return the kind and the data of the event that a step is; None for one that means nothing outside.

    A large result is not in the step: `value` is missing then.
    """
    try:
        message = wire.decode(content)
    except (GloveportError, ValueError):
        if sender == "host" and content.startswith(b'["reply"'):
            _, at, call, *_ = content.split(b",", 3)
            return "call-ended", {"call": int(call), "tool": tools.get(int(call)), "at": int(at) / 1e6, "ok": True}
        return None
    match sender, message:
        case "guest", ["call", int(call), str(tool), list(args), *label]:
            tools[call] = tool
            step = label[0] if label else None
            return "call", {"call": call, "tool": tool, "args": to_json(args), "step": step}
        case "guest", ["log", str(level), str(text)]:
            return "log", {"level": level, "text": text}
        case "guest", ["emit", value]:
            return "emit", {"value": to_json(value)}
        case "host", ["reply", at, int(call), bool(ok), value, *_]:
            told = {"value" if ok else "error": to_json(value)}
            return "call-ended", {"call": call, "tool": tools.get(call), "at": at / 1e6, "ok": ok, **told}
    return None
