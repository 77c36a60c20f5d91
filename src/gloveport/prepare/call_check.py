"""Check a program's tool calls against a catalog before it runs: their names and arguments, in every language."""

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
    {"apply", "bind", "call", "catch", "constructor", "finally", "hasOwnProperty", "isPrototypeOf", "then"}
    | {"propertyIsEnumerable", "toJSON", "toLocaleString", "toString", "valueOf"}
)
"""Members that functions, promises and objects always have: never the name of a missing tool."""


class ToolIndex(Protocol):
    """The part of a catalog that `check` needs."""

    @property
    def roots(self) -> frozenset[str]:
        """The sources that are also globals: `github`."""
        ...

    def find(self, name: str) -> Tool | None:
        """Return the tool with this name, as written after `tools.`."""
        ...

    def suggest(self, name: str) -> tuple[str, ...]:
        """Return up to three similar addresses, best first, without `tools.`."""
        ...

    def source_problem(self, name: str) -> Problem | None:
        """Return the problem of the source that a tool with this name would belong to; None if it is open."""
        ...

    def is_namespace(self, name: str) -> bool:
        """Return whether this is a source or the prefix of a path: `github.issues`."""
        ...


class Located(Protocol):
    """Something with a place in the code."""

    @property
    def extent(self) -> tuple[int, int]:
        """The offsets in the code where it starts and ends."""
        ...


class ChainPart(Located, Protocol):
    """One property of a chain such as `tools.github.issues`."""

    @property
    def name(self) -> str:
        """The name of the property."""
        ...


class Chain(NamedTuple):
    """A chain of literal properties on a global name."""

    root: str
    parts: tuple[ChainPart, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the properties."""
        return tuple(part.name for part in self.parts)


class CallSite(NamedTuple):
    """A call of a chain of properties.

    `arguments` reads the arguments, or returns None when a spread hides them. `extent` returns the offsets in the code
    where the whole call starts and ends.
    """

    chain: Chain
    arguments: Callable[[], CallArguments | None]
    extent: Callable[[], tuple[int, int]]


class CertainCalls(NamedTuple):
    """The calls that a program certainly makes as written, and the tools whose presence it tests for."""

    calls: tuple[CallSite, ...] = ()
    tested: Collection[tuple[str, ...]] = ()


def check_each(found: CertainCalls, program: Program, catalog: ToolIndex) -> None:
    """Raise `ProgramError` for the first call that can't succeed. A tool that the program tests for may be missing."""
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
            elif names[count:] == ["pages"] and not tool.pages and not _is_tested(call, tested):
                _check_pages(call, names, program, catalog)
            return
    if catalog.is_namespace(".".join(names)) or names[-1] in OBJECT_MEMBERS or _is_tested(call, tested):
        return
    is_paged = len(names) > 1 and names[-1] == "pages" and not catalog.is_namespace(".".join(names[:-1]))
    _refuse_name(call, names[:-1] if is_paged else names, program, catalog)


def _is_tested(call: CallSite, tested: Collection[tuple[str, ...]]) -> bool:
    names = call.chain.names
    return any(names[:count] in tested for count in range(1, len(names) + 1))


def _refuse_name(call: CallSite, names: list[str], program: Program, catalog: ToolIndex) -> NoReturn:
    name = ".".join(names)
    prefix = f"{call.chain.root}." if call.chain.root in TOOLS else ""
    if broken := catalog.source_problem(name):
        message = broken.refusal(f"{prefix}{name}")
        raise _at(program, call.chain.parts[0], message, code=broken.code, hint=broken.agent_hint, tool=name)
    meant = [f"{prefix}{suggestion}" for suggestion in catalog.suggest(name)[:3]]
    message = f"no tool `{prefix}{name}`{f'; {question(meant)}' if meant else ''}"
    known = next((n for n in range(len(names), 0, -1) if catalog.is_namespace(".".join(names[:n]))), 0)
    part = call.chain.parts[max(0, known - (call.chain.root not in TOOLS))]
    hint = 'find tools with `await tools.search("…")`, and their parameters with `await tools.describe(path)`'
    raise _at(program, part, message, code="unknown-tool", hint=hint, tool=name)


def _check_pages(call: CallSite, names: list[str], program: Program, catalog: ToolIndex) -> None:
    """Refuse `.pages()` of a tool that has none, unless that is the name of a tool."""
    if catalog.find(".".join(names)) is not None:
        return
    above = ".".join([call.chain.root, *call.chain.names[:-1]])
    message = f"`{above}` has no pages that could be read one by one"
    hint = f"call `{above}(…)` itself; its parameters may select a part"
    raise _at(program, call.chain.parts[-1], message, code="unknown-tool", hint=hint, tool=".".join(names))


def _check_arguments(call: CallSite, tool: Tool, program: Program) -> None:
    arguments = call.arguments()
    found = validate_arguments(arguments, tool) if arguments else None
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
