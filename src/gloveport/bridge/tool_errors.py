"""Turn a tool's exception into a ToolError of plain, bounded data: no host object, path or traceback enters a run.

CVE-2026-22686 was an escape through the error object of a failed tool call. Here only the fields below cross, by copy.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import PurePosixPath, PureWindowsPath
from typing import Any

from gloveport.bridge.to_data import to_data
from gloveport.errors import GloveportError, ToolError
from gloveport.large_values import is_large

MAX_MESSAGE_CHARS = 8 * 1024
_QUOTED_PATH = re.compile(r"(['\"])(/[^'\"\n]+|[A-Za-z]:\\[^'\"\n]+)\1")
_BARE_PATH = re.compile(
    r"(?P<url>\b(?:https?|wss?)://[^\s/'\"<>]+[^\s'\"<>]*)"
    r"|(?P<word>[\w:.~-]?)(?P<path>/[^\s'\"<>|;,:()\[\]{}]+)"
    r"|(?<!\w)(?P<windows>[A-Za-z]:\\[^\s'\"<>|;,()\[\]{}]+)"
)
_MAX_PATH_STEPS = 32
MAX_DATA_VALUES = 50_000
MAX_DATA_BYTES = 1024 * 1024


def to_tool_error(error: BaseException, tool: str, *, attributed: bool) -> ToolError:
    """Return the ToolError that the run may see for an exception of a source.

    Its origin is the tool, unless it is a ToolError of a source of ours, which are `attributed`.
    """
    if isinstance(error, ToolError):
        try:
            return _copy(error, tool, attributed=attributed)
        except Exception:  # noqa: BLE001 - a subclass's own code runs in here
            return ToolError("the tool failed", tool=tool, origin="tool")
    name = _text(lambda: type(error).__name__) or "Error"
    message = without_paths(_text(lambda: str(error)))
    return ToolError(truncate(f"{name}: {message}" if message else name), tool=tool, origin="tool")


def raise_location(error: BaseException) -> str:
    """Return where a tool raised, for the host's record only: ` (tools.py:35 in boom)`. The run never sees it."""
    if isinstance(error, GloveportError) or error.__traceback__ is None:
        return ""
    trace = error.__traceback__
    while trace.tb_next is not None:
        trace = trace.tb_next
    code = trace.tb_frame.f_code
    return f" ({os.path.basename(code.co_filename)}:{trace.tb_lineno} in {code.co_name})"


def _copy(error: ToolError, tool: str, *, attributed: bool) -> ToolError:
    """Return a ToolError with the same fields as plain data."""
    fields = error.__dict__
    code, hint, status, setting = (fields.get(name) for name in ("code", "hint", "status", "setting"))
    return ToolError(
        truncate(_text(lambda: str(fields.get("message", "")))),
        code=truncate(_text(lambda: str(code))) if code else None,
        tool=tool,
        status=int(status) if isinstance(status, int) else None,
        data=_data(fields.get("data")),
        retryable=fields.get("retryable") is True,
        hint=truncate(_text(lambda: str(hint))) if hint else None,
        origin="gloveport" if attributed and fields.get("origin") == "gloveport" else "tool",
        setting=truncate(_text(lambda: str(setting))) if setting else None,
    )


def _data(data: Any) -> Any:
    if is_large(data, MAX_DATA_VALUES, MAX_DATA_BYTES):
        return None
    try:
        return to_data(data, "")
    except ToolError:
        return None


def _text(text_of: Callable[[], Any]) -> str:
    """Return a true, bounded str, even if `__str__` raises or returns a subclass of str."""
    try:
        return str.__getitem__(text_of(), slice(0, MAX_MESSAGE_CHARS + 1))
    except Exception:  # noqa: BLE001 - an exception's own code runs in here
        return ""


def truncate(text: str) -> str:
    """Return the text, cut at the maximum length of a message."""
    return text if len(text) <= MAX_MESSAGE_CHARS else f"{text[:MAX_MESSAGE_CHARS]}… (cut)"


def without_paths(text: str) -> str:
    """Return the text with each path of this machine reduced to its last part."""
    if "/" not in text and "\\" not in text:
        return text
    text = _QUOTED_PATH.sub(lambda found: f"{found[1]}{_last_part(found[2])}{found[1]}", text)
    known = [folder for folder in (os.getcwd(), os.path.expanduser("~"), sys.prefix) if len(folder) > 1]
    spaceless = [folder.replace(" ", "_") for folder in known]
    for folder, spelling in zip(known, spaceless, strict=True):  # a path ends at a space, but these are known to go on
        text = text.replace(folder, spelling)
    text = _BARE_PATH.sub(_without_path, text)
    for folder in (*known, *spaceless):
        text = text.replace(folder + os.sep, "").replace(folder, "…")
    return text


def _without_path(found: re.Match[str]) -> str:
    """Return the match without the path of this machine in it: `sqlite:////opt/app/db` has one, and `a/b` has none."""
    if found["url"]:
        return found[0]
    if found["windows"]:
        return _last_part(found["windows"])
    word, path = found["word"], found["path"]
    if not word and (shown := _last_part(path)) != path:
        return shown
    at = 0
    for _ in range(_MAX_PATH_STEPS):
        folders = path[at:].lstrip("/").split("/", 2)[:2]
        if len(folders) == 2 and all(folders) and os.path.lexists(f"/{folders[0]}/{folders[1]}"):
            return f"{word}{path[:at]}{PurePosixPath(path).name}"
        at = path.find("/", at + 1)
        if at < 0:
            break
    return found[0]


def _last_part(path: str) -> str:
    """Return the last part of a path of this machine. `/v1/users` stays whole: there is no `/v1` here."""
    if path[0] != "/":
        return PureWindowsPath(path).name or path
    first = path.split("/", 2)[1]
    if first and os.path.lexists(f"/{first}"):
        return PurePosixPath(path).name or path
    return path
