"""`Executor`: run code with functions that its caller brings; the whole answer is `result`, `error` and `logs`.

It is the interface that code-mode libraries ask for. `GloveportExecutor` implements it with a port.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from gloveport.host.port import Gloveport
from gloveport.sources.caller import CallerSource, CallerTool, CallerTools, path_of
from gloveport.sources.functions import functions
from gloveport.surfaces.agents.tools import HOW_TO_ANSWER
from gloveport.tool_names import CALLER_SOURCE
from gloveport.types import Outcome, Tool

Functions = Mapping[str, Callable[..., Any]] | Iterable[Callable[..., Any]]
"""Functions by the names that programs call them by, or a list of functions with names of their own."""


@dataclass(frozen=True, slots=True)
class ExecuteResult:
    """What became of a program: its result, why it failed (None if it did not), and the lines that it logged."""

    result: Any = None
    error: str | None = None
    logs: tuple[str, ...] = ()


class Executor(Protocol):
    """Runs code that may call functions of the caller. It never raises for what the code does."""

    async def execute(self, code: str, fns: Functions) -> ExecuteResult:
        """Run the code and return its result, or its error, and its logs."""
        ...


class GloveportExecutor:
    """An `Executor` that runs code in the sandboxes of a port. `options` are options of `Gloveport.run`."""

    def __init__(self, port: Gloveport, **options: Any) -> None:
        self._port = port
        self._options = options

    async def execute(self, code: str, fns: Functions = ()) -> ExecuteResult:
        """Run the code and return its result, or its error, and its logs. Raises OptionError for what can be no tool.

        Programs call `tools.NAME` or `codemode.NAME`; the functions belong to this run, beside the tools of the port.
        """
        source = functions(fns, CALLER_SOURCE)

        async def call(tool: Tool, _: int, args: Any) -> Any:
            return await source.call(tool, args)

        brought = CallerTools(CallerSource(map(_brought, source.tools())), call)
        outcome = await self._port.run(code, tools=brought, **self._options)
        if outcome.status != "waiting":  # then the run goes on, and may call the functions
            await source.close()
        return _to_result(outcome)


def _brought(tool: Tool) -> CallerTool:
    output = None if tool.output_schema is None else dict(tool.output_schema)
    return CallerTool(path_of(tool), tool.description, dict(tool.input_schema), output, read_only=not tool.writes)


def _to_result(outcome: Outcome) -> ExecuteResult:
    logs = tuple(line.text for line in outcome.logs)
    if outcome.status == "waiting":
        run = outcome.run
        waiting = f"run {run} waits for a person: answer with `{HOW_TO_ANSWER}`, then see `gloveport runs show {run}`"
        return ExecuteResult(None, waiting, logs)
    return ExecuteResult(outcome.value, None if outcome.error is None else outcome.error.message, logs)
