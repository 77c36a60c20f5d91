"""`gloveport run`: runs one program in one sandbox, and shows its outcome."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from gloveport.config import Config
from gloveport.errors import GloveportError
from gloveport.host.port import NO_INPUT, Gloveport
from gloveport.sandbox.engines.registry import engine_names
from gloveport.surfaces.cli.arguments import parse_env, parse_megabytes, parse_seconds, read_input, read_program
from gloveport.surfaces.cli.run.approval_prompt import ApprovalPrompt, can_ask
from gloveport.surfaces.cli.run.outcome_report import exit_status, with_pending, write_ending, write_value
from gloveport.surfaces.cli.run.plan_report import how_to_apply, plan_lines, plan_question
from gloveport.surfaces.cli.run.run_view import PrintCapture, RunLogHandler, RunView
from gloveport.surfaces.documents import outcome_document, parse_fields, select, write_document
from gloveport.surfaces.file_change import read_answer
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.settings import load_settings
from gloveport.surfaces.terminal import Stream, claim_stdout, stream, visible_line
from gloveport.types import MIN_LIMITS, Limits, Outcome, Plan, RunMode, Strength

if TYPE_CHECKING:
    from gloveport.sources.functions import FunctionSource


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The command line of `gloveport run`, not yet checked."""

    file: str | None
    code: str | None
    language: str | None
    engine: str | None
    tools: tuple[str, ...]
    input: str | None
    env: tuple[str, ...]
    id: str | None
    session: str | None
    timeout: str | None
    cpu: str | None
    memory: str | None
    config: str | None
    minimum: Strength | None
    allow_eval: bool
    allow_wasm: bool
    plan: bool
    no_input: bool
    as_json: bool
    fields: str | None
    quiet: bool
    color: str


def run_command(options: RunOptions) -> int:
    """Run the program, show its outcome and return the exit code."""
    fields = parse_fields(options.fields) if options.fields is not None else ()
    as_json = options.as_json or bool(fields)
    settings = load_settings(options.config, color=options.color, quiet=options.quiet)
    limits = _limits(options, settings)
    named = options.language or ("python" if options.engine in engine_names("python") else None)
    input_ = _input(options)  # first: it refuses to take standard input twice, before anything reads it
    code, language = read_program(options.file, options.code, named, limits.max_code_bytes)
    env = parse_env(options.env)
    out, err = stream(claim_stdout(), options.color), stream(sys.stderr, options.color)
    view = RunView(err, quiet=options.quiet or as_json, opening=lambda: port.opening)
    name = os.path.basename(options.file) if options.file not in (None, "-") else ""
    prompt = ApprovalPrompt(err, view.paused, code, name) if can_ask(no_input=options.no_input) else None
    port = _port(options, settings, limits, prompt)
    for problem in port.problems if not options.quiet and not as_json else ():
        err.line(f"{err.paint('!', 'yellow')} {visible_line(problem.message)}")
    mode: RunMode = "plan" if options.plan else "run"
    asked = {"language": language, "engine": options.engine, "input": input_, "env": env, "mode": mode}
    asked |= {"id": options.id, "session": options.session}
    work = _run(port, view, lambda: port.run(code, **asked, on_event=view.event))
    outcome = with_pending(run_interruptible(work), port, options.tools, options.config)
    if not as_json and (plan := outcome.plan) is not None:
        for line in plan_lines(out, plan):
            out.line(line)
        write_ending(err, outcome, quiet=options.quiet)
        if not _is_approved(err, plan, asks=prompt is not None):
            return exit_status(outcome)
        assert prompt is not None
        following_as, prompt = prompt.approver, ApprovalPrompt(err, view.paused, code, name)
        port = following = _port(options, settings, limits, prompt)
        work = _run(port, view, lambda: following.apply(plan, approver=following_as, on_event=view.event))
        outcome = with_pending(run_interruptible(work), port, options.tools, options.config)
    if as_json:
        problems = [asdict(problem) for problem in port.problems]
        write_document(out, select({**outcome_document(outcome), **({"problems": problems} if problems else {})}, fields))
    else:
        # The result first, then warnings and the error, so that a terminal shows the error last.
        write_value(out, outcome)
        write_ending(err, outcome, quiet=options.quiet)
    return exit_status(outcome)


def _port(options: RunOptions, settings: Config, limits: Limits, prompt: ApprovalPrompt | None) -> Gloveport:
    given = load_tools(options.tools)
    names = {source.name for source in given}  # these replace configured sources of the same name
    port = Gloveport(
        sources=given,
        config=replace(settings, sources=tuple(one for one in settings.sources if one.name not in names)),
        limits=limits,
        allow_eval=options.allow_eval,
        allow_wasm=options.allow_wasm,
        minimum=options.minimum,
        spare=0,  # one run needs one sandbox
        on_approval=prompt.ask if prompt else None,
        store=settings.governance.store_path,
    )
    if prompt is not None:
        prompt.desk = port.approvals
    return port


def _is_approved(err: Stream, plan: Plan, *, asks: bool) -> bool:
    """Ask the person at the terminal whether to follow a plan; say how it can be followed later."""
    if not plan.writes:
        err.line("the program writes nothing")
        return False
    if asks and read_answer(f"{plan_question(plan)} [y/N] ", err) in {"y", "yes"}:
        return True
    err.line(f"nothing was written; later: {how_to_apply(plan)}")
    return False


async def _run(port: Gloveport, view: RunView, work: Callable[[], Awaitable[Outcome]]) -> Outcome:
    loop = asyncio.get_running_loop()
    handler, prints = RunLogHandler(view, loop), PrintCapture(view, loop)
    logger = logging.getLogger("gloveport")
    logger.addHandler(handler)
    try:
        view.begin()
        with redirect_stdout(prints), redirect_stderr(prints):
            return await work()
    except asyncio.CancelledError:
        raise GloveportError("the run was cancelled", code="cancelled") from None
    finally:
        await port.close()
        await asyncio.sleep(0)  # shows the lines that other threads have passed to the loop
        prints.finish()
        view.close()
        logger.removeHandler(handler)


def _limits(options: RunOptions, settings: Config) -> Limits:
    changes: dict[str, Any] = dict(settings.limits)
    if options.timeout is not None:
        changes["wall_seconds"] = parse_seconds("--timeout", options.timeout)
    if options.cpu is not None:
        changes["cpu_seconds"] = parse_seconds("--cpu", options.cpu)
    if options.memory is not None:
        changes["memory_mb"] = parse_megabytes("--memory", options.memory, MIN_LIMITS["memory_mb"])
    return Limits().with_(**changes)


def _input(options: RunOptions) -> Any:
    if options.input is None:
        return NO_INPUT
    stdin_taken = options.code is None and options.file in (None, "-")
    return read_input(options.input, stdin_taken=stdin_taken)


def load_tools(specs: tuple[str, ...]) -> list[FunctionSource]:
    """Return the functions of each module or file as a source of its name, as `serve` and `add` name it."""
    if not specs:
        return []
    from gloveport.sources.detection import name_for
    from gloveport.sources.functions import functions
    from gloveport.sources.functions.modules import is_file, load_module

    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())  # last, so that files of the folder shadow no installed module
    found: dict[str, list[Any]] = {}
    for spec in specs:
        name = name_for(spec if is_file(spec) else spec.rpartition(".")[2])
        found.setdefault(name, []).extend(load_module(spec))
    return [functions(each, name=name, leave_out=True) for name, each in found.items()]
