"""One run whose caller answers its tool calls on a WebSocket."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import orjson

from gloveport.errors import GloveportError, OptionError, ToolError, ValueCrossingError
from gloveport.large_values import is_large, off_loop_if
from gloveport.sources.caller import CallerTools, caller_gone, path_of
from gloveport.surfaces.documents import problem_document
from gloveport.surfaces.http.api.endpoint import json_bytes
from gloveport.surfaces.http.api.outbox import Outbox
from gloveport.surfaces.http.api.runs import RunsApi, shown_outcome
from gloveport.surfaces.http.token import Caller
from gloveport.types import Event, Failure, Outcome, Tool
from gloveport.values import encode, from_wire, to_json

logger = logging.getLogger("gloveport")


class HostedRun:
    """A run, the calls that wait for its caller, and what its caller gets to see.

    With `tagged`, values cross in the tagged form of the sandbox border, otherwise in their plain JSON forms. With `quiet`,
    the caller gets only calls and outcomes: each message wakes it. `name` is that of the run on its socket. It is also its
    id, unless the caller leaves that to the server: then nothing is claimed.
    """

    def __init__(self, name: str, caller: Caller, outbox: Outbox, runs: RunsApi, *, tagged: bool, quiet: bool) -> None:
        self._name = self._id = name
        self._caller = caller
        self._outbox = outbox
        self._runs = runs
        self._tagged = tagged
        self._quiet = quiet
        self._calls: dict[int, tuple[Tool, asyncio.Future[Any]]] = {}
        self._is_waiting = self._is_gone = self._is_cancelled = False
        self.task: asyncio.Task[None] | None = None

    async def serve(self, body: Mapping[str, Any], admitted: ExitStack) -> None:
        """Run the program, and tell the caller how it ends, or why it was refused. It leaves `admitted` when it waits."""
        try:
            agent = self._runs.agent(self._caller, body.get("agent"))
            with admitted:
                outcome = await self._start(agent, body)
            while outcome is not None:
                await self._tell(outcome)
                self._is_waiting = outcome.status == "waiting"
                outcome = await self._runs.followed(self._id, agent) if self._is_waiting else None
        except asyncio.CancelledError:
            if not self._is_cancelled:
                raise
            error = Failure("cancelled", "GloveportError", "the run was cancelled by its caller")
            await self._tell(Outcome(self._id, "cancelled", error=error))
        except GloveportError as error:
            self._send("refused", error=problem_document(error)["error"])
        except Exception as error:  # the outer edge: report a defect of ours without host details
            reference = secrets.token_hex(4)
            logger.error("run %s: internal error %s", self._id, reference, exc_info=error)
            defect = GloveportError(f"internal error in Gloveport (reference {reference})")
            self._send("refused", error=problem_document(defect)["error"])

    async def _start(self, agent: str, body: Mapping[str, Any]) -> Outcome:
        options = self._runs.options(agent, body)
        if self._tagged and "input" in body:
            options["input"] = await self._taken(body["input"])
        source = await self._runs.caller_sources.source(self._caller.name, body.get("tools", ()))
        tools = CallerTools(source, self._call, self._started)
        run = None if body.get("unnamed", False) else self._name
        on_event = None if self._quiet else self._happened
        return await self._runs.run_hosted(self._caller, run, body["code"], tools, on_event=on_event, options=options)

    def _started(self, run: str) -> None:
        self._id = run
        if not self._quiet:
            self._send("started", id=run)

    # What the caller says.

    async def answered(self, call: int, value: Any) -> None:
        """Give a call its result. A call that is over, or never was, is no error: the run may have gone on without it."""
        found: Any = None
        problem: ToolError | None = None
        if call in self._calls:
            try:
                found = await self._taken(value)
            except OptionError as error:
                problem = ToolError(error.message, code="bad-value", origin="tool")
        waiting = self._calls.get(call)
        if waiting is None or waiting[1].done():
            return
        if problem is None:
            waiting[1].set_result(found)
        else:
            waiting[1].set_exception(problem)

    def failed(self, call: int, error: Mapping[str, Any]) -> None:
        """Give a call its error."""
        waiting = self._calls.get(call)
        if waiting is not None and not waiting[1].done():
            code, data = error.get("code"), error.get("data")
            waiting[1].set_exception(ToolError(error["message"], code=code, data=data, origin="tool"))

    async def cancel(self) -> None:
        """End the run."""
        if self._is_waiting:
            await self._runs.cancel(self._id, self._caller)
        elif self.task is not None:
            self._is_cancelled = True
            self.task.cancel()

    def caller_is_gone(self) -> None:
        """Fail the calls that wait for the caller, then end the run. One that waits for a person goes on without it."""
        self._is_gone = True
        for tool, answer in self._calls.values():
            if not answer.done():
                answer.set_exception(caller_gone(path_of(tool), sent=tool.writes))
        # The calls fail first: their tasks are woken before this one is.
        if self.task is not None:
            self.task.cancel()

    # What the caller hears.

    async def _call(self, tool: Tool, call: int, args: Any) -> Any:
        if self._is_gone:
            raise caller_gone(path_of(tool))
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._calls[call] = tool, answer
        try:
            message = {"type": "call", "run": self._name, "call": call, "tool": path_of(tool)}
            await self._outbox.send({**message, "args": await self._shown(args)})
            return await answer
        finally:
            del self._calls[call]

    def _happened(self, event: Event) -> None:
        if event.kind == "log" and event.log is not None:
            self._send("log", level=event.log.level, text=event.log.text)
        elif event.kind == "emit":
            self._outbox.put({"type": "emit", "run": self._name, "value": event.value}, self._emitted)

    async def _tell(self, outcome: Outcome) -> None:
        document = await shown_outcome(outcome, self._caller)
        if self._tagged:
            document["value"] = await self._shown(outcome.value)
            document["emitted"] = [await self._shown(value) for value in outcome.emitted]
        await self._outbox.send({"type": "outcome", "run": self._name, "outcome": document})

    def _send(self, kind: str, **content: Any) -> None:
        self._outbox.put({"type": kind, "run": self._name, **content})

    def _emitted(self, message: Mapping[str, Any]) -> bytes:
        return json_bytes({**message, "value": self._form(message["value"])})

    async def _shown(self, value: Any) -> Any:
        return await off_loop_if(is_large(value), self._form, value)

    def _form(self, value: Any) -> Any:
        return orjson.Fragment(encode(value)) if self._tagged else to_json(value)

    async def _taken(self, given: Any) -> Any:
        return await off_loop_if(is_large(given), self._value, given)

    def _value(self, given: Any) -> Any:
        """Return the value that the caller means; raise OptionError for a tag that is none."""
        if not self._tagged:
            return given
        try:
            return from_wire(given)
        except (GloveportError, ValueError, TypeError) as error:
            message = error.message if isinstance(error, ValueCrossingError) else "it has a tag that is none"
            raise OptionError(f"the value can't be read: {message}", code="bad-value") from None
