"""The question in the terminal about a call that waits for a person: what it would do, and the answers that there are.

Calls that wait together are asked about one after the other; one answer can be for all of them. While a question is open,
nothing else is written to the terminal, and what was typed before it appeared does not count.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import sys
import termios
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import islice
from typing import Any

from gloveport.approvals.desk import ApprovalDesk
from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.errors import GloveportError
from gloveport.large_values import off_loop
from gloveport.surfaces.cli.approvals.shown import SHORT_ID_CHARS, argument_rows, remaining
from gloveport.surfaces.cli.arguments import read_value
from gloveport.surfaces.cli.run.editor import edit_arguments
from gloveport.surfaces.documents import to_text
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import Stream, clip, visible_line
from gloveport.values import to_json

GATHER_SECONDS = 0.05  # calls that are made together are counted together
MAX_SHOWN_SITES = 3
QUESTION = "Make this call?"
KEYS = {
    "y": "yes, this call",
    "g": "yes, this call and all others of this run that wait now; they are shown first",
    "r": "yes, and every call of this run with the same tool and the same kinds of arguments",
    "a": "yes, and every such call from now on, in other runs too, until `gloveport approvals revoke`",
    "e": "edit the arguments first, in $EDITOR",
    "v": "view the arguments again",
    "n": "no (also Enter alone); the program gets an error with your reason",
    "x": "no to this call and all others of this run that wait now",
}
UNKNOWN_KEYS = {
    "y": "yes, make it again",
    "h": "no, it has happened: you type what it returned",
    "v": KEYS["v"],
    "n": "no (also Enter alone): the program gets an error that says that it may have been made",
}
FOR_GROUPS = ("g", "x")
FOR_LATER = ("r", "a")  # not for a call that could send out private data: it is approved by itself


def can_ask(*, no_input: bool) -> bool:
    """Return whether a person can be asked: standard input and standard error are a terminal."""
    return not no_input and sys.stdin is not None and sys.stdin.isatty() and sys.stderr is not None and sys.stderr.isatty()


class ApprovalPrompt:
    """Asks about the calls of one command. `ask` is for `Gloveport(on_approval=…)`; `desk` must be set before.

    `paused` gives the block in which nothing else draws. `program` and `name` are the text and the name of the program.
    """

    def __init__(
        self,
        err: Stream,
        paused: Callable[[], AbstractContextManager[object]] = nullcontext,
        program: str = "",
        name: str = "",
    ) -> None:
        self._err = err
        self._paused = paused
        self._lines = program.split("\n")
        self._name = name
        self.approver = _user()
        self._turn = asyncio.Lock()
        self._ends: dict[str, str] = {}  # how requests have ended, by id
        self._edited = ""  # the request that was answered with other arguments
        self._desk: ApprovalDesk | None = None

    @property
    def desk(self) -> ApprovalDesk | None:
        """Where the calls wait."""
        return self._desk

    @desk.setter
    def desk(self, desk: ApprovalDesk) -> None:
        self._desk = desk
        desk.listen(lambda what, request: self._ends.update({request.id: what}) if what != "asked" else None)

    async def ask(self, request: ApprovalRequest) -> Answer:
        """Return the person's answer to a request. The desk cancels this when the request waits no more."""
        async with self._turn:
            await asyncio.sleep(GATHER_SECONDS)
            with self._paused():
                try:
                    return await self._decide(request)
                except asyncio.CancelledError:
                    if request.id != self._edited:
                        self._say_why_closed(request)
                    raise

    def _say_why_closed(self, request: ApprovalRequest) -> None:
        ends = {"expired": "nobody answered in time", "withdrawn": "the run has ended"}
        why = ends.get(self._ends.get(request.id, ""), "it was answered elsewhere")
        self._err.line(f"\n{self._err.paint('!', 'yellow')} this question is closed: {why}")

    async def _decide(self, request: ApprovalRequest) -> Answer:
        await self._show(request)
        if request.is_unknown:
            return await self._decide_on_unknown(request)
        draft: str | None = None
        while True:
            others = self._others(request)
            keys = "/".join(self._keys(request, others)).replace("n", "N")  # the answer of Enter alone
            match (await self._typed(f"{QUESTION} [{keys}/?] ", fresh=True)).lower():
                case "y" | "yes":
                    return Answer(True, self.approver)
                case "g" if others:
                    if await self._approved_all(others):
                        return Answer(True, self.approver)
                case ("r" | "a") as key if not request.reads:
                    return Answer(True, self.approver, "run" if key == "r" else "always")
                case "e":
                    draft = await self._edit(request, draft)
                case "v":
                    await self._show_arguments(request.args)
                case "n" | "no" | "":
                    return await self._denial()
                case "x" if others:
                    denial = await self._denial()
                    self._answer_group(others, denial)
                    return denial
                case _:
                    self._explain_keys(request, others)

    async def _decide_on_unknown(self, request: ApprovalRequest) -> Answer:
        """Return the answer about a call that may have been made: it stands for no other call, and changes no argument."""
        while True:
            match (await self._typed("Make this call again? [y/h/v/N/?] ", fresh=True)).lower():
                case "y" | "yes":
                    return Answer(True, self.approver)
                case "h":
                    given = await self._typed("What did it return? JSON, or Enter for nothing: ")
                    try:
                        return Answer(True, self.approver, happened=True, value=read_value(given or "null"))
                    except GloveportError as error:
                        self._problem(error.message)
                case "v":
                    await self._show_arguments(request.args)
                case "n" | "no" | "":
                    return await self._denial()
                case _:
                    for key, text in UNKNOWN_KEYS.items():
                        self._err.line(self._err.fold(f"  {key}  {text}", " " * 5))

    async def _denial(self) -> Answer:
        reason = await self._typed("Why? The program gets this reason (Enter for none): ")
        return Answer(False, self.approver, reason=reason)

    # What is shown.

    async def _show(self, request: ApprovalRequest) -> None:
        paint, waiting = self._err.paint, 1 + len(self._others(request))
        head = f"{paint('?', 'yellow', 'bold')} {paint('approval', 'yellow', 'bold')}  {paint(_tool(request), 'bold')}"
        count = f"  ({waiting:,} calls of this run wait)" if waiting > 1 else ""
        self._err.line(head + count)
        for label, text in self._about(request):
            self._err.line(f"  {paint(f'{label:<8}', 'dim')}  {text}")
        await self._show_arguments(request.args)

    def _about(self, request: ApprovalRequest) -> Iterator[tuple[str, str]]:
        for at, line in enumerate(self._sites(request)):
            place = f"{self._name}:{line}" if self._name else f"line {line}"
            source = visible_line(f"{place}  {self._lines[line - 1].strip()}")
            yield "or" if at else "program", clip(source, self._err.columns - 12)
        yield "agent", f"{visible_line(request.agent)}, run {request.run[:SHORT_ID_CHARS]}"
        why = f"{request.reason} ({request.rule})" if request.reason and request.rule else request.reason or request.rule
        yield "asks", self._folded(why) if why else "a rule says so"
        yield from (("after", self._folded(str(one))) for one in request.reads)
        yield from (("advice", self._folded(one)) for one in request.advice)
        yield "expires", remaining(request).removeprefix("expires ")

    def _folded(self, text: str) -> str:
        """Return a text that stands after a label, over as many lines as it takes."""
        label = "-" * 12
        return self._err.fold(label + visible_line(text), " " * len(label)).removeprefix(label)

    def _sites(self, request: ApprovalRequest) -> list[int]:
        """Return the line of the program that makes the call, or the first ones that can be meant."""
        if request.line is not None:
            return [request.line] if request.line <= len(self._lines) else []
        call = re.compile(rf"\b{re.escape(request.tool.rpartition('.')[2])}\s*\(")
        return list(islice((number for number, line in enumerate(self._lines, 1) if call.search(line)), MAX_SHOWN_SITES))

    async def _show_arguments(self, args: Mapping[str, Any]) -> None:
        """Show the arguments: whole if they fit the screen, else in pieces. Nothing is left out without a word."""
        if not args:
            self._err.line("  no arguments")
            return
        rows = await off_loop(argument_rows, args, self._err.columns - 5)
        room = max(self._err.lines - 4, 5)
        shown = 0
        while shown < len(rows):
            for row in rows[shown : shown + room]:
                self._err.line(f"  {self._err.paint('│', 'dim')} {row}")
            shown += room
            left = len(rows) - shown
            if left > 0 and (await self._typed(f"  {left:,} more lines: Enter shows them, s skips them ")).lower() == "s":
                mark = self._err.paint("!", "yellow")
                self._err.line(f"{mark} {left:,} lines of the arguments were NOT shown; v shows them")
                return

    def _keys(self, request: ApprovalRequest, others: Sequence[ApprovalRequest]) -> list[str]:
        hidden = (*(FOR_GROUPS if not others else ()), *(FOR_LATER if request.reads else ()))
        return [key for key in KEYS if key not in hidden]

    def _explain_keys(self, request: ApprovalRequest, others: Sequence[ApprovalRequest]) -> None:
        for key in self._keys(request, others):
            self._err.line(self._err.fold(as_typed(f"  {key}  {KEYS[key]}"), " " * 5))
        if request.reads:
            return
        shape = visible_line(request.shape)
        self._err.line(self._err.fold(f"  r and a are for {_tool(request)} with {shape}", " " * 5))

    # What is done.

    def _others(self, request: ApprovalRequest) -> tuple[ApprovalRequest, ...]:
        """Return the other calls of the run that wait now. One that may have been made is answered by itself."""
        waiting = self._desk.waiting if self._desk is not None else ()
        return tuple(one for one in waiting if one.run == request.run and one.id != request.id and not one.is_unknown)

    async def _approved_all(self, others: Sequence[ApprovalRequest]) -> bool:
        """Show all other calls, and approve exactly those that were shown if the person agrees."""
        for number, one in enumerate(others, 2):
            self._err.line(f"  {self._err.paint(f'{number} of {len(others) + 1}', 'dim')}  {_tool(one)}")
            await self._show_arguments(one.args)
        question = f"Make all {len(others) + 1} calls? [y/N] "
        if (await self._typed(question, fresh=True)).lower() not in ("y", "yes"):
            return False
        return self._answer_group(others, Answer(True, self.approver))

    def _answer_group(self, others: Sequence[ApprovalRequest], answer: Answer) -> bool:
        assert self._desk is not None
        try:
            self._desk.answer_group({one.id: one.digest for one in others}, answer)
        except GloveportError as error:
            self._problem(error.message)
            return False
        return True

    async def _edit(self, request: ApprovalRequest, draft: str | None) -> str | None:
        """Let the person change the arguments, and make the call with them; return what they wrote if that can't be."""
        assert self._desk is not None
        before = to_text(to_json(request.args), indented=True)
        try:
            edited = await edit_arguments(draft or before)
            if edited.args == to_json(request.args):
                self._problem("the arguments are as they were")
                return edited.text
            await self._show_arguments(edited.args)
            if (await self._typed("Make the call with these arguments? [y/N] ", fresh=True)).lower() not in ("y", "yes"):
                return edited.text
            self._desk.answer(request.id, request.digest, Answer(True, self.approver, args=edited.args))
            self._edited = request.id
        except GloveportError as error:
            self._problem(error.message)
            return draft
        await asyncio.get_running_loop().create_future()  # the desk has the answer, and ends this question
        return None

    def _problem(self, text: str) -> None:
        self._err.line(f"{self._err.paint('!', 'yellow')} {visible_line(text)}")

    async def _typed(self, question: str, *, fresh: bool = False) -> str:
        """Return the line that the person types. With `fresh`, what was typed before the question does not count."""
        if fresh:
            with suppress(termios.error):
                termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)
        self._err.write(question)
        return await _read_line(sys.stdin.fileno())


async def _read_line(descriptor: int) -> str:
    """Return a line from a terminal without blocking the event loop; an empty one at its end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(descriptor, lambda: ready.done() or ready.set_result(None))
    try:
        await ready
    finally:
        loop.remove_reader(descriptor)
    try:
        return os.read(descriptor, 64 * 1024).decode("utf-8", "replace").strip()
    except OSError:  # the terminal is gone
        return ""


def _tool(request: ApprovalRequest) -> str:
    return visible_line(f"tools.{request.tool.removeprefix('local.')}")


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return str(os.getuid())
