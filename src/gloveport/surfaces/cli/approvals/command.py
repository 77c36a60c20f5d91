"""What the commands of `gloveport approvals` do. An answer needs a terminal or the token of an approver."""

from __future__ import annotations

import getpass
import os
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from gloveport.approvals.request import Answer, ApprovalRequest, Scope
from gloveport.approvals.shelf import ApprovalShelf, ShelvedRequest
from gloveport.config.governance import AGENT_NAME, AGENT_NAME_HINT
from gloveport.errors import ApprovalError, OptionError
from gloveport.folders import store_file
from gloveport.store.tokens import TokenStore
from gloveport.surfaces.cli.approvals.shown import SHORT_ID_CHARS, request_document, request_lines
from gloveport.surfaces.cli.arguments import read_arguments
from gloveport.surfaces.cli.file_change import ask
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import visible_line

TOKEN_VARIABLE = "GLOVEPORT_APPROVER_TOKEN"
HOW_TO_LIST = "`gloveport approvals list` shows what waits"
WATCH_SECONDS = 0.5
TAKE_SECONDS = 3.0  # for a host to take an answer


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What an approver says on the command line: which requests, for how much, with which arguments."""

    ids: tuple[str, ...]
    run: str | None
    scope: Scope
    args: str | None
    reason: str
    yes: bool


def list_command(view: ViewOptions) -> int:
    """Show the requests that wait; return the exit code."""
    with closing(_shelf(view)) as shelf:
        found = shelf.waiting()
    if view.as_json:
        write_document(view.out, {"ok": True, "waiting": [request_document(one.request) for one in found]})
        return 0
    _show(view, [one.request for one in found])
    if found:
        next_step = "gloveport approvals approve ID, or deny ID; --run ID answers all calls of a run"
        view.err.line(view.err.paint(f"\n{next_step}", "dim"))
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
        view.err.line("waiting for calls that ask; Ctrl-C ends this")
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
    return _answer(view, options, Answer(True, _approver(view), options.scope, args=args), "Approve")


def deny_command(view: ViewOptions, options: AnswerOptions) -> int:
    """Deny calls after showing them; return the exit code."""
    return _answer(view, options, Answer(False, _approver(view), reason=options.reason), "Deny")


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
    _approver(view)
    with closing(_shelf(view)) as shelf:
        shelf.revoke(id)
    if view.as_json:
        write_document(view.out, {"ok": True, "revoked": id})
    else:
        view.err.line(f"{id} is revoked: such calls ask again")
    return 0


def store_path(view: ViewOptions) -> Path:
    """Return the file of the store."""
    return view.settings(quiet=True).governance.store or store_file()


def _shelf(view: ViewOptions) -> ApprovalShelf:
    return ApprovalShelf(store_path(view))


def _show(view: ViewOptions, requests: Sequence[ApprovalRequest]) -> None:
    for request in requests:
        for line in request_lines(view.out, request):
            view.out.line(line)


def _state(found: ShelvedRequest) -> str:
    if found.state == "waiting" and not found.lives:
        return "its host has ended, and with it the run"
    states = {"waiting": "it waits", "answered": "it was answered", "taken": "it was answered"}
    refused = f"; the last answer was refused: {visible_line(found.problem)}" if found.problem else ""
    return f"{states.get(found.state, f'it has {found.state}')}{refused}"


def _approver(view: ViewOptions) -> str:
    """Return who answers: the holder of an approver's token, or the user at this terminal. No agent is one."""
    token = os.environ.get(TOKEN_VARIABLE)
    if token:
        with closing(TokenStore(store_path(view))) as tokens:
            name = tokens.find(token, "approver")
        if name is None:
            raise ApprovalError(f"the token in {TOKEN_VARIABLE} is not one of an approver")
        return name
    if sys.stdin is None or not sys.stdin.isatty():
        raise ApprovalError("an answer needs a terminal, or the token of an approver", hint=f"set {TOKEN_VARIABLE}")
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
        requests = [one.request for one in found]
        if not options.yes:
            _show(view, requests)
            ask(f"{verb} {_count(requests)}?", view.err, yes=False, as_json=view.as_json)
        shelf.answer({request.id: request.digest for request in requests}, answer)
        problems = _taken(shelf, requests)
    if view.as_json:
        rows = [{"id": one.id, "problem": problems.get(one.id)} for one in requests]
        write_document(view.out, {"ok": not problems, "approved": answer.approved, "answered": rows})
    for id, problem in problems.items():
        view.err.line(f"{view.err.paint('!', 'yellow')} {id[:SHORT_ID_CHARS]}: {visible_line(problem)}")
    if not problems and not view.as_json:
        view.err.line(f"{'approved' if answer.approved else 'denied'}; the run goes on")
    return 5 if problems else 0


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
    if not AGENT_NAME.fullmatch(name):
        raise OptionError(f"an approver can't be called {name!r:.60}", hint=AGENT_NAME_HINT)
    _approver(view)
    with closing(TokenStore(store_path(view))) as tokens:
        token = tokens.add(name, "approver")
    if view.as_json:
        write_document(view.out, {"ok": True, "approver": name, "token": token})
        return 0
    view.out.line(token)
    view.err.line(f"this is shown once: set it as {TOKEN_VARIABLE} where {name} answers, and nowhere that an agent reads")
    return 0


def remove_approver_command(view: ViewOptions, name: str) -> int:
    """Delete the token of an approver; return the exit code."""
    _approver(view)
    with closing(TokenStore(store_path(view))) as tokens:
        tokens.remove(name, "approver")
    if view.as_json:
        write_document(view.out, {"ok": True, "removed": name})
    else:
        view.err.line(f"the token of {name} is deleted")
    return 0
