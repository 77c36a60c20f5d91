"""`gloveport runs export`, `import` and `test`: runs in files."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from gloveport.config import Config
from gloveport.errors import GloveportError, OptionError
from gloveport.host.port import Gloveport
from gloveport.host.runs.run_file import exported, imported, read_run_file
from gloveport.store.stored_runs import StoredRuns
from gloveport.surfaces.cli.view import ViewOptions
from gloveport.surfaces.documents import write_document
from gloveport.surfaces.interruption import run_interruptible
from gloveport.surfaces.own_command import as_typed
from gloveport.surfaces.terminal import visible_line


def export_command(view: ViewOptions, id: str, file: str, *, force: bool) -> int:
    """Write a run into a file that only its owner may read; return the exit code."""
    with closing(StoredRuns(view.store_path)) as stored:
        run = stored.find(id)
        content = exported(stored, run)
    # A link that somebody has left in the folder must not lead to another file (D8).
    how = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_TRUNC if force else os.O_EXCL)
    try:
        with os.fdopen(os.open(file, how, 0o600), "wb") as written:
            os.fchmod(written.fileno(), 0o600)
            written.write(content)
    except FileExistsError:
        raise OptionError(f"{file} exists", hint="name another file, or replace it with --force") from None
    except OSError as error:
        raise OptionError(f"{file} can't be written: {error.strerror}") from None
    if view.as_json:
        write_document(view.out, {"ok": True, "run": run.id, "file": file, "bytes": len(content)})
    else:
        view.err.line(f"{run.id[:8]} is in {file} ({len(content):,} bytes): the program, its arguments and its results")
        view.err.line(view.err.paint(as_typed(f"gloveport runs test {file}"), "dim"))
    return 0


def import_command(view: ViewOptions, file: str) -> int:
    """Put the run of a file into the store; return the exit code."""
    found = read_run_file(Path(file))
    with closing(StoredRuns(view.store_path)) as stored:
        run = imported(stored, found)
    if view.as_json:
        write_document(view.out, {"ok": True, "run": run})
    else:
        view.err.line(as_typed(f"gloveport runs show {run}"))
        view.err.line(as_typed(f"gloveport runs replay {run}"))
    return 0


def test_command(view: ViewOptions, files: tuple[str, ...]) -> int:
    """Repeat the runs of files and compare; return 0 if all do the same, else 1."""
    settings = view.settings()
    rows = run_interruptible(_test_all(view, replace(settings, sources=()), files))
    failed = sum(not row.ok for row in rows)
    if view.as_json:
        tests = [row._asdict() for row in rows]
        write_document(view.out, {"ok": not failed, "tests": tests})
    else:
        view.err.line(f"{len(rows) - failed} passed, {failed} failed")
    return 1 if failed else 0


class _FileTest(NamedTuple):
    """The run of a file: whether it does the same, why not, and what differs without a meaning, such as a log line."""

    file: str
    ok: bool
    problem: str | None = None
    difference: str | None = None


async def _test_all(view: ViewOptions, settings: Config, files: tuple[str, ...]) -> list[_FileTest]:
    rows: list[_FileTest] = []
    async with Gloveport(config=settings, spare=0) as port:
        for file in files:
            row = await _test(port, file)
            rows.append(row)
            if not view.as_json:
                mark = view.out.paint("✓", "green") if row.ok else view.out.paint("✗", "red")
                about = row.problem or (f"the same, but for {row.difference}" if row.difference else "")
                view.out.line(f"{mark} {visible_line(file)}{f': {visible_line(about)}' if about else ''}")
    return rows


async def _test(port: Gloveport, file: str) -> _FileTest:
    try:
        recording = read_run_file(Path(file)).recording
        if recording.memory_mb > port.limits.memory_mb:
            needed = f"it needs memory_mb = {recording.memory_mb:,} in [limits], which has {port.limits.memory_mb:,}"
            return _FileTest(file, False, needed)
        found = await port.replay(recording)
    except GloveportError as error:
        return _FileTest(file, False, error.message)
    if found is not None and found.fatal:
        return _FileTest(file, False, f"it does something else than recorded: {found}")
    return _FileTest(file, True, difference=None if found is None else str(found))
