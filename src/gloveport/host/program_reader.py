"""Reads programs in jailed processes: text → Program, checked against the catalog. The host parses no program itself.

A program's text may take over the process that reads it. So the process gets only the tools that the text mentions, it
reads texts of one agent alone, and its answer is untrusted: at worst, that agent gets another program than it wrote.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import msgspec

from gloveport.advice import KINDS, MAX_FINDINGS_OF_A_KIND, ProgramFinding
from gloveport.catalog import Catalog
from gloveport.catalog.declarations import mentioned
from gloveport.errors import GloveportError, ProgramError, SandboxError, TooComplexError
from gloveport.host.runs.run_request import RunRequest
from gloveport.host.source_set import SourceSet
from gloveport.large_values import LARGE_BYTES, off_loop_if
from gloveport.prepare import TypeAdvice, TypeReport, check_text
from gloveport.prepare.diagnostics import line_and_column
from gloveport.sandbox.engines.registry import LOCAL_ENGINES
from gloveport.sandbox.tasks.launch import task_launch
from gloveport.sandbox.tasks.pool import TaskPool
from gloveport.sandbox.tasks.program_task import PACKAGES, PREPARE, REPORT_FINDINGS, REPORT_TYPES
from gloveport.sandbox.tasks.task_process import TaskBudget, TaskKilledError
from gloveport.types import (
    MIB,
    Importable,
    ImportForm,
    ImportKind,
    Language,
    ModuleImport,
    Program,
    Span,
    Strength,
    Tool,
    ToolAccess,
    TypeFinding,
)

BUDGET = TaskBudget(cpu_seconds=2.0, cpu_seconds_per_mib=3.0, memory_mb=768, max_result_bytes=64 * MIB)
MAX_FACTS_BYTES = 512 * 1024
MAX_FINDINGS_BYTES = 4096
MAX_SCHEMA_BYTES = 64 * 1024  # of a tool: of a larger one, the process gets the names of its parameters
MAX_NAME_CHARS = 300
MAX_INLINE_TOOLS = 500  # of a catalog that is asked on the event loop: the first suggestion builds an index
MAX_FINDINGS = 1000
MAX_IMPORTS = 200
ANY_ARGUMENTS = {"anyOf": [{}]}  # a schema that says nothing certain about the arguments
CODES = frozenset(
    {"syntax-error", "code-too-large", "program-too-complex", "unknown-tool", "bad-arguments", "type-error"}
    | {"import-refused", "engine-lacks", "source-failed", "auth-required"}
)
"""The codes of the errors that reading a program can have."""
SUBSETS = tuple(engine.subset for engine in LOCAL_ENGINES.values() if engine.subset)


class _Facts(msgspec.Struct):
    """What a process says about a program, beside its code."""

    dialect: Literal["javascript", "typescript", "python"]
    entry: Literal["body", "function", "value"]
    spans: list[tuple[int, int, int]]
    tail: int | None
    possible: bool
    names: list[str]
    imports: list[tuple[str, ImportKind, ImportForm]]
    is_light: bool


class ProgramReader:
    """The jailed processes that read programs, one or a few for each agent."""

    def __init__(
        self, minimum: Strength, importable: Callable[[RunRequest], Awaitable[Importable | None]] | None = None
    ) -> None:
        self._importable = importable
        self.tasks = TaskPool(
            lambda: task_launch((PREPARE, REPORT_TYPES, REPORT_FINDINGS), PACKAGES, SUBSETS),
            BUDGET,
            minimum=minimum,
            spare=1,
        )
        self._catalog: Catalog | None = None
        self._known: dict[str, bytes] = {}  # what a process is told about a tool of `_catalog`, by path

    async def prepare_run(
        self, request: RunRequest, sources: SourceSet, catalog_now: Callable[[], Awaitable[Catalog | None]]
    ) -> tuple[Program, bool]:
        """Return the checked program, and whether it can reach a source, and so had to wait for the sources."""

        importable = None if self._importable is None else await self._importable(request)

        async def read(catalog: Catalog | None) -> Program:
            return await self.prepare(
                request.code,
                language=request.language,
                subset=request.subset,
                max_code_bytes=request.limits.max_code_bytes,
                catalog=catalog,
                agent=request.agent,
                importable=importable,
                lighter=request.lighter_subset,
            )

        if request.resumed is not None:  # its text was checked when it began; tools may be gone since
            await sources.open(naming=request.code)
            return await read(None), True
        if not sources.opening:
            await sources.build()
            program = await read(await catalog_now())
            return program, sources.may_concern(program.tool_access)
        program = await read(None)
        waits = sources.may_concern(program.tool_access)
        if waits:
            await sources.open(naming=request.code)
        catalog = await catalog_now()
        return (program if catalog is None else await read(catalog)), waits

    async def prepare(
        self,
        text: str,
        *,
        language: Language,
        subset: str | None = None,
        max_code_bytes: int,
        catalog: Catalog | None = None,
        agent: str,
        importable: Importable | None = None,
        lighter: str | None = None,
    ) -> Program:
        """Return the program of a text. `subset` is the module that says what its engine lacks, if it lacks anything.

        `lighter` is the module of an engine that may run the program instead.
        With a catalog, its tool calls are checked too. Raise ProgramError for a program that can't run as written.
        """
        check_text(text, max_code_bytes)
        request = {"language": language, "subset": subset, "max_code_bytes": max_code_bytes, "importable": importable}
        if lighter is not None:
            request["lighter"] = lighter
        result = await self._run(agent, PREPARE, request, text, catalog)
        try:
            return _program(language, text, result, importable)
        except (ValueError, IndexError, msgspec.DecodeError, RecursionError):
            raise _broken_protocol() from None

    async def report_types(
        self,
        program: Program,
        findings: Sequence[TypeFinding],
        lines_before: int,
        *,
        subset: str | None,
        max_code_bytes: int,
        catalog: Catalog,
        agent: str,
    ) -> TypeReport:
        """Return what a type checker's findings mean for a program, at their places in the agent's text."""
        if not findings:
            return TypeReport()
        request = {
            "language": program.language,
            "subset": subset,
            "max_code_bytes": max_code_bytes,
            "lines_before": lines_before,
            "importable": program.importable,
            "findings": [_row(found) for found in findings[:MAX_FINDINGS]],
        }
        try:
            result = await self._run(agent, REPORT_TYPES, request, program.source, catalog)
            return TypeReport(advice=msgspec.json.decode(result[0][:MAX_FACTS_BYTES], type=tuple[TypeAdvice, ...]))
        except ProgramError as error:
            return TypeReport(error)
        except (IndexError, msgspec.DecodeError):
            raise _broken_protocol() from None

    async def find_findings(self, program: Program, *, agent: str) -> tuple[ProgramFinding, ...]:
        """Return what a person should look at in a program that was prepared before."""
        size = len(program.source.encode())
        request = {"language": program.language, "subset": None, "max_code_bytes": size, "importable": program.importable}
        result = await self._run(agent, REPORT_FINDINGS, request, program.source, None)
        try:
            return _findings(program.source, result)
        except (ValueError, IndexError, msgspec.DecodeError, RecursionError):
            raise _broken_protocol() from None

    async def _run(self, agent: str, task: str, request: dict[str, Any], text: str, catalog: Catalog | None) -> list[bytes]:
        async def answer(question: bytes) -> bytes | None:
            if catalog is None:
                return None
            name = question.decode(errors="replace")[:MAX_NAME_CHARS]
            return await off_loop_if(len(catalog.tools) > MAX_INLINE_TOOLS, _look_up, catalog, name)

        known = b""
        if catalog:  # in a thread for a large text: it may mention thousands of names
            known = await off_loop_if(len(text) > LARGE_BYTES, self._mentioned, catalog, text)
        roots = sorted(catalog.roots) if catalog else None
        header = msgspec.json.encode({**request, "roots": roots})[:-1] + b',"tools":{' + known + b"}}"
        try:
            return await self.tasks.run_for(agent, task, (header, text.encode()), answer=answer)
        except ProgramError as error:
            if error.code not in CODES:
                raise _broken_protocol() from None
            raise
        except TaskKilledError:
            raise SandboxError("the process that reads programs was killed", code="sandbox-crashed") from None
        except TooComplexError as error:
            message = f"the program is too complex: {error.message}"
            hint = "split the program, and pass large data as `input`, not as code"
            raise ProgramError(message, code=error.code, hint=hint) from None
        except GloveportError as error:
            if error.code == "wire-violation":
                raise _broken_protocol() from None
            raise

    def _mentioned(self, catalog: Catalog, text: str) -> bytes:
        """Return what the process needs to know about the tools that a text mentions, so that it need not ask."""
        if catalog is not self._catalog:
            self._catalog, self._known = catalog, {}
        known: dict[str, bytes] = {}
        for path, tool in mentioned(catalog, text):
            if path not in self._known:
                self._known[path] = _entries(catalog, path, tool)
            known[path] = self._known[path]
        return b",".join(known.values())


def _row(found: TypeFinding) -> tuple[int, int, int, int, str, str]:
    return found.line, found.column, found.end_line, found.end_column, found.message, found.code


def _entries(catalog: Catalog, path: str, tool: Tool) -> bytes:
    names = path.split(".")
    prefixes = [".".join(names[:count]) for count in range(1, len(names) + 1)]
    return b",".join(msgspec.json.encode(name) + b":" + _look_up(catalog, name) for name in prefixes)


def _look_up(catalog: Catalog, name: str) -> bytes:
    """Return the answer to the question what the catalog has under a name."""
    tool, problem, similar = catalog.find(name), None, ()
    is_namespace = catalog.is_namespace(name)
    if tool is None and not is_namespace:
        problem = catalog.source_problem(name)
        similar = () if problem else catalog.suggest(name)
    found = {"tool": tool and _shown(tool), "namespace": is_namespace, "problem": problem, "similar": similar}
    return msgspec.json.encode(found)


def _shown(tool: Tool) -> dict[str, Any]:
    if tool.takes != "object":
        return {"address": tool.address, "named": (), "schema": ANY_ARGUMENTS, "pages": False}
    schema = dict(tool.input_schema)
    if len(msgspec.json.encode(schema)) > MAX_SCHEMA_BYTES:
        schema = {"properties": {name: {} for name in tool.parameters}, "required": schema.get("required", ())}
    return {"address": tool.address, "named": tool.parameters, "schema": schema, "pages": tool.pages}


def _program(language: Language, source: str, result: list[bytes], importable: Importable | None) -> Program:
    """Return the program that a process describes, or raise ValueError for one that no honest process describes."""
    if len(result[0]) > MAX_FACTS_BYTES:
        raise ValueError("too many facts")
    facts = msgspec.json.decode(result[0], type=_Facts)
    code = result[1].decode()
    spans = tuple(Span(*span) for span in facts.spans)
    before = 0
    for span in spans:
        inside = span.code + span.length <= len(code) and 0 <= span.source <= len(source) - span.length
        if span.code < before or span.length < 0 or not inside:
            raise ValueError("spans that are out of order or out of range")
        before = span.code + span.length
    return Program(
        language,
        source,
        code,
        facts.dialect,
        facts.entry,
        spans,
        facts.tail,
        erased=result[2].decode() if len(result) > 2 else None,
        tool_access=ToolAccess(frozenset(facts.names), facts.possible),
        imports=_imports(facts.imports, importable),
        importable=importable,
        is_light=facts.is_light,
    )


def _imports(found: list[tuple[str, ImportKind, ImportForm]], importable: Importable | None) -> tuple[ModuleImport, ...]:
    """Return the modules that a process says a program imports; raise ValueError for one that it may not import."""
    imports = tuple(ModuleImport(*each) for each in found)
    if len(imports) > MAX_IMPORTS or any(importable is None or not importable.has(each) for each in imports):
        raise ValueError("imports that are not allowed")
    return imports


def _findings(source: str, result: list[bytes]) -> tuple[ProgramFinding, ...]:
    """Return the findings that a process reports, or raise ValueError for some that no honest process reports."""
    found = msgspec.json.decode(result[0][:MAX_FINDINGS_BYTES], type=tuple[ProgramFinding, ...])
    if Counter(one.kind for one in found) - Counter(dict.fromkeys(KINDS, MAX_FINDINGS_OF_A_KIND)):
        raise ValueError("findings that are unknown or too many")
    last_line, _ = line_and_column(source, len(source))
    if any(not 1 <= one.line <= last_line for one in found):
        raise ValueError("findings that are out of range")
    return found


def _broken_protocol() -> SandboxError:
    return SandboxError("the process that read the program broke the protocol", code="wire-violation")
