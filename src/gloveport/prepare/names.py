"""The names and arguments of a program's tool calls against a catalog, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from gloveport.errors import ProgramError
from gloveport.prepare.arguments import complaint
from gloveport.prepare.calls import Call, Calls, entry_parameters, read_calls
from gloveport.prepare.diagnostics import problem
from gloveport.prepare.grammar import TooDeepError, parse, shape_of
from gloveport.prepare.index import ToolIndex
from gloveport.prepare.positions import source_offset_of
from gloveport.types import Program, Tool

if TYPE_CHECKING:
    from tree_sitter import Node


TOOLS = frozenset({"tools", "codemode"})
RESERVED = frozenset({"search", "describe", "sources", "run", "snippets", "executor"})
OBJECT_MEMBERS = frozenset(
    {"apply", "bind", "call", "catch", "constructor", "finally", "hasOwnProperty", "isPrototypeOf", "pages", "then"}
    | {"propertyIsEnumerable", "toJSON", "toLocaleString", "toString", "valueOf"}
)
"""What functions, promises and objects have anyway: never the name of a missing tool."""


def check_calls(program: Program, catalog: ToolIndex) -> None:
    """Nothing when every tool call that can be read off the text fits; raises `ProgramError` for one that can't."""
    roots = TOOLS | catalog.roots
    code = program.code
    if not any(root in code for root in roots):
        return
    try:
        parsed = parse(shape_of(code))
    except TooDeepError:
        return
    if parsed.root.has_error or not parsed.complete:
        return
    root = parsed.root
    found = read_calls(root, code, roots)
    free = frozenset(name for name in roots if not _is_shadowed(name, found, root, program))
    for call in found.calls:
        if call.chain.root in free:
            _check_call(call, found, program, catalog)


def _is_shadowed(name: str, found: Calls, root: Node, program: Program) -> bool:
    """Whether the program binds the name itself, other than as the entry function's own parameter."""
    bound = found.bound.get(name)
    if not bound:
        return False
    if name != "tools" or program.entry != "function" or len(bound) > 1:
        return True
    return not any(node.start_byte <= bound[0] < node.end_byte for node in entry_parameters(found, root))


def _check_call(call: Call, found: Calls, program: Program, catalog: ToolIndex) -> None:
    names = [*call.chain.names] if call.chain.root in TOOLS else [call.chain.root, *call.chain.names]
    if call.chain.root in TOOLS and (names[0] in RESERVED or names[0].startswith("__")):
        return
    for count in range(1, len(names) + 1):
        tool = catalog.find(".".join(names[:count]))
        if tool is not None:
            if count == len(names):
                _check_arguments(call, tool, program)
            return
    if catalog.is_namespace(".".join(names)) or names[-1] in OBJECT_MEMBERS or _is_tested(call, found):
        return
    _refuse_name(call, names, program, catalog)


def _is_tested(call: Call, found: Calls) -> bool:
    names = call.chain.names
    return any(names[:count] in found.tested for count in range(1, len(names) + 1))


def _refuse_name(call: Call, names: list[str], program: Program, catalog: ToolIndex) -> NoReturn:
    name = ".".join(names)
    prefix = f"{call.chain.root}." if call.chain.root in TOOLS else ""
    suggestions = [f"`{prefix}{suggestion}`" for suggestion in catalog.suggest(name)[:3]]
    message = f"no tool `{prefix}{name}`"
    if suggestions:
        message += f"; did you mean {' or '.join(suggestions)}?"
    known = next((n for n in range(len(names), 0, -1) if catalog.is_namespace(".".join(names[:n]))), 0)
    part = call.chain.parts[max(0, known - (len(names) - len(call.chain.parts)))]
    hint = 'find tools with `await tools.search("…")`, and their parameters with `await tools.describe(path)`'
    raise _at(program, part.start, part.end, message, code="unknown-tool", hint=hint, tool=name)


def _check_arguments(call: Call, tool: Tool, program: Program) -> None:
    found = complaint(call.arguments, program.code, tool)
    if found is None:
        return
    last = call.chain.parts[-1]
    start, end = (found.node.start_byte, found.node.end_byte) if found.node else (last.start, last.end)
    spelled = ".".join([call.chain.root, *call.chain.names])
    message = f"`{spelled}` {found.message}"
    raise _at(program, start, end, message, code="bad-arguments", hint=found.hint, tool=tool.address)


def _at(program: Program, start: int, end: int, message: str, *, code: str, hint: str, tool: str) -> ProgramError:
    offset = source_offset_of(program, start) or 0
    return problem(program.source, offset, message, code=code, hint=hint, length=end - start, tool=tool)
