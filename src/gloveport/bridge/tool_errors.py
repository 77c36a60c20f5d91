"""A tool's exception → a ToolError of plain, bounded data: no host object, path or traceback goes into a run.

CVE-2026-22686 was a sandbox left through the error object of a failed tool call; here only these fields cross, by copy.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from gloveport.bridge.to_data import to_data
from gloveport.errors import GloveportError, ToolError

LONGEST = 8 * 1024
QUOTED = re.compile(r"(['\"])(/[^'\"\n]+|[A-Za-z]:\\[^'\"\n]+)\1")
BARE = re.compile(r"(?<![\w/:.~-])(/[^\s'\"<>|;,:()\[\]{}]+|[A-Za-z]:\\[^\s'\"<>|;,()\[\]{}]+)")


def failure(error: BaseException, tool: str) -> ToolError:
    """The ToolError that the run may see for what a source raised."""
    if isinstance(error, ToolError):
        try:
            return _copied(error, tool)
        except Exception:  # noqa: BLE001 - a subclass's own code runs here
            return ToolError("the tool failed", tool=tool)
    name = _text(lambda: type(error).__name__) or "Error"
    said = without_paths(_text(lambda: str(error)))
    return ToolError(bounded(f"{name}: {said}" if said else name), tool=tool)


def raise_location(error: BaseException) -> str:
    """Where a tool's own exception came from, for the host's record: ` (tools.py:35 in boom)`. The run never sees it."""
    if isinstance(error, GloveportError) or error.__traceback__ is None:
        return ""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f" ({os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name})"


def _copied(error: ToolError, tool: str) -> ToolError:
    """The same fields, with nothing in them that is not plain data."""
    fields = error.__dict__
    code, hint, status = fields.get("code"), fields.get("hint"), fields.get("status")
    return ToolError(
        bounded(_text(lambda: str(fields.get("message", "")))),
        code=bounded(_text(lambda: str(code))) if code else None,
        tool=tool,
        status=int(status) if isinstance(status, int) else None,
        data=_data(fields.get("data")),
        retryable=fields.get("retryable") is True,
        hint=bounded(_text(lambda: str(hint))) if hint else None,
    )


def _data(data: Any) -> Any:
    try:
        return to_data(data, "")
    except ToolError:
        return None


def _text(said: Any) -> str:
    """A true string, whatever `__str__` does: it may raise, or give a subclass of str."""
    try:
        return str.__getitem__(said(), slice(0, LONGEST + 1))
    except Exception:  # noqa: BLE001 - an exception's own code runs here
        return ""


def bounded(text: str) -> str:
    """The text, cut where it is too long to be a message."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… (cut)"


def without_paths(text: str) -> str:
    """The text with paths of this machine cut down to their last part."""
    if "/" not in text and "\\" not in text:
        return text
    text = QUOTED.sub(lambda found: f"{found[1]}{_last_part(found[2])}{found[1]}", text)
    text = BARE.sub(lambda found: _last_part(found[1]), text)
    for folder in (os.getcwd(), os.path.expanduser("~"), sys.prefix):
        if len(folder) > 1:
            text = text.replace(folder + os.sep, "").replace(folder, "…")
    return text


def _last_part(path: str) -> str:
    """The last part of a path of this machine; `/v1/users` is none, because nothing here is called `/v1`."""
    if path[0] != "/":
        return PureWindowsPath(path).name or path
    first = path.split("/", 2)[1]
    if first and os.path.lexists(f"/{first}"):
        return PurePosixPath(path).name or path
    return path
