"""The tree of errors, and the table of error codes that all surfaces share.

    GloveportError               code, message, hint, data
    ├── OptionError              an option, limit or setting is not valid                 (raised to the caller)
    ├── ProgramError             the program can't be run as written; shows the place     (becomes Outcome.error)
    ├── SandboxError             the sandbox is not available, or it broke                (raised, or Outcome.error)
    ├── WireError                bytes from a guest violate the protocol or its limits    (becomes Outcome.error)
    ├── ValueCrossingError       a value can't be copied into or out of the sandbox; names its path
    ├── SourceError              a source's definition can't be loaded; other sources work
    ├── TooComplexError          hostile text took a jailed task more time or memory than it may have
    ├── ApprovalError            nobody answered in time, or an answer is refused
    ├── StoreError               the store can't be opened, read or written
    ├── SealError                stored credentials can't be opened: another key, or they were changed
    ├── WorkspaceError           the files or the state of a session can't be kept        (raised, or Outcome.error)
    ├── CallLimit                the program made more calls than max_calls               (becomes Outcome.error)
    └── ToolError                a tool call failed: code, origin, tool, status, data …   (the guest can catch it)

`CODES` gives each code its exit code, HTTP status, cause and fix. `gloveport help CODE` prints one row. A tool may give its
errors any code, also one of these. `origin` says whose code it is, and only Gloveport's own mean what the table says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Origin = Literal["gloveport", "tool"]
"""Who reports an error of a call: Gloveport, which checks and makes calls, or the tool (function, service or server)."""

EXIT_TOOL_FAILED, HTTP_TOOL_FAILED = 7, 502


class Code(NamedTuple):
    """One error code: the process exit code, the HTTP status, a sentence on the cause and one on the fix.

    `fix` is for the author of the program. `setting` is for the person who runs it: what they could change instead.
    """

    exit: int
    http: int
    cause: str
    fix: str
    setting: str = ""

    @property
    def advice(self) -> str:
        """The fix and the setting in one sentence."""
        return f"{self.fix.removesuffix('.')}, or {self.setting}." if self.setting else self.fix


CODES: Mapping[str, Code] = {
    # the text of the program
    "syntax-error": Code(1, 422, "The program is not valid in its language.", "Correct the marked place."),
    "code-too-large": Code(
        6, 413, "The program's text is longer than max_code_bytes.", "Pass large data as input, not as code."
    ),
    "program-too-complex": Code(
        6,
        422,
        "Reading the program takes more CPU time or memory than a program may need.",
        "Split the program, and pass large data as input.",
    ),
    "unknown-tool": Code(
        1, 422, "The program calls a tool that is not in its catalog.", "Use tools.search to find the right name."
    ),
    "bad-arguments": Code(
        1, 422, "The arguments of a call don't match the tool's schema.", "Use tools.describe to see the parameters."
    ),
    "type-error": Code(
        1, 422, "A call passes a value of a type that the tool does not take.", "Use tools.describe to see the types."
    ),
    "import-refused": Code(
        1, 422, "The program imports a module that it may not use.", "Use the built-ins of the language, and the tools."
    ),
    "engine-lacks": Code(
        1, 422, "The program uses a feature that the engine does not have.", "Name an engine that has it, or do without."
    ),
    # the run of the program
    "program-failed": Code(1, 200, "The program threw an error that it did not catch.", "Correct the marked line."),
    "never-settles": Code(
        1, 200, "The program waits for something that can never happen.", "Look for a promise that nothing resolves."
    ),
    "bad-value": Code(
        1, 200, "A value that is not plain data can't leave or enter the sandbox.", "Return and pass plain data."
    ),
    "tool-failed": Code(
        7, 200, "A tool call failed and the program did not catch the error.", "Catch the error, or correct the call."
    ),
    "tool-busy": Code(
        7, 200, "Too many functions still run for runs that have ended.", "Try again later; give such functions a timeout."
    ),
    "egress-denied": Code(
        3,
        200,
        "A request goes to an address that it may not reach, or is not one plain request.",
        "Call a tool instead.",
        "give a source or an [[egress]] rule that may reach private addresses allow_private = true",
    ),
    "source-failed": Code(
        7,
        502,
        "A source's definition can't be loaded or used.",
        "Ask the user to correct what the message names; other sources work.",
    ),
    "definition-too-complex": Code(
        7,
        502,
        "Reading a source's definition takes more CPU time or memory than a definition may need.",
        "Use a part of the definition, or get it again from where it came from.",
    ),
    "source-unreachable": Code(
        7,
        502,
        "The service behind a tool can't be reached.",
        "Try again later, or ask the user to check its address and whether it is running.",
    ),
    "source-timeout": Code(
        7, 504, "The service behind a tool did not answer in time.", "Try again later.", "raise timeout_seconds"
    ),
    "reply-too-large": Code(
        7, 502, "A service's reply is larger than max_response_bytes.", "Ask for less.", "raise max_response_bytes"
    ),
    "http-error": Code(
        7, 502, "The service answered a call with an error status.", "Look at the status and data of the error."
    ),
    "graphql-error": Code(
        7,
        502,
        "The service answered a GraphQL call with errors.",
        "Look at the data of the error: the errors, and any partial result.",
    ),
    "auth-required": Code(
        4,
        401,
        "A call needs a credential that is not there, or an account whose sign-in has ended.",
        "Ask the user to add the credential or to sign in.",
        "run the command that the setting names",
    ),
    "credential-missing": Code(
        4, 401, "What earlier releases called `auth-required`; nothing reports it any more.", "Look for `auth-required`."
    ),
    "seal-broken": Code(
        4,
        503,
        "The stored credentials can't be opened: the key is another one, they were changed, or others can read them.",
        "Ask the user to look at the stored credentials.",
        "bring back the key, or remove the credential with `gloveport auth remove` and add it again",
    ),
    "tool-suspended": Code(
        3,
        409,
        "The tool's definition has changed since it was accepted.",
        "Ask the user to look at the change.",
        "look at it with `gloveport tools changes` and accept it",
    ),
    "denied": Code(
        3,
        200,
        "The policy does not allow this call.",
        "Ask the user whether it may be made.",
        "change the rule that denies it",
    ),
    "cancelled": Code(130, 200, "The run was cancelled.", "Start it again if you did not mean to cancel it."),
    # limits
    "time-limit": Code(
        6,
        200,
        "The run took longer than wall_seconds.",
        "Do less in one run; look for a loop that never ends.",
        "raise wall_seconds",
    ),
    "cpu-limit": Code(
        6,
        200,
        "The program used more CPU time than cpu_seconds.",
        "Look for a loop that never ends.",
        "raise cpu_seconds",
    ),
    "memory-limit": Code(
        6, 200, "The program needed more memory than memory_mb.", "Work on smaller pieces.", "raise memory_mb"
    ),
    "call-limit": Code(6, 200, "The program made more calls than max_calls.", "Fetch more per call.", "raise max_calls"),
    "result-too-large": Code(
        6, 200, "The result is larger than max_result_bytes.", "Return a summary.", "raise max_result_bytes"
    ),
    "frame-too-large": Code(
        6,
        200,
        "One message is larger than max_frame_bytes.",
        "Pass less data in one call or reply.",
        "raise max_frame_bytes",
    ),
    "workspace-full": Code(
        6,
        200,
        "The files or the state of a session need more than its quota: bytes, files, or depth of folders.",
        "Remove files that are not needed; the workspace is as it was before the run.",
    ),
    "workspace-refused": Code(
        1,
        422,
        "A file of a session has a name or a kind that is not kept.",
        "Use plain files with printable names; the workspace is as it was before the run.",
    ),
    "session-busy": Code(
        6, 409, "Another run uses the session, and this one was not to wait.", "Try again later, or wait for the session."
    ),
    # the sandbox
    "sandbox-crashed": Code(
        1, 200, "The process that ran the program died.", "Run it again; if it happens again, report the program."
    ),
    "sandbox-unavailable": Code(
        8,
        503,
        "No sandbox of the required strength is available on this machine.",
        "Run `gloveport doctor` to see what is missing.",
    ),
    "sandbox-unreachable": Code(
        8,
        503,
        "The sandbox host gave no sandbox: it can't be reached, refuses the token, or answers wrongly.",
        "Try again later, or ask the user to check the sandbox host.",
        "check url and token in [sandbox.remote]",
    ),
    "sandbox-lost": Code(
        1,
        200,
        "The connection to the sandbox host broke in the middle of the run.",
        "Look at the calls that were made before you run it again: nobody knows how far the program got.",
    ),
    "check-failed": Code(
        1, 503, "A check of `gloveport doctor` failed.", "Apply the fix beside it, then run `gloveport doctor` again."
    ),
    "wire-violation": Code(
        1, 200, "The guest sent bytes that violate the protocol.", "The run was ended; other runs are not affected."
    ),
    "internal-error": Code(1, 500, "Gloveport has a defect.", "Report it with the reference; the log has the details."),
    # the caller
    "bad-option": Code(2, 400, "An option, limit or setting is not valid.", "Correct the value that the message names."),
    "unauthorized": Code(
        4, 401, "The request has no token, or a wrong one.", "Send `Authorization: Bearer` with the server's token."
    ),
    "wrong-origin": Code(
        3, 403, "The request names a host or an origin that is not this server's.", "Use the server's own address."
    ),
    "forbidden": Code(3, 403, "The token has not the role that this takes.", "Use the token of a role that may do it."),
    "wrong-method": Code(2, 405, "The address does not take this method.", "Use one of those that the message names."),
    "token-exists": Code(2, 409, "The name has a token of this role already.", "Remove it first, or choose another name."),
    "snippet-exists": Code(2, 409, "A snippet has this name already.", "Remove it first, or choose another name."),
    "run-ended": Code(2, 409, "The run has ended already.", "Look at its outcome."),
    "bad-request": Code(2, 400, "The request does not follow the protocol.", "Correct what the message names."),
    "not-json": Code(2, 415, "The request does not declare its body as JSON.", "Send `Content-Type: application/json`."),
    "request-too-large": Code(6, 413, "The request's body is larger than the server accepts.", "Send less at once."),
    "not-found": Code(
        2, 404, "There is nothing at this address.", "MCP is at /mcp, the API at /v1; /v1/openapi.json describes it."
    ),
    "busy": Code(6, 429, "The server runs as many programs as it may, and its queue is full.", "Try again a little later."),
    "stopping": Code(6, 503, "The server is stopping.", "Try again when it is back."),
    "approval-refused": Code(
        5,
        409,
        "An answer to a request for approval is refused: it waits no more, or the answer is for another call.",
        "List what waits, and answer that.",
    ),
    "approval-pending": Code(
        5,
        409,
        "Calls need a person's approval, and nobody can answer here.",
        "Run it in a terminal and answer, or allow the calls with `gloveport policy set`.",
    ),
    "audit-broken": Code(
        1,
        500,
        "The audit log is not as it was recorded: events were changed, removed, moved or cut off.",
        "Keep the file, compare it with a backup, and find out who could write to it.",
    ),
    "store-unavailable": Code(
        1,
        503,
        "The store can't be opened, read or written, so nothing that must be recorded can happen.",
        "Free its disk or end the program that locks it; reads go on.",
    ),
    "snippet-refused": Code(
        1,
        200,
        "A snippet can't be run: a tool that it needs is missing, or snippets call each other too deep.",
        "Call the tools that it needs yourself, or ask the user to add what is missing.",
    ),
    "outcome-unknown": Code(
        1,
        200,
        "A write has left a host that ended before it got the answer: nobody knows whether it was made.",
        "Look whether it happened before you make it again.",
    ),
    "replay-diverged": Code(
        1,
        409,
        "A run can't be resumed, because its program does something else than before. The run stays as it was.",
        "Compare the versions of Gloveport and of its engine, or run the program again.",
    ),
    "run-taken-over": Code(
        1, 409, "Another process has taken over this run, and goes on with it.", "Ask for its outcome with resume."
    ),
    "not-resumable": Code(1, 409, "A run can't be resumed: not all of it was recorded.", "Run the program again."),
    "store-key": Code(
        4,
        503,
        "The key of an encrypted store is missing, or is not the right one.",
        "Put the key back into its place, or set GLOVEPORT_STORE_KEY to it.",
    ),
    "bad-run-file": Code(
        2, 400, "A file is no run that Gloveport has exported.", "Export the run again with `gloveport runs export`."
    ),
    "caller-gone": Code(
        1,
        200,
        "The caller that brought a tool has gone away, or the run goes on without it.",
        "Run the program again from a caller that stays connected.",
    ),
    "run-id-taken": Code(
        2, 409, "Another run in the store has this id.", "Choose another id; `gloveport runs` lists those that are taken."
    ),
    "run-too-large-to-resume": Code(
        1,
        409,
        "A run exchanged more than can be recorded, so it can't be resumed after its process has ended.",
        "Fetch less at a time, or keep the process until the run has ended.",
    ),
    "closed": Code(2, 409, "This Gloveport is closed.", "Create a new one, or use it inside `async with`."),
}


class GloveportError(Exception):
    """An error with a stable `code`, a `message` for people, a `hint` that says what to do next, and `data`."""

    code: str = "internal-error"

    def __init__(
        self, message: str, *, code: str | None = None, hint: str | None = None, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.hint = hint
        self.data: Any = dict(data) if data else None
        if hint:
            self.add_note(f"hint: {hint}")

    @property
    def advice(self) -> str | None:
        """What a person can do about it."""
        return self.hint


class OptionError(GloveportError):
    """An option, limit or setting is not valid."""

    code = "bad-option"


class ProgramError(GloveportError):
    """The program can't be run as written; `line`, `column` (1-based) and `frame` show the place in the agent's text."""

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
    """The sandbox is not available on this machine, or it broke."""

    code = "sandbox-unavailable"


class WireError(GloveportError):
    """Bytes from a guest violate the protocol or its limits."""

    code = "wire-violation"


class ValueCrossingError(GloveportError):
    """A value can't be copied into or out of the sandbox; the message names its path."""

    code = "bad-value"


class SourceError(GloveportError):
    """A source's definition can't be loaded; the message names the source and the place in the definition."""

    code = "source-failed"


class TooComplexError(GloveportError):
    """Hostile text took a jailed task more CPU time or memory than it may have; the task was killed."""

    code = "program-too-complex"


class ApprovalError(GloveportError):
    """A request for approval was not answered in time, or an answer to one is refused."""

    code = "approval-refused"


class StoreError(GloveportError):
    """The store can't be opened, read or written."""

    code = "store-unavailable"


class SealError(GloveportError):
    """Sealed data can't be opened: the key is another one or missing, the data was changed, or others can read it."""

    code = "seal-broken"


class WorkspaceError(GloveportError):
    """The files or the state of a session can't be kept: over a quota, or not plain."""

    code = "workspace-full"


class CallLimit(GloveportError):
    """The program made more calls than max_calls. This ends the run, and the guest can't catch it."""

    code = "call-limit"


class ToolError(GloveportError):
    """A tool call failed. The guest sees these fields except `setting`, which is for the person who runs the program.

    `origin` is `"tool"` for an error that the tool itself reported, whatever a function has set: the bridge decides it.
    `setting` is what the person who runs the program could change.
    """

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
        origin: Origin = "gloveport",
        setting: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.tool = tool
        self.status = status
        self.data = data
        self.retryable = retryable
        self.origin: Origin = origin
        self.setting = setting

    @property
    def advice(self) -> str | None:
        """What a person can do: change the setting, or else follow the hint."""
        return self.setting or self.hint


def exit_code(code: str, origin: Origin = "gloveport") -> int:
    """Return the process exit code for an error code: 7 for every code that a tool gave."""
    row = CODES.get(code)
    return EXIT_TOOL_FAILED if origin == "tool" else row.exit if row else 1


def http_status(code: str, origin: Origin = "gloveport") -> int:
    """Return the HTTP status for an error code: 502 for every code that a tool gave."""
    row = CODES.get(code)
    return HTTP_TOOL_FAILED if origin == "tool" else row.http if row else 500


def label(code: str, origin: Origin) -> str:
    """Return the code as people and models see it: a code that a tool gave never looks like one of ours."""
    return code if origin == "gloveport" or code in _CODES_FOR_TOOLS else f"tool error {code}"


# The codes by which Gloveport reports what a tool, a service or a server answered.
_CODES_FOR_TOOLS = frozenset({"tool-failed", "http-error", "graphql-error"})
