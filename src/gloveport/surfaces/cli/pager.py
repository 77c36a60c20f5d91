"""Shows an answer that is longer than the terminal in a pager: `$GLOVEPORT_PAGER`, `$PAGER`, or `less`.

The pager gets the text as a file on its standard input, never as an argument. Text from others was made visible before.
"""

from __future__ import annotations

import io
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.terminal import Stream, cells

LESS_OPTIONS = "-FRX"  # leave at the end of one screen, show colours, keep the text on the screen
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class AnswerPage(NamedTuple):
    """Where a command writes its answer, and the notes that follow it."""

    out: Stream
    err: Stream


@contextmanager
def paged(view: ViewOptions) -> Iterator[AnswerPage]:
    """Yield a page that is shown when the block ends: in a pager where it is too long for the terminal.

    The block has ended by then, so that no server waits for the reader.
    """
    page = AnswerPage(view.out, view.err)
    pager = pager_command(os.environ) if view.pages and not view.as_json and page.out.moves else None
    if pager is None:
        yield page
        return
    text, notes = io.StringIO(), io.StringIO()
    try:
        yield AnswerPage(replace(page.out, file=text), replace(page.err, file=notes))
    except BaseException:
        pager = None
        raise
    finally:
        _show(page, text.getvalue(), pager)
        page.err.write(notes.getvalue())


def pager_command(environment: Mapping[str, str]) -> Sequence[str] | None:
    """Return the command of the pager; None when the user wants none, or there is none."""
    for name in ("GLOVEPORT_PAGER", "PAGER"):
        if name in environment:
            try:
                chosen = shlex.split(environment[name])
            except ValueError:  # an unclosed quote
                return None
            return None if chosen in ([], ["cat"]) else chosen
    return ["less", LESS_OPTIONS] if shutil.which("less") else None


def fits(text: str, out: Stream) -> bool:
    """Return whether the terminal shows the text at once, with the prompt below it."""
    columns, left = out.columns, out.lines - 1
    for line in text.splitlines():
        left -= max(1, -(-cells(_COLOUR.sub("", line).expandtabs()) // columns))
        if left < 0:
            return False
    return True


def _show(page: AnswerPage, text: str, pager: Sequence[str] | None) -> None:
    if pager is None or fits(text, page.out):
        page.out.write(text)
        return
    import subprocess
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(text.encode("utf-8", "backslashreplace"))
        file.seek(0)
        try:
            # `less` that was chosen without options shows colours as they are.
            process = subprocess.Popen(pager, stdin=file, env={"LESS": LESS_OPTIONS, **os.environ})
        except OSError as error:
            page.out.write(text)
            page.err.line(f"{page.err.paint('!', 'yellow')} the pager `{pager[0]}` can't be started: {error.strerror}")
            return
        while True:
            try:
                process.wait()
                return
            except KeyboardInterrupt:  # Ctrl-C is for the pager
                continue
