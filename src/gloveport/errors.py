"""The whole error tree, and what each code means to every surface.

    GloveportError               code, message, hint, data
    ├── OptionError              an option, a limit or a setting makes no sense          (raised to the caller)
    ├── ProgramError             the program can't be run as written: it has a diagnostic (becomes Outcome.error)
    ├── SandboxError             the sandbox can't be had, or broke                       (raised, or Outcome.error)
    ├── WireError                bytes from a guest broke the protocol or its budget      (becomes Outcome.error)
    ├── ValueCrossingError       a value can't be copied across the border; names its path
    ├── SourceError              a source's definition can't be loaded; the others work
    ├── CallLimit                the program called more often than it may; ends the run  (becomes Outcome.error)
    └── ToolError                a tool call failed: code, tool, status, data, retryable  (the guest can catch it)

`CODES` is the one table of codes: exit code, HTTP status, what happened, what to do. `gloveport help CODE` prints a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


class Code(NamedTuple):
    """What a code means: process exit code, HTTP status, a sentence on the cause and one on the way out."""

    exit: int
    http: int
    cause: str
    fix: str


CODES: Mapping[str, Code] = {
    # the program as text
    "syntax-error": Code(1, 422, "The program is not valid in its language.", "Correct the marked place."),
    "code-too-large": Code(
        6, 413, "The program's text is longer than max_code_bytes.", "Pass large data as input, not as code."
    ),
    "unknown-tool": Code(
        1, 422, "The program calls a tool that is not in its catalog.", "Use tools.search to find the right name."
    ),
    "bad-arguments": Code(
        1, 422, "A call's arguments don't fit the tool's schema.", "Use tools.describe to see the parameters."
    ),
    "type-error": Code(
        1, 422, "A call is given a value of a type that its tool does not take.", "Pass what tools.describe asks for."
    ),
    "import-refused": Code(
        1, 422, "The program imports something that is not approved.", "Use what the platform and the tools offer."
    ),
    "engine-lacks": Code(
        1, 422, "The engine does not have something that the program uses.", "Name an engine that has it, or do without."
    ),
    # the program as it ran
    "program-failed": Code(1, 200, "The program threw an error that it did not catch.", "Correct the marked line."),
    "never-settles": Code(
        1, 200, "The program waits for something that can never happen.", "Look for a promise that nothing resolves."
    ),
    "bad-value": Code(1, 200, "A value that is not plain data tried to cross the border.", "Return or pass plain data."),
    "tool-failed": Code(
        7, 200, "A tool call failed and the program did not catch it.", "Catch the error, or correct what was asked for."
    ),
    "tool-busy": Code(
        7, 200, "Too many functions still run for runs that have ended.", "Try again later; give such functions a timeout."
    ),
    "egress-denied": Code(
        3,
        200,
        "A request would go where it may not, or be more than one plain request.",
        "Call a tool instead of fetch; if a source may reach a private address, give it allow_private = true.",
    ),
    "source-failed": Code(
        7, 502, "A source's definition can't be loaded or used.", "Correct what the message names; other sources work."
    ),
    "source-unreachable": Code(
        7, 502, "The service behind a tool can't be reached.", "Check its address and that it runs."
    ),
    "source-timeout": Code(
        7, 504, "The service behind a tool did not answer in time.", "Try again, or raise timeout_seconds."
    ),
    "reply-too-large": Code(
        7, 502, "A service's reply is larger than max_response_bytes.", "Ask for less, or raise max_response_bytes."
    ),
    "http-error": Code(7, 502, "The service answered a call with an error status.", "Look at the error's status and data."),
    "graphql-error": Code(
        7,
        502,
        "The service answered a GraphQL call with errors.",
        "Look at the error's data: its errors, and what came.",
    ),
    "credential-missing": Code(
        4, 401, "A call needs a credential that nobody gave.", "Set the environment variable that the message names."
    ),
    "tool-suspended": Code(
        3, 409, "The tool's definition has changed since it was accepted.", "Look at the change and accept it."
    ),
    "denied": Code(3, 200, "The policy does not let the program make this call.", "Change the rule that it names."),
    "cancelled": Code(130, 200, "The run was cancelled.", "Start it again if that was not meant."),
    # limits
    "time-limit": Code(
        6, 200, "The run took longer than wall_seconds.", "Do less in one run, or raise wall_seconds (--timeout)."
    ),
    "cpu-limit": Code(
        6,
        200,
        "The program computed longer than cpu_seconds.",
        "Look for a loop that never ends, or raise cpu_seconds (--cpu).",
    ),
    "memory-limit": Code(
        6, 200, "The program needed more memory than memory_mb.", "Work on smaller pieces, or raise memory_mb (--memory)."
    ),
    "call-limit": Code(6, 200, "The program made more calls than max_calls.", "Fetch more per call, or raise max_calls."),
    "result-too-large": Code(
        6, 200, "The result is larger than max_result_bytes.", "Return a summary, or raise max_result_bytes."
    ),
    "frame-too-large": Code(
        6,
        200,
        "One message is larger than max_frame_bytes.",
        "Pass less data in one call or reply, or raise max_frame_bytes.",
    ),
    # the sandbox
    "sandbox-crashed": Code(
        1, 200, "The process that ran the program died.", "Run it again; if it repeats, report the program."
    ),
    "sandbox-unavailable": Code(
        8,
        503,
        "No sandbox of the required strength can be made here.",
        "Run `gloveport doctor` to see what is missing.",
    ),
    "check-failed": Code(
        1, 503, "A check of `gloveport doctor` failed.", "Apply the fix beside it, then run `gloveport doctor` again."
    ),
    "wire-violation": Code(
        1, 200, "The guest sent something that is not the protocol.", "The run was ended; nothing else is affected."
    ),
    "internal-error": Code(
        1, 500, "Gloveport itself made a mistake.", "Report it with the reference; the log has the details."
    ),
    # the caller
    "bad-option": Code(2, 400, "An option, a limit or a setting makes no sense.", "Correct the named value."),
    "unauthorized": Code(
        4, 401, "The request carries no token, or a wrong one.", "Send `Authorization: Bearer` with the server's token."
    ),
    "wrong-origin": Code(
        3, 403, "The request names a host or an origin that is not this server's.", "Use the server's own address."
    ),
    "bad-request": Code(2, 400, "The request is not what the protocol asks for.", "Correct what the message names."),
    "not-json": Code(2, 415, "The request's body is not announced as JSON.", "Send `Content-Type: application/json`."),
    "request-too-large": Code(6, 413, "The request's body is larger than the server takes.", "Send less at once."),
    "not-found": Code(2, 404, "There is nothing at this address.", "MCP is at /mcp."),
    "busy": Code(6, 429, "So many runs are waiting that no other is taken.", "Try again a little later."),
    "stopping": Code(6, 503, "The server is about to stop.", "Try again when it is back."),
    "closed": Code(2, 409, "This Gloveport is closed.", "Make a new one, or use it inside `async with`."),
}


class GloveportError(Exception):
    """An error with a stable `code`, a `message` for people, a `hint` on what to do next, and `data`."""

    code: str = "internal-error"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.hint = hint
        self.data: dict[str, Any] = dict(data or {})
        if hint:
            self.add_note(f"hint: {hint}")


class OptionError(GloveportError):
    """An option, a limit or a setting makes no sense."""

    code = "bad-option"


class ProgramError(GloveportError):
    """The program can't be run as written; `line`, `column` (1-based) and `frame` show where in the agent's text."""

    code = "syntax-error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        hint: str | None = None,
        line: int | None = None,
        column: int | None = None,
        frame: str | None = None,
        tool: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.line = line
        self.column = column
        self.frame = frame
        self.tool = tool


class SandboxError(GloveportError):
    """The sandbox can't be had here, or broke."""

    code = "sandbox-unavailable"


class WireError(GloveportError):
    """Bytes that came from a guest broke the protocol or its budget."""

    code = "wire-violation"


class ValueCrossingError(GloveportError):
    """A value can't be copied across the border; the message names its path."""

    code = "bad-value"


class SourceError(GloveportError):
    """A source's definition can't be loaded; the message names the source and the place in the definition."""

    code = "source-failed"


class CallLimit(GloveportError):
    """The program called more often than max_calls; it ends the run and the guest can't catch it."""

    code = "call-limit"


class ToolError(GloveportError):
    """A tool call failed; the guest sees these fields and nothing else."""

    code = "tool-failed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        tool: str | None = None,
        status: int | None = None,
        data: Any = None,
        retryable: bool = False,
        hint: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.tool = tool
        self.status = status
        self.data = data
        self.retryable = retryable


def exit_code(code: str) -> int:
    """The process exit code for an error code; 1 for codes that tools made up."""
    row = CODES.get(code)
    return row.exit if row else 1
