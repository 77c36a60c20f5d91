"""A run in one file: what it takes to repeat it on another machine, without network and without its tools.

The file is JSON. It has what the store has about the run, redacted as there. A file that is read may come from anybody: it
is read within bounds, and every step is checked before any of it counts.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import msgspec

from gloveport.bounded_json import JsonLimitError, JsonLimits, read
from gloveport.bridge.run_bridge import MAX_NAME_CHARS
from gloveport.config.packages import DEFAULT_WORKSPACE_MOUNT, WORKSPACE_MOUNT
from gloveport.errors import GloveportError, OptionError
from gloveport.large_values import looked_up
from gloveport.sandbox import wire
from gloveport.sandbox.engines.registry import every_engine
from gloveport.sandbox.history import left_write
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.workspace import WorkspaceFiles, checked_path
from gloveport.store.run_recorder import MAX_RUN_BYTES, STEP_OVERHEAD_BYTES, TOO_LARGE
from gloveport.store.stored_runs import IMPORTED, RUN_ID, StoredRun, StoredRuns
from gloveport.types import MIB, Failure, Language, Limits, RecordedWorkspace, Recording, RunStatus, Usage

MAX_WORKSPACE_BYTES = 32 * MIB
MAX_QUOTA = WorkspaceQuota(1024 * MIB, 100_000)
MAX_FILE_BYTES = 2 * MAX_RUN_BYTES + 60 * MIB  # the steps, with what JSON adds to quotes, the program and the session
MAX_STEPS = MAX_RUN_BYTES // STEP_OVERHEAD_BYTES
FILE_LIMITS = JsonLimits(containers=50_000, items=2 * MAX_STEPS, depth=64)
_STEP = re.compile(r"(host|guest|write)(:base64)? (.*)", re.DOTALL)


class PastEnd(msgspec.Struct, omit_defaults=True):
    """What the steps of a run don't tell about its end."""

    error: Failure | None = None
    usage: Usage = Usage()
    warnings: tuple[str, ...] = ()


class FileWorkspace(msgspec.Struct, forbid_unknown_fields=True):
    """What the workspace of a run held at its start: its files in base64, its folders, its quota and its place."""

    files: dict[str, str]
    folders: tuple[str, ...]
    max_bytes: int
    max_files: int
    path: str = DEFAULT_WORKSPACE_MOUNT

    @classmethod
    def of(cls, found: RecordedWorkspace) -> FileWorkspace:
        """Return the workspace as its file has it; raise OptionError for one that is too large."""
        if sum(map(len, found.files.values())) > MAX_WORKSPACE_BYTES:
            message = (
                f"the session of this run has held more than {MAX_WORKSPACE_BYTES:,} bytes, which no file of a run has"
            )
            raise OptionError(message, code=TOO_LARGE)
        files = {path: base64.b64encode(content).decode() for path, content in found.files.items()}
        return cls(files, found.folders, found.max_bytes, found.max_files, found.path)

    @property
    def recorded(self) -> RecordedWorkspace:
        """The workspace, as a replay takes it; raise GloveportError or ValueError for one that no session has held."""
        if not (0 < self.max_bytes <= MAX_QUOTA.max_bytes and 0 < self.max_files <= MAX_QUOTA.max_files):
            raise OptionError("the quota of its session is out of range")
        if not WORKSPACE_MOUNT.fullmatch(self.path):
            raise OptionError("its session lies at a place where none can")
        contents = {checked_path(path): base64.b64decode(text, validate=True) for path, text in self.files.items()}
        folders = frozenset(map(checked_path, self.folders))
        above = {path.rpartition("/")[0] for path in (*contents, *folders)} - {""}
        if not above <= folders or folders & contents.keys() or len(folders) < len(self.folders):
            raise OptionError("the folders of its session don't fit its files")
        WorkspaceFiles(contents, folders).check(WorkspaceQuota(self.max_bytes, self.max_files))
        return RecordedWorkspace(contents, tuple(sorted(folders)), self.max_bytes, self.max_files, self.path)


@looked_up
class RunFile(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    """A run as its file has it. Times are seconds since 1970. `gloveport` is the version that made it."""

    format: Literal["gloveport-run"] = "gloveport-run"
    version: Literal[1] = 1
    gloveport: str
    run: str
    agent: str
    status: RunStatus
    started: float
    ended: float | None
    language: Language
    engine: str
    calls: int
    error: str | None
    limits: Limits
    allow_eval: bool
    allow_wasm: bool
    tools: tuple[str, ...]
    code: str
    outcome: PastEnd | None
    steps: tuple[str, ...]
    workspace: FileWorkspace | msgspec.UnsetType = msgspec.UNSET

    @property
    def recording(self) -> Recording:
        """Its steps, as a replay takes them."""
        workspace = self.workspace.recorded if isinstance(self.workspace, FileWorkspace) else None
        steps = tuple(map(_read_step, self.steps))
        return Recording(self.run, self.engine, self.limits.memory_mb, steps, workspace=workspace)


def exported(stored: StoredRuns, run: StoredRun) -> bytes:
    """Return the file of a run in the store; raise OptionError if not all of it is kept."""
    if run.obstacle not in (None, IMPORTED):
        raise OptionError(f"the run {run.id} was not recorded as a whole", code=run.obstacle)
    recording = stored.recording(run)
    steps = tuple(_step_text(sender, content) for sender, content in recording.steps)
    if not steps:
        raise OptionError(f"there is no recording of the run {run.id}", code="not-resumable")
    given = run.request
    file = RunFile(
        gloveport=str(given.get("version", "")),
        run=run.id,
        agent=run.agent,
        status=run.status,
        started=run.started,
        ended=run.ended,
        language=_convert(run.language, Language),
        engine=run.engine,
        calls=run.calls,
        error=run.error,
        limits=_convert(given["limits"], Limits),
        allow_eval=bool(given["allow_eval"]),
        allow_wasm=bool(given["allow_wasm"]),
        tools=stored.tools(run),
        code=stored.code(run).encode("utf-8", "replace").decode(),
        outcome=None if run.outcome is None else _convert(run.outcome, PastEnd),
        steps=steps,
        workspace=msgspec.UNSET if recording.workspace is None else FileWorkspace.of(recording.workspace),
    )
    return msgspec.json.format(msgspec.json.encode(file, enc_hook=str), indent=1) + b"\n"


def read_run_file(path: Path) -> RunFile:
    """Return the run in a file that anybody may have written; raise OptionError for anything else."""
    try:
        return _checked(msgspec.convert(read(_content(path), FILE_LIMITS), RunFile))
    except JsonLimitError as problem:
        raise _refused(path, f"it {problem}") from None
    except (ValueError, GloveportError) as problem:
        raise _refused(path, problem.message if isinstance(problem, GloveportError) else str(problem)) from None


def imported(stored: StoredRuns, file: RunFile) -> str:
    """Put a run of another machine into the store, and return its id. It has ended there, whatever the file says.

    Its agent gets a name that no agent can have here, so none can ask for its outcome.
    """
    final: RunStatus = file.status if file.status in ("completed", "failed") else "cancelled"
    run = StoredRun(
        id=file.run,
        agent=f"{IMPORTED}:{file.agent.removeprefix(f'{IMPORTED}:')}"[:200],
        status=final,
        started=file.started,
        ended=file.started if file.ended is None else file.ended,
        language=file.language,
        engine=file.engine,
        calls=file.calls,
        error=file.error,
        obstacle=IMPORTED,
        fence=1,
        owned=False,
        request={
            "limits": asdict(file.limits),
            "allow_eval": file.allow_eval,
            "allow_wasm": file.allow_wasm,
            "memory_mb": file.limits.memory_mb,
            "version": file.gloveport,
        },
        outcome=None if file.outcome is None else msgspec.to_builtins(file.outcome),
    )
    stored.add(run, file.code, file.recording, file.tools)
    return run.id


def _content(path: Path) -> bytes:
    """Return the bytes of an ordinary file of a bounded size. Nothing else is waited for, such as a pipe."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise OptionError("it is no ordinary file")
            found = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise OptionError(f"it can't be read: {error.strerror}") from None
    if len(found) > MAX_FILE_BYTES:
        raise OptionError(f"it has more than {MAX_FILE_BYTES:,} bytes")
    return found


def _checked(file: RunFile) -> RunFile:
    """Return a file of which every part can be read as one that Gloveport has made."""
    if not RUN_ID.fullmatch(file.run):
        raise OptionError(f"a run can't have the id {file.run[:40]!r}")
    engine = every_engine().get(file.engine)
    if engine is None or file.language not in engine.languages:
        raise OptionError(f"there is no engine {file.engine[:40]!r} for {file.language} here")
    if not 0 <= file.calls <= MAX_STEPS or len(file.code) > file.limits.max_code_bytes:
        raise OptionError("a number in it is out of range")
    if len(file.tools) > max(len(file.steps), 1) or any(len(tool) > MAX_NAME_CHARS for tool in file.tools):
        raise OptionError("it names more tools than it calls, or one with a name that no tool has")
    if not all(0 <= at < 2**40 for at in (file.started, file.ended or 0)):
        raise OptionError("a time in it is out of range")
    size, calls = 0, set[Any]()
    for place, step in enumerate(file.steps):
        sender, content = _read_step(step)
        size += len(content) + STEP_OVERHEAD_BYTES
        if size > MAX_RUN_BYTES:
            raise OptionError(f"its steps have more than {MAX_RUN_BYTES:,} bytes")
        try:
            _check_step(sender, content, calls, is_first=place == 0)
        except (GloveportError, ValueError, TypeError, IndexError, OverflowError) as problem:
            if sender == "guest" and 0 < place == len(file.steps) - 1 and file.status == "failed":
                continue  # the frame that the host refused there: the run has failed because of it
            raise OptionError(f"its step {place + 1} can't be read: {problem}") from None
    if not file.steps:
        raise OptionError("it has no steps")
    if isinstance(file.workspace, FileWorkspace):
        _ = file.workspace.recorded
    return file


def _check_step(sender: str, content: bytes, calls: set[Any], *, is_first: bool) -> None:
    if sender == "write":
        if left_write(content)[0] not in calls:
            raise ValueError("a write that no call has asked for")
        return
    message = wire.decode(content)
    if sender == "host":
        kinds = ("start",) if is_first else ("timer", "reply")
        if message[0] not in kinds or type(message[1]) is not int or not 0 <= message[1] < 2**62:
            raise ValueError(f"an event of the kind {message[0][:40]!r}")
        if message[0] == "reply" and (len(message) < 5 or message[2] not in calls):
            raise ValueError("a reply to no call")
    elif is_first:
        raise ValueError("it does not begin with the start")
    else:
        _check_frame(message, calls)


def _check_frame(message: list[Any], calls: set[Any]) -> None:
    match message:
        case ["call" | "call_sync", int(id), str(), list()] | ["call", int(id), str(), list(), str()]:
            if type(id) is not int or not 0 <= id < 2**62 or id in calls:
                raise ValueError(f"a call with the id {id!r:.40}, or one that was used before")
            calls.add(id)
        case ["timer", None | int() | float()] | ["log", str(), str()] | ["emit", _]:
            pass
        case ["done", "value", _, dict()] | ["done", "error", dict(), dict()]:
            pass
        case _:
            raise ValueError(f"a frame of the kind {message[0][:40]!r} that no guest sends")


def _step_text(sender: str, content: bytes) -> str:
    try:
        return f"{sender} {content.decode()}"
    except UnicodeDecodeError:
        return f"{sender}:base64 {base64.b64encode(content).decode()}"


def _read_step(text: str) -> tuple[str, bytes]:
    found = _STEP.fullmatch(text)
    if found is None:
        raise OptionError(f"a step begins with host, guest or write, not {text[:20]!r}")
    sender, is_base64, content = found.groups()
    try:
        return sender, base64.b64decode(content, validate=True) if is_base64 else content.encode()
    except (binascii.Error, UnicodeEncodeError) as problem:
        raise OptionError(f"a step can't be decoded: {problem}") from None


def _convert(value: Mapping[str, Any] | str, type_: Any) -> Any:
    return msgspec.convert(value, type_, strict=False)


def _refused(path: Path, problem: str) -> OptionError:
    return OptionError(f"{path} is no run that Gloveport has exported: {problem[:300]}", code="bad-run-file")
