# ruff: noqa: F821  the names that are not defined here are answered by the host
# Runs in Monty, before the program: what the program finds without an import, as far as Monty's language can say it.
# Monty has no subclasses of exceptions. A failed call is raised as `binascii.Incomplete`, which nothing else there raises,
# with a key behind its message; `prepare` leads `except ToolError as e` and `raise e` through the functions below.
from binascii import Incomplete as _gloveport_failed

state = {}


class ToolError:
    def __init__(self, message="", code="tool-failed", tool=None, status=None, data=None, retryable=False, hint=None):
        self.message = message
        self.code = code
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
        "tool": error.tool,
        "status": error.status,
        "data": error.data,
        "retryable": error.retryable,
        "hint": error.hint,
    }
    return _gloveport_failed(_gloveport_keep(fields))


async def _gloveport_settled(value):
    return (await value) if type(value).__name__ == "coroutine" else value


async def step(name, fn, *args):
    return await _gloveport_settled(fn(*args))
