"""`gloveport open`: asks a running server for a link that signs in to its pages, and opens it in the browser."""

from __future__ import annotations

import html
import os
import sys
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from gloveport.folders import data_folder
from gloveport.store.tokens import Role
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.terminal import stream
from gloveport.surfaces.web.links import asked_link

WAIT_SECONDS = 60.0
PAGE = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0;url={}"><title>Gloveport</title>'


@dataclass(frozen=True, slots=True)
class OpenOptions:
    """The command line of `gloveport open`."""

    role: Role
    agent: str
    port: int | None
    only_print: bool
    as_json: bool
    color: str


def open_command(options: OpenOptions) -> int:
    """Open the pages in the browser; return the exit code."""
    out = stream(sys.stdout, options.color)
    with asked_link(options.role, options.agent, options.port) as (answer, connection):
        if options.as_json:
            write_document(out, {"ok": True, "url": answer["url"]})
            return 0
        out.line(answer["url"])
        if options.only_print or not sys.stdout.isatty():
            return 0
        page = _redirect(answer["url"])
        try:
            if not webbrowser.open(page.as_uri()):
                out.line("No browser could be started: open the link yourself. It signs you in once, within five minutes.")
                return 0
            connection.settimeout(WAIT_SECONDS)
            used = connection.makefile("rb").readline()
        except TimeoutError:
            used = b""
        finally:
            page.unlink(missing_ok=True)
        signed_in = f"{out.paint('✓', 'green')} signed in as {options.role} at {answer['server']}"
        out.line(signed_in if used else "Nothing has used the link yet: open it yourself, within five minutes.")
    return 0


def _redirect(url: str) -> Path:
    """Return a page that leads to a link. The arguments of a process, and so of a browser, are for every user to read."""
    folder = data_folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    handle, name = tempfile.mkstemp(dir=folder, prefix="open-", suffix=".html")  # created with mode 0600
    with os.fdopen(handle, "w") as file:
        file.write(PAGE.format(html.escape(url)))
    return Path(name)
