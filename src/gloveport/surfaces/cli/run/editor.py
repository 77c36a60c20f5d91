"""Lets a person change the arguments of a call in their own editor, as JSON."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from gloveport.errors import OptionError
from gloveport.surfaces.cli.arguments import parse_json

DEFAULT_EDITOR = "vi"


class EditedArguments(NamedTuple):
    """What the person wrote, and the arguments that it states."""

    text: str
    args: dict[str, Any]


async def edit_arguments(text: str) -> EditedArguments:
    """Return a text as the person leaves it in `$VISUAL` or `$EDITOR`; raise OptionError if it is no JSON object."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or DEFAULT_EDITOR
    handle, path = tempfile.mkstemp(prefix="gloveport-", suffix=".json")  # readable for this user alone
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"{text}\n")
        await _run([*shlex.split(editor), path])
        edited = await asyncio.to_thread(Path(path).read_text, "utf-8", "replace")
    finally:
        os.unlink(path)
    args = parse_json("the text", edited, example='{"amount": 5}')
    if not isinstance(args, dict):
        raise OptionError("the arguments must be a JSON object")
    return EditedArguments(edited.strip(), args)


async def _run(command: list[str]) -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the editor's while it has the terminal
    try:
        process = await asyncio.create_subprocess_exec(*command)
        try:
            status = await process.wait()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
    except OSError as error:
        hint = "set EDITOR to the command of your editor"
        raise OptionError(f"the editor {command[0]} can't be started: {error.strerror}", hint=hint) from None
    finally:
        signal.signal(signal.SIGINT, before)
    if status != 0:
        raise OptionError(f"the editor {command[0]} failed with status {status}; nothing was changed")
