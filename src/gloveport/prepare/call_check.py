"""The names and arguments of a program's tool calls against a catalog, before anything runs, for every language."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple, NoReturn, Protocol

from gloveport.errors import ProgramError
from gloveport.prepare.argument_check import CallArguments, validate_arguments
from gloveport.prepare.diagnostics import program_error
from gloveport.prepare.positions import source_offset_of
from gloveport.suggestions import question
from gloveport.tool_names import RESERVED_ROOT_NAMES
from gloveport.types import Problem, Program, Tool

TOOLS = frozenset({"tools", "codemode"})
OBJECT_MEMBERS = frozenset(
    {"apply", "bind", "call", "catch", "constructor", "finally", "hasOwnProperty", "isPrototypeOf", "pages", "then"}
    | {"propertyIsEnumerable", "toJSON", "toLocaleString", "toString", "valueOf"}
)
"""What functions, promises and objects have anyway: never the name of a missing tool."""


class ToolIndex(Protocol):
    """What `check` needs of a catalog."""

    @property
    def roots(self) -> frozenset[str]:
        """Global names that are also sources: `github`."""
        ...

    def find(self, name: str) -> Tool | None:
        """The tool of a name as written after `tools.`."""
        ...

    def suggest(self, name: str) -> tuple[str, ...]:
        """Up to three addresses that the name may have meant, best first, without `tools.`."""
        ...

    def source_problem(self, name: str) -> Problem | None:
        """What is wrong with the source that a tool of this name would belong to; None if it is open."""
        ...

    def is_namespace(self, name: str) -> bool:
        """True for a source or a path prefix: `github.issues`."""
        ...


class Located(Protocol):
    """Something that stands somewhere in the code."""

    @property
    def extent(self) -> tuple[int, int]:
        """Where it starts and ends."""
        ...


class ChainPart(Located, Protocol):
    """One property of a chain such as `tools.github.issues`."""

    @property
    def name(self) -> str:
        """Its name."""
        ...


class Chain(NamedTuple):
    """A chain of literal properties on a global name."""

    root: str
    parts: tuple[ChainPart, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the parts."""
        return tuple(part.name for part in self.parts)


class CallSite(NamedTuple):
    """A call whose callee is a chain; `given` reads its arguments, or gives None when they can't be told.

    `extent` is where the whole call starts and ends in the code.
    """

    chain: Chain
    given: Callable[[], CallArguments | None]
    extent: Callable[[], tuple[int, int]]


class CertainCalls(NamedTuple):
    """The calls of a program that are certain to be made where they stand, and the names that it tests for."""

    calls: tuple[CallSite, ...] = ()
    tested: Collection[tuple[str, ...]] = ()


def check_each(found: CertainCalls, program: Program, catalog: ToolIndex) -> None:
    """Nothing when every call fits; raises `ProgramError` for one that can't. Names that were tested may be missing."""
    for call in found.calls:
        _check_call(call, found.tested, program, catalog)


def _check_call(call: CallSite, tested: Collection[tuple[str, ...]], program: Program, catalog: ToolIndex) -> None:
    names = [*call.chain.names] if call.chain.root in TOOLS else [call.chain.root, *call.chain.names]
    if call.chain.root in TOOLS and (names[0] in RESERVED_ROOT_NAMES or names[0].startswith("__")):
        return
    for count in range(1, len(names) + 1):
        tool = catalog.find(".".join(names[:count]))
        if tool is not None:
            if count == len(names):
                _check_arguments(call, tool, program)
            return
    if catalog.is_namespace(".".join(names)) or names[-1] in OBJECT_MEMBERS or _is_tested(call, tested):
        return
    _refuse_name(call, names, program, catalog)


def _is_tested(call: CallSite, tested: Collection[tuple[str, ...]]) -> bool:
    names = call.chain.names
    return any(names[:count] in tested for count in range(1, len(names) + 1))


def _refuse_name(call: CallSite, names: list[str], program: Program, catalog: ToolIndex) -> NoReturn:
    name = ".".join(names)
    prefix = f"{call.chain.root}." if call.chain.root in TOOLS else ""
    if broken := catalog.source_problem(name):
        told = broken.refusal(f"{prefix}{name}")
        raise _at(program, call.chain.parts[0], told, code="source-failed", hint=broken.hint or "", tool=name)
    meant = [f"{prefix}{suggestion}" for suggestion in catalog.suggest(name)[:3]]
    message = f"no tool `{prefix}{name}`{f'; {question(meant)}' if meant else ''}"
    known = next((n for n in range(len(names), 0, -1) if catalog.is_namespace(".".join(names[:n]))), 0)
    part = call.chain.parts[max(0, known - (len(names) - len(call.chain.parts)))]
    hint = 'find tools with `await tools.search("…")`, and their parameters with `await tools.describe(path)`'
    raise _at(program, part, message, code="unknown-tool", hint=hint, tool=name)


def _check_arguments(call: CallSite, tool: Tool, program: Program) -> None:
    given = call.given()
    found = validate_arguments(given, tool) if given else None
    if found is None:
        return
    spelled = ".".join([call.chain.root, *call.chain.names])
    message = f"`{spelled}` {found.message}"
    marked = found.value or call.chain.parts[-1]
    raise _at(program, marked, message, code="bad-arguments", hint=found.hint, tool=tool.address)


def _at(program: Program, marked: Located, message: str, *, code: str, hint: str, tool: str) -> ProgramError:
    start, end = marked.extent
    offset = source_offset_of(program, start) or 0
    return program_error(program.source, offset, message, code=code, hint=hint, length=end - start, tool=tool)
