"""A host that uses the library and tells all that it sees of it: outcomes, events, recordings, errors with local variables."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import traceback
from dataclasses import replace
from typing import Any

import gloveport.sources.graphql.opening
import gloveport.sources.mcp.opening
import gloveport.sources.openapi.opening
from gloveport import Gloveport, OptionError, ToolError
from gloveport.config import load_config
from gloveport.surfaces.documents import outcome_document
from tests.canaries.programs import CALLS, ENDINGS, PYTHON, SLOW_CALLS, TYPESCRIPT

# Loaded beforehand: on a busy machine that takes longer than a connection which has begun meanwhile is waited for.
LOADED = (gloveport.sources.graphql.opening, gloveport.sources.mcp.opening, gloveport.sources.openapi.opening)

RUNS = (("deno", "typescript"), ("quickjs", "javascript"), ("cpython", "python"), ("monty", "python"))


async def main() -> None:
    """Everything once, on every engine."""
    logging.captureWarnings(True)
    async with Gloveport(
        config=load_config(),
        store="library.sqlite",
        on_approval=lambda request: False,
        log_code=True,
        limits={"max_calls": 150},
    ) as port:
        print(port.problems, [repr(tool) for tool in port.catalog.tools])
        for engine, language in RUNS:
            program = PYTHON if language == "python" else TYPESCRIPT
            await tell(port, program, language, engine)
        for program in ENDINGS[:-1]:
            await tell(port, program, "typescript", "deno")
        for tool, args in (*CALLS, *SLOW_CALLS):
            await call(port, tool, args)
        print(port.problems, repr(port), repr(vars(port)))
    # Alone, so that opening it does not take as long as it has patience for.
    known = {config.name: config for config in load_config().sources}
    async with Gloveport(sources=[replace(known["undeclared"], timeout_seconds=5)]) as impatient:
        await call(impatient, "undeclared.slow.plain", {})


async def tell(port: Gloveport, program: str, language: Any, engine: str) -> None:
    """Run a program, and show how it ended in every form there is."""
    options = {"language": language, "engine": engine, "input": CALLS, "on_event": print}
    outcome = await port.run(program, **options)
    print(outcome, json.dumps(outcome_document(outcome)))
    with contextlib.suppress(OptionError):  # a program that can't be run is not recorded
        print(await port.recording(outcome.run))


async def call(port: Gloveport, tool: str, args: dict[str, Any]) -> None:
    """Call a tool from the host; what it raises is shown as a crash reporter would."""
    try:
        print(tool, await port.call(tool, args))
    except ToolError as error:
        print(tool, "ended with", error.code, vars(error))
        print("".join(traceback.TracebackException.from_exception(error, capture_locals=True).format()))


if __name__ == "__main__":
    asyncio.run(main())
