"""The errors that a program meets, and the description of one that it did not catch, as data."""

# pyright: reportAttributeAccessIssue=false
# It changes private parts of the standard library.

from __future__ import annotations

import linecache
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from types import CodeType, TracebackType
from typing import Any

PROGRAM = "program.py"
MAX_MESSAGE_CHARS = 64 * 1024
MAX_CAUSES = 8
MAX_SHOWN_KEYS, MAX_KEY_CHARS = 12, 40  # of a dict that lacks the one that was asked for
MAX_SHOWN_ERRORS = 3  # of an exception group, in its message

# These read the real attributes, whatever a class of the program defines under their names.
traceback_of: Callable[[BaseException], Any] = BaseException.__dict__["__traceback__"].__get__
cause_of: Callable[[BaseException], Any] = BaseException.__dict__["__cause__"].__get__
context_of: Callable[[BaseException], Any] = BaseException.__dict__["__context__"].__get__
suppressed: Callable[[BaseException], Any] = BaseException.__dict__["__suppress_context__"].__get__
name_of: Callable[[type], str] = type.__dict__["__name__"].__get__

# A name, the constants that lead from it to a dict, and what is looked up there.
_LOOKED_UP = re.compile(r"""(\w+)((?:\[(?:"[^"]*"|'[^']*'|-?\d+)\])*)\[[^\[\]]*\]\Z""")
_STEP = re.compile(r"""\[(?:"([^"]*)"|'([^']*)'|(-?\d+))\]""")

NEVER_SETTLES = "the program waits for something that can never happen"
NO_EXIT = "exit is not offered here: return from the program"
# What CPython says where it finds no memory for a frame.
_WITHOUT_ERROR = ("error return without exception set", "returned NULL without setting an exception")
NO_MEMORY = "the program needed more memory than its limit"


FIELDS = ("code", "origin", "tool", "status", "data", "retryable", "hint")  # of a ToolError, beside its message


class ToolError(Exception):
    """A failed tool call, with the same fields as the host's ToolError."""

    def __init__(
        self,
        message: str = "",
        *,
        code: str | None = None,
        tool: str | None = None,
        status: int | None = None,
        data: Any = None,
        retryable: bool | None = None,
        hint: str | None = None,
        origin: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.tool = tool
        self.status = status
        self.data = data
        self.retryable = retryable
        self.hint = hint
        self.origin = origin

    @classmethod
    def received(cls, fields: Mapping[str, Any]) -> ToolError:
        """Return the error in a reply frame."""
        return cls(str(fields.get("message", "")), **{name: fields[name] for name in FIELDS if name in fields})

    def fields(self) -> dict[str, Any]:
        """Return its fields beside the message."""
        return {name: getattr(self, name) for name in FIELDS if getattr(self, name, None) is not None}


ToolError.__module__ = "builtins"


class RemoteError(Exception):
    """An error that crossed the border as data, with `name`, `message` and further `data`."""

    def __init__(self, name: str, message: str, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(name, message)
        self.name = name
        self.message = message
        self.data = dict(data or {})

    def __str__(self) -> str:
        return self.message

    def __getattr__(self, name: str) -> Any:
        try:
            return self.__dict__["data"][name]
        except KeyError:
            raise AttributeError(f"the error has no field {name!r}") from None


RemoteError.__module__ = "builtins"


class CrossingError(TypeError):
    """A value is not plain data; the message names its path."""


class NeverSettles(BaseException):
    """Nothing is pending and the program has not ended."""


def message_of(value: Any, show: Callable[[Any], str] = str) -> str:
    """Return the text of an exception, whatever its __str__ does."""
    try:
        text = show(value)
        return text[:MAX_MESSAGE_CHARS] if type(text) is str else str.__str__(text)[:MAX_MESSAGE_CHARS]
    except (MemoryError, NeverSettles):
        raise
    except BaseException:
        return "a value that can't be shown"


# Places.


def column_of(line: int, byte_offset: int) -> int:
    """Return the 1-based column in characters for a byte offset in a line of the program."""
    text = linecache.getline(PROGRAM, line)
    return len(text.encode("utf-8", "surrogatepass")[:byte_offset].decode("utf-8", "ignore")) + 1


def place_in(code: CodeType, instruction: int, line: int | None) -> dict[str, int]:
    """Return the line and column of an instruction, as far as they are known."""
    start, _, offset, _ = next(islice(code.co_positions(), max(instruction, 0) // 2, None), (None,) * 4)
    if start is None:
        return {} if line is None else {"line": line}
    return {"line": start} if offset is None else {"line": start, "column": column_of(start, offset)}


def innermost(error: BaseException) -> TracebackType | None:
    """Return the program's innermost frame in an exception's traceback."""
    found: TracebackType | None = None
    step = traceback_of(error)
    while step is not None:
        if step.tb_frame.f_code.co_filename == PROGRAM:
            found = step
        step = step.tb_next
    return found


def place_of(error: BaseException) -> dict[str, int]:
    """Return the place of the program's innermost frame in an exception's traceback."""
    found = innermost(error)
    return place_in(found.tb_frame.f_code, found.tb_lasti, found.tb_lineno) if found else {}


def place_of_wait(coroutine: Any) -> dict[str, int]:
    """Return the place in the program where a suspended coroutine waits."""
    found: dict[str, int] = {}
    for _ in range(1000):
        frame = getattr(coroutine, "cr_frame", None) or getattr(coroutine, "gi_frame", None)
        if frame is None:
            return found
        if frame.f_code.co_filename == PROGRAM:
            found = place_in(frame.f_code, frame.f_lasti, frame.f_lineno)
        coroutine = getattr(coroutine, "cr_await", None) or getattr(coroutine, "gi_yieldfrom", None)
    return found


def known_keys(error: KeyError) -> dict[str, str]:
    """Return a hint with the keys of the dict that lacks one, if the program's text says which dict that is."""
    found = innermost(error)
    if found is None:
        return {}
    frame = found.tb_frame
    start, end, first, last = next(islice(frame.f_code.co_positions(), found.tb_lasti // 2, None), (None,) * 4)
    if start is None or start != end or first is None or last is None:
        return {}
    text = linecache.getline(PROGRAM, start).encode("utf-8", "surrogatepass")[first:last].decode("utf-8", "ignore")
    looked_up = _LOOKED_UP.match(text)
    value = _value_at(frame.f_globals | frame.f_locals, looked_up) if looked_up else None
    if type(value) is not dict or not all(type(key) is str for key in value):
        return {}
    keys = [repr(key)[:MAX_KEY_CHARS] for key in islice(value, MAX_SHOWN_KEYS)]
    more = f" and {len(value) - len(keys)} more" if len(value) > len(keys) else ""
    return {"hint": f"the keys there are {', '.join(keys)}{more}" if keys else "the dict there is empty"}


def _value_at(names: Mapping[str, Any], looked_up: re.Match[str]) -> Any:
    """Return the value that constants lead to, through plain dicts and lists alone: no code of the program runs."""
    value = names.get(looked_up[1])
    for double, single, number in _STEP.findall(looked_up[2]):
        if type(value) is dict:
            value = value.get(int(number) if number else double or single)
        else:
            value = (
                value[int(number)] if type(value) is list and number and -len(value) <= int(number) < len(value) else None
            )
    return value


# Descriptions.


def describe(error: BaseException, encode: Callable[[Any, str], str], depth: int = 0) -> dict[str, Any]:
    """Return the description of an uncaught exception in the form of the wire. `encode` encodes a value."""
    out: dict[str, Any] = {"type": name_of(type(error))[:200], "message": _text(error)}
    out |= place_of(error)
    if isinstance(error, MemoryError) or (type(error) is SystemError and out["message"].endswith(_WITHOUT_ERROR)):
        out |= {"code": "memory-limit", "message": NO_MEMORY}
    if type(error) is KeyError:
        out |= known_keys(error)
    if isinstance(error, CrossingError):
        out["code"] = "bad-value"
    if isinstance(error, ToolError):
        for name in ("code", "tool", "hint"):
            value = getattr(error, name, None)
            if type(value) is str:
                out[name] = value[:1000]
        if type(status := getattr(error, "status", None)) is int:
            out["status"] = status
        out |= _data(getattr(error, "data", None), encode)
    cause = _cause(error)
    if cause is not None and depth < MAX_CAUSES:
        below = out["cause"] = describe(cause, encode, depth + 1)
        if "line" not in out:  # such as the error for a StopIteration, which is created outside the program's frames
            out |= {name: below[name] for name in ("line", "column") if name in below}
    return out


def describe_shortly(error: BaseException) -> dict[str, Any]:
    """Return a short description, for an exception whose own methods fail."""
    return {"type": name_of(type(error))[:200], "message": "an error that can't be described"}


def _text(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return NO_EXIT
    if not isinstance(error, BaseExceptionGroup):
        return message_of(error)
    shown = [f"{name_of(type(item))}: {message_of(item)}" for item in error.exceptions[:MAX_SHOWN_ERRORS]]
    more = len(error.exceptions) - len(shown)
    return f"{message_of(error)}: {'; '.join(shown)}{f'; and {more} more' if more else ''}"[:MAX_MESSAGE_CHARS]


def _cause(error: BaseException) -> BaseException | None:
    cause = cause_of(error)
    if cause is not None:
        return cause
    if isinstance(error, BaseExceptionGroup):
        return error.exceptions[0]
    return None if suppressed(error) else context_of(error)


def _data(value: Any, encode: Callable[[Any, str], str]) -> dict[str, Any]:
    try:
        return {"data": value} if value is not None and len(encode(value, "data")) < MAX_MESSAGE_CHARS else {}
    except TypeError:
        return {}


def describe_load(error: BaseException) -> dict[str, Any]:
    """Return the description of a program that does not compile."""
    out: dict[str, Any] = {"type": "SyntaxError", "load": True, "message": "the program is nested too deeply"}
    if isinstance(error, SyntaxError):
        out["message"] = message_of(error.msg)
        if error.lineno:
            out |= {"line": error.lineno, "column": _column_of_syntax(error)}
    elif not isinstance(error, (RecursionError, MemoryError)):
        out["message"] = message_of(error)
    return out


def _column_of_syntax(error: SyntaxError) -> int:
    if isinstance(error, IndentationError):  # the compiler's column counts tabs, or is missing
        text = linecache.getline(PROGRAM, error.lineno or 1)
        return len(text) - len(text.lstrip()) + 1
    return max(error.offset or 1, 1)


# Tracebacks that the program prints itself.


def show_only_the_program() -> None:
    """Make tracebacks show only the program's own frames, without those of the guest and the library."""
    extract = traceback.StackSummary._extract_from_extended_frame_gen.__func__

    def own(frames: Iterator[Any]) -> Iterator[Any]:
        return (item for item in frames if item[0].f_code.co_filename == PROGRAM)

    def extract_own(cls: Any, frames: Iterator[Any], **options: Any) -> Any:
        return extract(cls, own(frames), **options)

    def show(kind: Any, error: BaseException, trace: Any) -> None:
        traceback.print_exception(error)

    traceback.StackSummary._extract_from_extended_frame_gen = classmethod(extract_own)
    sys.excepthook = sys.__excepthook__ = show
