"""The values that cross borders between folders: frozen and typed, with no behaviour of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from gloveport.errors import Origin, label
from gloveport.importable import Importable, ImportForm, ImportKind, ModuleImport  # noqa: F401 - likewise
from gloveport.limits import KIB, MIB, MIN_LIMITS, Limits  # noqa: F401 - most modules know them from here
from gloveport.outcome_html import outcome_html, printable

Language = Literal["typescript", "javascript", "python"]
Status = Literal["completed", "failed", "waiting", "cancelled"]
RunStatus = Literal["running", "waiting", "completed", "failed", "cancelled"]
"""The status of a run in the store."""
RunMode = Literal["run", "plan"]
Strength = Literal["full", "kernel", "none"]

DEFAULT_AGENT = "default"
FETCH_KIND = "fetch"
CALLER_KIND = "caller"
"""The kind of the built-in tools that `fetch` calls."""
FETCH_TOOLS = ("egress.read", "egress.write")
"""Their addresses: for requests that only read, and for all others."""
LANGUAGES: tuple[Language, ...] = ("typescript", "javascript", "python")

# Error types that add nothing to the error code, and are not shown.
GENERIC_TYPES = frozenset({"Error", "ToolError", "ProgramError", "SandboxError", "SyntaxError", "InternalError", "string"})
MAX_SHOWN_CAUSES = 8
MAX_SHOWN_CHARS = 2000  # of a value, in the text of an outcome

MAX_PARAMETER_TEXT_CHARS = 1500


@dataclass(frozen=True, slots=True)
class Problem:
    """A source that could not be opened, or a warning about one. `opening` means that it may still open.

    `hint` is for the person who runs Gloveport: a program or an agent can't change a source. `code` is that of calls of
    its tools: `auth-required` for a source that needs a credential or a sign-in.
    """

    source: str
    message: str
    hint: str | None = None
    broken: bool = True
    opening: bool = False
    code: Literal["source-failed", "auth-required"] = "source-failed"

    @property
    def agent_hint(self) -> str:
        """What an agent can do about it."""
        if self.code == "auth-required":
            return "ask the user to add the credential or to sign in; other sources work"
        return self.hint if self.opening and self.hint else "ask the user to look at this source; the others work"

    def refusal(self, tool: str) -> str:
        """Return why a tool of this source can't be called."""
        named = "" if self.message.startswith(f"the source {self.source} ") else f"the source {self.source} is not open: "
        return f"`{tool}` can't be called: {named}{self.message[:1000]}"


@dataclass(frozen=True, slots=True)
class Failure:
    """The error that ended a run, as data. `line` and `column` are 1-based places in the text that the agent wrote.

    `status` is the HTTP status of a service, when its reply was the failure. `origin` is `"tool"` when the tool reported
    the error: its code is then the tool's own, not a decision of Gloveport. `hint` is for the author of the program, and
    `setting` for the person who runs it: what they could change.
    """

    code: str
    type: str
    message: str
    line: int | None = None
    column: int | None = None
    frame: str | None = None
    tool: str | None = None
    hint: str | None = None
    cause: Failure | None = None
    data: Any = None
    status: int | None = None
    origin: Origin = "gloveport"
    setting: str | None = None

    @property
    def summary(self) -> str:
        """What failed, in one line: the tool, the type of the error where that says something, and the message."""
        tool = f"tools.{self.tool.removeprefix('local.')}" if self.tool else ""
        at_root = f"`tools.{(self.tool or '').partition('.')[2]}`"  # how a program may have spelled it
        is_named = tool in self.message or at_root in self.message
        named = "" if self.type in GENERIC_TYPES else self.type
        return ": ".join(part for part in ("" if is_named else tool, named, self.message) if part)

    def __str__(self) -> str:
        lines = [f"{label(self.code, self.origin)}: {self.summary}"]
        lines += [f"line {self.line}, column {self.column}"] if self.line is not None else []
        lines += [self.frame] if self.frame else []
        lines += [f"hint: {self.hint}"] if self.hint else []
        lines += [f"setting: {self.setting}"] if self.setting else []
        cause, left = self.cause, MAX_SHOWN_CAUSES
        while cause is not None and left:
            lines.append(f"caused by: {cause.summary}")
            cause, left = cause.cause, left - 1
        return printable("\n".join(lines))


@dataclass(frozen=True, slots=True)
class ErrorValue:
    """An error that crossed the sandbox border as data: its name, message, cause chain and extra fields."""

    name: str
    message: str
    cause: ErrorValue | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of the engine's code that is unchanged from the agent's text (offsets in characters)."""

    code: int
    source: int
    length: int


@dataclass(frozen=True, slots=True)
class ToolAccess:
    """Whether a program can reach tools, by its syntax tree. It decides only whether the run waits for its sources.

    `possible` is true, in doubt too, for a program that mentions `tools` or an unknown name, that is a function (which gets
    `tools` as an argument), or that could reach the global scope in another way. For any other program, `names` lists all
    its variables: a source is a global of its own name, which a program may bind in one scope and use in another.
    """

    names: frozenset[str] = frozenset()
    possible: bool = True


@dataclass(frozen=True, slots=True)
class Program:
    """A prepared program: an ES module (or Python module) for the engine, and the map back to the agent's text.

    `source` is the text as the agent wrote it, prose and fences included. `code` is what the engine gets: a module whose
    default export is the result (`entry="value"`), or a function to call: with no arguments (`"body"`), or with `tools` or
    `input, tools` (`"function"`: the agent's own function). `tail` tells a Python engine where the result is: the first
    line of the last expression in `code`, 0 when the code does not end with one, None when the engine must look itself.
    `erased` is `code` without its types, with every other character in its place. The engine gets it when it is not None.
    `tool_access` states whether the program can reach tools. `imports` are the modules that it needs, `imported_names` the
    names that it gives to what it imports, and `importable` is what it was allowed to import. `is_light` states that the
    lighter engine that was asked about suits it.
    """

    language: Language
    source: str
    code: str
    dialect: Literal["javascript", "typescript", "python"]
    entry: Literal["body", "function", "value"]
    spans: tuple[Span, ...]
    tail: int | None = None
    erased: str | None = None
    tool_access: ToolAccess = ToolAccess()
    imports: tuple[ModuleImport, ...] = ()
    imported_names: frozenset[str] = frozenset()
    importable: Importable | None = None
    is_light: bool = False


@dataclass(frozen=True, slots=True)
class TypeFinding:
    """A finding of a type checker, with 1-based lines and columns (in UTF-16 units) of its start and end."""

    line: int
    column: int
    end_line: int
    end_column: int
    message: str
    code: str


@dataclass(frozen=True, slots=True)
class RecordedWorkspace:
    """What the workspace of a run held at its start: files by path, and folders; its quota; and its place in the guest."""

    files: Mapping[str, bytes]
    folders: tuple[str, ...]
    max_bytes: int
    max_files: int
    path: str = "/workspace"


@dataclass(frozen=True, slots=True)
class Recording:
    """The steps of one run, in order: who sent each (`host` or `guest`), and its exact bytes.

    A run is a function of its events: the same events in the same order, in the same engine, give the same frames. A step
    of the sender `write` says that the write with this call id leaves. `agent` is None for a run of another machine.
    """

    run: str
    engine: str
    memory_mb: int
    steps: tuple[tuple[str, bytes], ...]
    agent: str | None = None
    workspace: RecordedWorkspace | None = None

    @property
    def events(self) -> tuple[bytes, ...]:
        """What the host sent."""
        return tuple(content for sender, content in self.steps if sender == "host")

    @property
    def frames(self) -> tuple[bytes, ...]:
        """What the guest sent."""
        return tuple(content for sender, content in self.steps if sender == "guest")


@dataclass(frozen=True, slots=True)
class Divergence:
    """The first difference between a recording and its replay, at frame `at` (from 0). None means that one had ended.

    One that is not `fatal` has no meaning for the run: a log line, or the text of an error.
    """

    at: int
    recorded: bytes | None
    replayed: bytes | None
    fatal: bool = True

    def __str__(self) -> str:
        return f"frame {self.at}: recorded {_shown(self.recorded)}, replayed {_shown(self.replayed)}"


def _shown(frame: bytes | None) -> str:
    if frame is None:
        return "nothing"
    text = frame.decode("utf-8", "replace")
    return text if len(text) <= 200 else f"{text[:200]}… ({len(frame):,} bytes)"


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that programs can call. `address` is `source.path.name`; schemas are JSON Schema objects.

    A schema may be a mapping that loads on first use; `named` and `described` then give the names and the descriptions of
    the parameters without loading it.
    `pages` is true for a tool whose result is one page of many: `tools.x.list.pages(args)` iterates over all of them.
    `labels` are the flow labels that its source states: `private`, or `not outbound`.
    `takes` is `object` for a tool whose arguments have names. A caller's tool may also take the `array` of the values that
    the program passed, or `anything`: one object, or else that array.
    """

    address: str
    description: str
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    kind: str = "function"
    writes: bool = False
    deprecated: bool = False
    pages: bool = False
    named: tuple[str, ...] | None = None
    described: str | None = None
    labels: tuple[str, ...] = ()
    takes: Literal["object", "array", "anything"] = "object"

    @property
    def source(self) -> str:
        """The name of the source, the first part of the address."""
        return self.address.partition(".")[0]

    @property
    def parameters(self) -> tuple[str, ...]:
        """The parameter names in the order of the schema."""
        return tuple(self.input_schema.get("properties", {})) if self.named is None else self.named

    @property
    def parameter_text(self) -> str:
        """The descriptions of the parameters in one text, in the order of the schema."""
        if self.described is not None:
            return self.described
        schemas = self.input_schema.get("properties", {}).values()
        return join_descriptions(schema.get("description") for schema in schemas if isinstance(schema, Mapping))


def join_descriptions(descriptions: Iterable[object]) -> str:
    """Return the descriptions of parameters as one text, as far as a search reads it; what is no text is left out."""
    found, size = list[str](), 0
    for text in descriptions:
        if isinstance(text, str) and text:
            found.append(text[:MAX_PARAMETER_TEXT_CHARS])
            size += len(text)
            if size > MAX_PARAMETER_TEXT_CHARS:
                break
    return "\n".join(found)[:MAX_PARAMETER_TEXT_CHARS]


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a result, and the cursor of the next (None after the last), which only its source can read.

    `empty` is true for a page without items after the last one that has any: a program does not get it.
    """

    value: Any
    next: str | None = None
    empty: bool = False


class ToolCall(NamedTuple):
    """A call as a run sends it: the name as the guest spelled it, its arguments, their size in bytes, and its steps.

    `frame` is what the guest has sent, where that is in the record of the run, as the reply will be.
    """

    id: int
    name: str
    args: Any
    size: int = 0
    step: str | None = None
    frame: bytes | None = None


Verdict = Literal["allow", "ask", "deny"]
CallStatus = Literal["queued", "waiting", "running", "ok", "failed", "planned", "unknown"]
CallEvent = Literal["call-waiting", "call-started", "call-ended"]


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision on a call: `allow` it, `ask` a person, or `deny` it.

    `reason` is for the program and its agent. `setting` is for the person: the setting that would change the decision.
    `rule` is the rule that decided, or the preset.
    """

    verdict: Verdict
    reason: str = ""
    setting: str | None = None
    rule: str = ""


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call that a policy decides on: the tool, its arguments, and who asks. Without `args`, whatever its arguments."""

    tool: Tool
    args: Mapping[str, Any] | None = None
    agent: str = DEFAULT_AGENT
    run: str = ""
    session: str | None = None


@dataclass(frozen=True, slots=True)
class CallApproval:
    """What a person answered about a call: who it was, after how many seconds, and what the approval covers.

    `asked` are the arguments that the program sent, where the person has changed them.
    """

    approver: str
    seconds: float
    scope: str = "once"
    asked: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call that was made. Times are seconds since the run began.

    `status` is `waiting` while a person is asked, then `running`, `ok` or `failed`; `planned` for a write that a plan holds
    back, `queued` for a call of a stored run that waits for its turn. `origin` says who reported the `error`: Gloveport, or
    the tool. `approval` is what the person answered, `setting` what a person could change. `step` has the names of the
    steps around the call, from the outside in: `load/users`.
    """

    id: int
    tool: str
    args: Any
    status: CallStatus
    started: float
    seconds: float | None = None
    error: str | None = None
    origin: Origin | None = None
    approval: CallApproval | None = None
    setting: str | None = None
    step: str | None = None


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """A write that was held back. `tool` is an address, `definition` its fingerprint, `line` the line of the program.

    `unknown` are the paths of the arguments that contain a made-up result of an earlier write, as far as that can be seen.
    `after` are the private and untrusted reads after which it could send data out.
    """

    call: int
    tool: str
    args: Mapping[str, Any]
    definition: str
    line: int | None = None
    unknown: tuple[str, ...] = ()
    after: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """The writes that a program would make, in order. `notes` say what could not be known.

    It can be approved until `expires` (seconds since 1970).
    """

    run: str
    agent: str
    writes: tuple[PlannedWrite, ...]
    expires: float
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that the program logged, with level `debug`, `info`, `warn`, `error` or `log`."""

    level: str
    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run used."""

    wall_seconds: float = 0.0
    cpu_seconds: float = 0.0
    memory_peak_mb: float = 0.0
    calls: int = 0
    log_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a run, for `on_event`: of kind `log`, `emit`, `call-waiting`, `call-started` or `call-ended`."""

    kind: Literal["log", "emit"] | CallEvent
    run: str
    log: LogLine | None = None
    value: Any = None
    call: CallRecord | None = None


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a run. `value` is what the program returned; `error` is why it failed.

    `waiting` are the ids of the requests that a person has to answer, if the status is `waiting`. `plan` has the writes of
    a run in plan mode. `engine` is the engine that ran the program, or that would have run it.
    """

    run: str
    status: Status
    value: Any = None
    error: Failure | None = None
    logs: tuple[LogLine, ...] = ()
    emitted: tuple[Any, ...] = ()
    calls: tuple[CallRecord, ...] = ()
    usage: Usage = field(default_factory=Usage)
    warnings: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    plan: Plan | None = None
    engine: str | None = None

    @property
    def ok(self) -> bool:
        """True when the program completed."""
        return self.status == "completed"

    def __str__(self) -> str:
        calls = "1 call" if len(self.calls) == 1 else f"{len(self.calls):,} calls"
        engine = f" on {self.engine}" if self.engine else ""
        lines = [f"{self.status} in {self.usage.wall_seconds:.2f} s{engine} with {calls}"]
        if self.error is not None:
            lines.append(str(self.error))
        else:
            shown = repr(self.value)
            lines.append(
                shown if len(shown) <= MAX_SHOWN_CHARS else f"{shown[:MAX_SHOWN_CHARS]}… ({len(shown):,} characters)"
            )
        lines += [f"warning: {warning}" for warning in self.warnings]
        return printable("\n".join(lines))

    def _repr_html_(self) -> str:
        return outcome_html(self)
