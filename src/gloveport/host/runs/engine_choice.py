"""Chooses the engine of a run that leaves the choice (`auto`), once its program is read and before anything is recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

from gloveport.errors import GloveportError
from gloveport.host.engine_pools import EnginePools
from gloveport.host.runs.run_request import RunRequest
from gloveport.types import Program

ReadProgram = Callable[[RunRequest], Awaitable[tuple[Program, bool]]]


async def choose_engine(request: RunRequest, read: ReadProgram, pools: EnginePools) -> tuple[RunRequest, ReadProgram]:
    """Return the request with its engine, and what reads its program: where it was read here, it is not read again.

    The program decides, so the same text gets the same engine. What a process says about it is not trusted: at worst, an
    agent's own program gets the other engine.
    """
    if request.any_engine:
        held = await pools.held(request.language, request.options, request.limits)
        request = request if held is request.options else replace(request, options=held)
    if (lighter := request.lighter) is None:
        return request, read
    if not await pools.holds(lighter):
        return replace(request, lighter=None), read
    reading = asyncio.ensure_future(read(request))
    try:
        program, _ = await reading
    except GloveportError:  # whoever reads it next raises it
        return replace(request, lighter=None), lambda _: reading
    return replace(request, options=lighter if program.is_light else request.options, lighter=None), lambda _: reading
