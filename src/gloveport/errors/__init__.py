"""The tree of errors; `codes` has the table of their codes.

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
    ├── PackageError             a package can't be resolved, fetched, approved or kept
    ├── CallLimit                the program made more calls than max_calls               (becomes Outcome.error)
    └── ToolError                a tool call failed: code, origin, tool, status, data …   (the guest can catch it)

`CODES` gives each code its exit code, HTTP status, cause and fix. `gloveport help CODE` prints one row. A tool may give its
errors any code, also one of these. `origin` says whose code it is, and only Gloveport's own mean what the table says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gloveport.errors.codes import CODES

Origin = Literal["gloveport", "tool"]
"""Who reports an error of a call: Gloveport, which checks and makes calls, or the tool (function, service or server)."""

EXIT_TOOL_FAILED, HTTP_TOOL_FAILED = 7, 502


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
    """The program can't be run as written; `line`, `column` (1-based) and `frame` show the place in the agent's text.

    `package` is a package that the program needs and that a person could approve, such as `npm:zod`.
    """

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
        package: str | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.line = line
        self.column = column
        self.frame = frame
        self.tool = tool
        self.package = package


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


class PackageError(GloveportError):
    """A package can't be resolved, fetched, approved or kept; the message names it."""

    code = "package-failed"


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
