"""The table of error codes that all surfaces share: exit code, HTTP status, cause and fix of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


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


HINTED_FOR_PROGRAMS = frozenset({"unknown-tool", "bad-arguments"})
"""Gloveport's hints for these name functions that only a program has: `tools.describe(…)`."""

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
        1,
        422,
        "The program uses a feature that the engine does not have.",
        "Do without it.",
        "run it in an engine that has it: engine=…",
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
        6,
        200,
        "The result is larger than max_result_bytes.",
        "Return a summary.",
        "raise max_result_bytes, and max_frame_bytes if that is smaller",
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
    "path-taken": Code(
        1, 409, "A folder of a session has the path, or a file lies above it.", "Choose another path, or remove that first."
    ),
    "workspace-refused": Code(
        1,
        422,
        "A file of a session has a name or a kind that is not kept.",
        "Use plain files with printable names; the workspace is as it was before the run.",
    ),
    "package-failed": Code(
        7, 502, "A package can't be resolved, fetched or kept.", "Ask the user to add the package, or to choose another."
    ),
    "package-changed": Code(
        3,
        409,
        "A package is not the one that was approved: its hash, or the packages of a run, are others.",
        "Ask the user to verify the packages, or to choose another version.",
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
    "out-of-date": Code(2, 409, "What a request agrees to is not what is there now.", "Look at it again, then agree."),
    "run-ended": Code(2, 409, "The run has ended already.", "Look at its outcome."),
    "run-unfinished": Code(2, 409, "The run has not ended yet.", "Wait until it has, or cancel it."),
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
    "not-savable": Code(
        2,
        409,
        "A run can't be saved as a snippet: it has not completed, was imported, has no object as input, or lacks a tool.",
        "Save one that completed here, with the tools of now.",
    ),
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
