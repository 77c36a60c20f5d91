"""`gloveport runs rollback`: undoes the writes of a run, and shows what could not be undone."""

from __future__ import annotations

import sys

from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.host.port import Gloveport
from gloveport.surfaces.cli.run.approval_prompt import ApprovalPrompt, can_ask
from gloveport.surfaces.cli.run.command import load_tools
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import to_text, write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.record_documents import rollback_document
from gloveport.surfaces.terminal import Stream, claim_stdout, stream, visible_line
from gloveport.undo import Rollback, UndoneWrite
from gloveport.values import to_json

EXIT_NOT_UNDONE, EXIT_NOT_APPROVED = 1, 5


def rollback_command(view: ViewOptions, id: str, tools: tuple[str, ...], *, no_input: bool) -> int:
    """Undo the writes of a run, show what became of them, and return the exit code."""
    settings = view.settings()
    out, err = stream(claim_stdout(), view.color), stream(sys.stderr, view.color)
    prompt = ApprovalPrompt(err) if can_ask(no_input=no_input) else None
    port = Gloveport(
        sources=load_tools(tools),
        config=settings,
        spare=0,
        on_approval=prompt.ask if prompt is not None else _refuse,
        store=settings.governance.store_path,
    )
    if prompt is not None:
        prompt.desk = port.approvals

    async def undo() -> Rollback:
        try:
            return await port.rollback(id)
        finally:
            await port.close()

    found = run_interruptible(undo())
    if view.as_json:
        write_document(out, rollback_document(found))
    else:
        for write in found.writes:
            out.line(_line(out, write))
        if not found.writes:
            err.line("the run has written nothing")
    if any(write.status == "denied" for write in found.writes):
        return EXIT_NOT_APPROVED
    return 0 if found.ok else EXIT_NOT_UNDONE


def _refuse(request: ApprovalRequest) -> Answer:
    return Answer(False, "--no-input", reason="it needs a person's approval: undo the run in a terminal")


def _line(out: Stream, write: UndoneWrite) -> str:
    call = visible_line(f"tools.{write.tool.removeprefix('local.')} {to_text(to_json(write.args), indented=False)}")
    if write.status == "undone-before":
        return f"{out.paint('✓', 'green')} {call}\n    was undone before"
    if write.status == "undone":
        args = to_text(to_json(dict(write.undo_args or {})), indented=False)
        inverse = f"tools.{(write.undo or '').removeprefix('local.')} {args}"
        return f"{out.paint('✓', 'green')} {call}\n    undone by {visible_line(inverse)}"
    return f"{out.paint('✗', 'red')} {call}\n    NOT undone: {visible_line(write.problem)}"
