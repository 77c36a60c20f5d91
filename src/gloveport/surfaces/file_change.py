"""A change to one of the user's files: shown as a diff, confirmed, and written so that nothing is lost."""

from __future__ import annotations

import difflib
import os
import signal
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from gloveport.errors import GloveportError, OptionError
from gloveport.surfaces.terminal import Stream, visible_line

MAX_FILE_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class FileChange:
    """The text of a file before the change (None if there is no file) and after it."""

    path: Path
    before: str | None
    after: str

    @property
    def diff(self) -> list[str]:
        """The lines of the difference."""
        old, new, name = (self.before or "").splitlines(), self.after.splitlines(), str(self.path)
        return list(difflib.unified_diff(old, new, name, name, lineterm="", n=1))

    def show(self, err: Stream) -> None:
        """Write the diff."""
        for line in self.diff:
            colour = "green" if line.startswith("+") else "red" if line.startswith("-") else "dim"
            err.line("  " + err.paint(visible_line(line), colour))

    def make(self, *, mode: int = 0o644) -> None:
        """Replace the file atomically; raise OptionError if it was changed in the meantime."""
        if read_text(self.path) != self.before:
            raise OptionError(
                f"{self.path} was changed by another program just now", hint="run the command again; nothing was changed"
            )
        mode = mode if self.before is None else self.path.stat().st_mode & 0o777
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            handle, name = tempfile.mkstemp(dir=self.path.parent, prefix=f".{self.path.name}.")
        except OSError as error:
            raise _write_error(self.path, error) from None
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(self.after)
            os.chmod(name, mode)
            os.replace(name, self.path)
        except OSError as error:
            os.unlink(name)
            raise _write_error(self.path, error) from None

    def back_up(self) -> Path | None:
        """Copy the file next to itself with the same permissions; return the copy's path, or None if there is no file."""
        if self.before is None:
            return None
        stamp = datetime.now().strftime("%Y%m%d%H%M%S")
        mode = self.path.stat().st_mode & 0o777
        for number in range(1, 100):
            copy = self.path.with_name(f"{self.path.name}.bak-{stamp}{f'-{number}' if number > 1 else ''}")
            try:
                handle = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            except FileExistsError:
                continue
            except OSError as error:
                raise _write_error(copy, error) from None
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(self.before)
            return copy
        raise OptionError(f"there are too many backups of {self.path}", hint="delete old ones; nothing was changed")


def _write_error(path: Path, error: OSError) -> OptionError:
    return OptionError(f"{path} can't be written: {error.strerror}", hint="check its permissions; nothing was changed")


def read_text(path: Path) -> str | None:
    """Return the text of a file with its own line endings; None if there is no file."""
    try:
        if not path.is_file() and path.exists():
            raise OptionError(f"{path} is not a file")
        if path.exists() and path.stat().st_size > MAX_FILE_BYTES:
            raise OptionError(f"{path} is larger than {MAX_FILE_BYTES // 1024 // 1024} MiB")
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} can't be read: {error}") from None


def parse_toml(path: Path, text: str) -> dict[str, Any]:
    """Return the values of a settings file's text; raise OptionError if it is not valid TOML."""
    try:
        return tomllib.loads(text)
    except ValueError as error:
        raise OptionError(
            f"{path} is not valid TOML: {error}", hint="correct the file first; nothing was changed"
        ) from None


def read_answer(question: str, err: Stream) -> str:
    """Return what the person types. Ctrl-C ends the command at once; an event loop would handle it only later."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        err.write(question)
        return sys.stdin.readline().strip().lower()
    finally:
        signal.signal(signal.SIGINT, before)


def ask(question: str, err: Stream, *, yes: bool, as_json: bool) -> None:
    """Ask whether to go on; raise if the answer is no, or if nobody can answer."""
    if yes:
        return
    if as_json or not sys.stdin.isatty():
        raise OptionError(f"nobody can answer: {question}", hint="give --yes to agree in advance; nothing was changed")
    if read_answer(f"{question} [y/N] ", err) not in {"y", "yes"}:
        raise GloveportError("nothing was changed", code="cancelled")
