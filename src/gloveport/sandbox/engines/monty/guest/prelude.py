# ruff: noqa: F821  the host answers for names that are not defined here
# This runs in Monty before the program. It defines the globals that can be written in Monty's language.
# Monty has no subclasses of exceptions. A failed call is raised as `binascii.Incomplete`, which nothing else raises, with a
# key after its message. `subset.py` rewrites `except ToolError as e` and `raise e` to call the functions below.
import asyncio as _gloveport_asyncio
from binascii import Incomplete as _gloveport_failed

state = {}


class ToolError:
    def __init__(
        self, message="", code="tool-failed", origin=None, tool=None, status=None, data=None, retryable=False, hint=None
    ):
        self.message = message
        self.code = code
        self.origin = origin
        self.tool = tool
        self.status = status
        self.data = data
        self.retryable = retryable
        self.hint = hint
        self.args = (message,)

    def __str__(self):
        return self.message

    def __repr__(self):
        return "ToolError(" + repr(self.message) + ")"


def _gloveport_caught(error):
    if not isinstance(error, _gloveport_failed):
        return error
    return ToolError(**_gloveport_fields(str(error)))


def _gloveport_raised(error):
    if error is ToolError:
        error = ToolError()
    if not isinstance(error, ToolError):
        return error
    fields = {
        "message": str(error.message),
        "code": error.code,
        "origin": error.origin,
        "tool": error.tool,
        "status": error.status,
        "data": error.data,
        "retryable": error.retryable,
        "hint": error.hint,
    }
    return _gloveport_failed(_gloveport_keep(fields))


def _gloveport_message(error):
    return error.args[:1] or ("",)


def _gloveport_caused(error, cause):
    error = _gloveport_raised(error() if type(error).__name__ == "type" else error)
    cause = _gloveport_raised(cause)
    _gloveport_cause(type(error).__name__, *_gloveport_message(error), type(cause).__name__, *_gloveport_message(cause))
    return error


def _gloveport_isinstance(value, kind):
    kinds = kind if type(kind) is tuple else (kind,)
    return isinstance(value, kind) or (type(value) is ToolError and (Exception in kinds or BaseException in kinds))


async def _gloveport_tried(awaitable):
    try:
        return await awaitable
    except Exception as error:
        return _gloveport_caught(error)


def _gloveport_gather(*awaitables, return_exceptions=False):
    if return_exceptions:
        awaitables = [_gloveport_tried(each) for each in awaitables]
    return _gloveport_asyncio.gather(*awaitables)


async def _gloveport_settled(value):
    return (await value) if type(value).__name__ == "coroutine" else value


async def step(name, fn, *args):
    return await _gloveport_settled(fn(*args))


def _gloveport_rehearse():
    # Run common code once in advance: the first time takes longest.
    rows = [{"n": n, "kind": ["a", "b"][n % 2]} for n in range(20)]
    groups = {}
    for row in rows:
        group = groups.setdefault(row["kind"], {"count": 0, "best": None})
        group["count"] += 1
        if group["best"] is None or row["n"] > group["best"]["n"]:
            group["best"] = row
    ranked = sorted([{**group, "half": group["count"] / 2} for group in groups.values()], key=lambda group: -group["half"])
    lines = [f"{group['half']:>8.2f} {group['best']['kind']:6}" for group in ranked]
    return len(" ".join([word for line in lines for word in line.split()]))


_gloveport_rehearse()
