"""What the commands of `gloveport sessions` do."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import TypeVar

from gloveport.errors import OptionError
from gloveport.host.port import Gloveport
from gloveport.host.sessions.agent_session import AgentSession
from gloveport.store.sessions import SessionStore
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.file_change import ask
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.record_documents import session_document
from gloveport.surfaces.terminal import visible_line
from gloveport.types import MIB

T = TypeVar("T")


def list_command(view: ViewOptions, agent: str | None) -> int:
    """List the sessions; return the exit code."""
    with closing(SessionStore(view.store_path)) as store:
        found = store.all(agent)
    if view.as_json:
        write_document(view.out, {"ok": True, "sessions": [session_document(one) for one in found]})
        return 0
    for one in found:
        used = time.strftime("%Y-%m-%d %H:%M", time.localtime(one.used))
        about = f"{one.files:,} file{'s' * (one.files != 1)}, {one.size:,} bytes, {used}"
        run = f"  in use by {visible_line(one.run)[:12]}" if one.run is not None else ""
        name = view.out.paint(visible_line(one.name), "bold")
        view.out.line(f"{name}  {visible_line(one.agent)}  {about}{run}")
    if not found:
        view.err.line(as_typed("there are no sessions; `gloveport run --session NAME` makes one"))
    return 0


def files_command(view: ViewOptions, name: str, agent: str) -> int:
    """List the files of a session; return the exit code."""
    found = _with(view, name, agent, lambda session: session.files.list())
    if view.as_json:
        write_document(view.out, {"ok": True, "files": [{"path": one.path, "size": one.size} for one in found]})
        return 0
    for one in found:
        view.out.line(f"{one.size:>12,}  {visible_line(one.path)}")
    if not found:
        view.err.line(f"there are no files in the session {name} of the agent {agent}")
    return 0


def get_command(view: ViewOptions, name: str, agent: str, path: str, file: str | None, *, force: bool) -> int:
    """Write a file of a session to stdout, or into a file; return the exit code."""
    content = _with(view, name, agent, lambda session: session.files.get(path))
    if file is None:
        if view.as_json:
            raise OptionError("--json needs a FILE to write to", hint=f"gloveport sessions get {name} PATH FILE --json")
        sys.stdout.buffer.write(content)
        sys.stdout.buffer.flush()
        return 0
    # A link that somebody has left in the folder must not lead to another file (D8).
    how = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(file, how, 0o600), "wb") as written:
            written.write(content)
    except FileExistsError:
        raise OptionError(f"{file} exists", hint="name another file, or replace it with --force") from None
    except OSError as error:
        raise OptionError(f"{file} can't be written: {error.strerror}") from None
    _done(view, {"file": file, "bytes": len(content)}, f"{file} has {len(content):,} bytes")
    return 0


def put_command(view: ViewOptions, name: str, agent: str, file: str, path: str | None) -> int:
    """Put a file into a session; return the exit code."""
    if file == "-" and path is None:
        raise OptionError("standard input has no name", hint=f"gloveport sessions put {name} - PATH")
    most = view.settings(quiet=True).governance.sessions.max_mb * MIB
    try:
        if file == "-":
            content = sys.stdin.buffer.read(most + 1)
        else:
            with open(file, "rb") as opened:
                content = opened.read(most + 1)
    except OSError as error:
        raise OptionError(f"{file} can't be read: {error.strerror}") from None
    there = path or os.path.basename(file)
    _with(view, name, agent, lambda session: session.files.put(there, content))
    _done(view, {"path": there, "bytes": len(content)}, f"{visible_line(there)} is in the session {name}")
    return 0


def remove_command(view: ViewOptions, name: str, agent: str, path: str | None, *, yes: bool) -> int:
    """Delete a session, or a file or folder of it; return the exit code."""
    if path is not None:
        _with(view, name, agent, lambda session: session.files.remove(path))
    else:
        if not yes:
            ask(f"delete the session {name} of the agent {agent}?", view.err, yes=False, as_json=view.as_json)
        _with(view, name, agent, lambda session: session.remove())
    _done(view, {"removed": path or name}, f"{visible_line(path or name)} is removed")
    return 0


def _done(view: ViewOptions, told: dict[str, object], line: str) -> None:
    if view.as_json:
        write_document(view.out, {"ok": True, **told})
    else:
        view.err.line(line)


def _with(view: ViewOptions, name: str, agent: str, work: Callable[[AgentSession], Awaitable[T]]) -> T:
    """Return the result of work on a session in the store; it starts no sandbox."""

    async def there() -> T:
        port = Gloveport(config=view.settings(quiet=True), spare=0, store=view.store_path)
        try:
            return await work(port.session(name, agent=agent))
        finally:
            await port.close()

    return run_interruptible(there())
