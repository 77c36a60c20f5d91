"""What the commands of `gloveport approvals` do. An answer needs a terminal or the token of an approver."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from gloveport.approvals.request import Answer, ApprovalRequest, Scope
from gloveport.approvals.shelf import ApprovalShelf, ShelvedRequest
from gloveport.errors import ApprovalError, OptionError
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.cli.agents.tokens import add_token, check_name, remove_token
from gloveport.surfaces.cli.approvals.shown import SHORT_ID_CHARS, argument_lines, request_lines
from gloveport.surfaces.cli.arguments import read_arguments, read_value
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.record_documents import request_document
from gloveport.surfaces.terminal import visible_line

TOKEN_VARIABLE = "GLOVEPORT_APPROVER_TOKEN"
HOW_TO_LIST = "`gloveport approvals list` shows what waits"
WATCH_SECONDS = 0.5
TAKE_SECONDS = 3.0  # for a host to take an answer


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """The command line of an answer: which requests, for which scope, with which arguments."""

    ids: tuple[str, ...]
    run: str | None
    scope: Scope
    args: str | None
    reason: str
    yes: bool
    value: str | None = None


def list_command(view: ViewOptions) -> int:
    """Show the requests that wait; return the exit code."""
    with closing(_shelf(view)) as shelf:
        found = shelf.waiting()
    if view.as_json:
        write_document(view.out, {"ok": True, "waiting": [request_document(one.request) for one in found]})
        return 0
    _show(view, [one.request for one in found])
    if found:
        first = found[0].request
        one, run = as_typed(f"gloveport approvals approve {first.id[:SHORT_ID_CHARS]}"), first.run[:SHORT_ID_CHARS]
        next_step = f"{one}, or deny; --run {run} answers all calls of a run"
        view.err.line(f"\n{view.err.paint(view.err.fold(next_step), 'dim')}")
    else:
        view.err.line("no call waits for approval")
    return 0


def show_command(view: ViewOptions, id: str) -> int:
    """Show one request, whether it waits or not; return the exit code."""
    with closing(_shelf(view)) as shelf:
        found = shelf.find(id)
    if view.as_json:
        state = {"state": found.state if found.lives else "ended", "problem": found.problem}
        write_document(view.out, {"ok": True, **request_document(found.request), **state})
        return 0
    _show(view, [found.request])
    view.out.line(f"    {_state(found)}")
    return 0


def watch_command(view: ViewOptions) -> int:
    """Show each new request until Ctrl-C; return the exit code."""
    seen: set[str] = set()
    with closing(_shelf(view)) as shelf:
        view.err.line("calls that ask appear here; Ctrl-C ends")
        while True:
            fresh = [one.request for one in shelf.waiting() if one.request.id not in seen]
            seen.update(request.id for request in fresh)
            if view.as_json:
                for request in fresh:
                    write_document(view.out, request_document(request))
            else:
                _show(view, fresh)
            time.sleep(WATCH_SECONDS)


def approve_command(view: ViewOptions, options: AnswerOptions) -> int:
    """Approve calls after showing them; return the exit code."""
    args = read_arguments([options.args]) if options.args is not None else None
    if args is not None and (options.run or len(options.ids) != 1 or options.scope != "once"):
        raise OptionError("--args changes the arguments of one call", hint="name one request, without --run and --always")
    if options.value is None:
        return _answer(view, options, Answer(True, approver_of(view), options.scope, args=args), "Approve")
    if args is not None or options.run or len(options.ids) != 1 or options.scope != "once":
        raise OptionError(
            "--value is the result of one call that was interrupted", hint="name one request, and nothing else"
        )
    value = read_value(options.value)
    return _answer(view, options, Answer(True, approver_of(view), happened=True, value=value), "Record the result of")


def deny_command(view: ViewOptions, options: AnswerOptions) -> int:
    """Deny calls after showing them; return the exit code."""
    return _answer(view, options, Answer(False, approver_of(view), reason=options.reason), "Deny")


def standing_command(view: ViewOptions) -> int:
    """Show the standing approvals; return the exit code."""
    with closing(_shelf(view)) as shelf:
        found = shelf.standing()
    if view.as_json:
        names = ("id", "tool", "agent", "shape", "approver", "given")
        rows = [{name: getattr(one, name) for name in names} for one in found]
        write_document(view.out, {"ok": True, "standing": rows})
        return 0
    for one in found:
        given = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.given))
        view.out.line(f"{view.out.paint(one.id, 'bold')}  tools.{visible_line(one.tool)} {visible_line(one.shape)}")
        view.out.line(f"    for the agent {visible_line(one.agent)}, given by {visible_line(one.approver)} at {given}")
    if not found:
        view.err.line("there are no standing approvals")
    return 0


def revoke_command(view: ViewOptions, id: str) -> int:
    """End a standing approval; return the exit code."""
    approver = approver_of(view)
    with closing(_shelf(view)) as shelf:
        found = [one.id for one in shelf.standing() if id and one.id.startswith(id)]
        if len(found) > 1:
            raise ApprovalError(f"more than one standing approval begins with {id[:40]}")
        id = found[0] if found else id
        shelf.revoke(id, approver)
    if view.as_json:
        write_document(view.out, {"ok": True, "revoked": id})
    else:
        view.err.line(f"{id} is revoked: such calls ask again")
    return 0


def _shelf(view: ViewOptions) -> ApprovalShelf:
    return ApprovalShelf(view.store_path)


def _show(view: ViewOptions, requests: Sequence[ApprovalRequest]) -> None:
    for line in request_lines(view.out, requests):
        view.out.line(line)


def _state(found: ShelvedRequest) -> str:
    if found.state == "waiting" and not found.lives:
        return "its host has ended, and with it the run"
    if found.state == "waiting" and not found.is_held:
        return f"it waits; its host has ended: {_how_to_resume(found.request.run)}"
    states = {"waiting": "it waits", "answered": "it was answered", "taken": "it was answered"}
    refused = f"; the last answer was refused: {visible_line(found.problem)}" if found.problem else ""
    return f"{states.get(found.state, f'it has {found.state}')}{refused}"


def approver_of(view: ViewOptions, act: str = "an answer") -> str:
    """Return who acts: the holder of an approver's token, or the user at this terminal. No agent is one."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token:
        with closing(TokenStore(view.store_path)) as tokens:
            name = tokens.find(token, "approver")
        if name is None:
            raise ApprovalError(f"the token in {TOKEN_VARIABLE} is not one of an approver")
        return name
    if sys.stdin is None or not sys.stdin.isatty():
        raise ApprovalError(f"{act} needs a terminal, or the token of an approver", hint=f"set {TOKEN_VARIABLE}")
    return getpass.getuser()


def _answer(view: ViewOptions, options: AnswerOptions, answer: Answer, verb: str) -> int:
    with closing(_shelf(view)) as shelf:
        if options.run:
            found = [one for one in shelf.waiting() if one.request.run.startswith(options.run)]
            if len({one.request.run for one in found}) != 1:
                raise ApprovalError(f"no run {options.run[:40]!r} waits, or several do", hint=HOW_TO_LIST)
        else:
            found = [shelf.find(id) for id in dict.fromkeys(options.ids)]
        if not found:
            raise OptionError("name the requests, or the run", hint=HOW_TO_LIST)
        if gone := next((one.request for one in found if not one.lives), None):
            raise ApprovalError(f"the host of {gone.id[:SHORT_ID_CHARS]} has ended, and with it the run", hint=HOW_TO_LIST)
        requests = [one.request for one in found]
        if not options.yes:
            _show(view, requests)
            if answer.args is not None:
                view.out.line("it is made with these arguments instead:")
                for row in argument_lines(view.out, answer.args):
                    view.out.line(row)
            ask(f"{verb} {_count(requests)}?", view.err, yes=False, as_json=view.as_json)
        shelf.answer({request.id: request.digest for request in requests}, answer)
        left = next((one.request.run for one in found if not one.is_held), None)
        problems = _taken(shelf, [one.request for one in found if one.is_held])
    if view.as_json:
        rows = [{"id": one.id, "problem": problems.get(one.id)} for one in requests]
        write_document(view.out, {"ok": not problems, "approved": answer.approved, "answered": rows})
    for id, problem in problems.items():
        view.err.line(f"{view.err.paint('!', 'yellow')} {id[:SHORT_ID_CHARS]}: {visible_line(problem)}")
    if not problems and not view.as_json:
        goes_on = "the run goes on" if left is None else f"its host has ended: {_how_to_resume(left)}"
        view.err.line(f"{'approved' if answer.approved else 'denied'}; {goes_on}")
    return 5 if problems else 0


def _how_to_resume(run: str) -> str:
    return as_typed(f"gloveport runs resume {run[:SHORT_ID_CHARS]}")


def _count(requests: Sequence[ApprovalRequest]) -> str:
    return "this call" if len(requests) == 1 else f"these {len(requests):,} calls"


def _taken(shelf: ApprovalShelf, requests: Sequence[ApprovalRequest]) -> dict[str, str]:
    """Wait until the hosts have taken the answers; return the problems with them, by id."""
    end = time.monotonic() + TAKE_SECONDS
    while True:
        found = [shelf.find(request.id) for request in requests]
        if all(one.state not in ("waiting", "answered") or one.problem for one in found) or time.monotonic() > end:
            break
        time.sleep(0.05)
    problems = {one.request.id: one.problem for one in found if one.problem}
    late = {one.request.id: "its host has not taken the answer yet" for one in found if one.state == "answered"}
    return problems | late


def add_approver_command(view: ViewOptions, name: str) -> int:
    """Create the token of an approver, and print it once; return the exit code."""
    check_name(name, "approver")
    approver_of(view)
    use = f"set it as {TOKEN_VARIABLE} where {name} answers, and nowhere that an agent reads"
    return add_token(view, name, "approver", use)


def remove_approver_command(view: ViewOptions, name: str) -> int:
    """Delete the token of an approver; return the exit code."""
    approver_of(view)
    return remove_token(view, name, "approver")
