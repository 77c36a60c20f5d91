"""Plain Python callables as a source: typed by their signatures, sync or async.

A sync function runs in a thread, so that it blocks no other call (about 100 µs a call); `@tool(inline=True)` calls a quick
one in the event loop. The bridge turns what a function returns or raises into plain data, as for every source.

signatures, type_schemas, docstrings    a callable → the schemas and texts of a tool
threads                                 runs blocking functions
framework_tools                         tools of LangChain, pydantic-ai and OpenAI Agents
modules                                 a Python module or file → its functions
importable_files, trusted_imports       what a project's file may import: found and recorded, enforced
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, overload

import msgspec

from gloveport.errors import OptionError, ToolError
from gloveport.large_values import is_large, off_loop_soon
from gloveport.rules.labels import check_labels
from gloveport.sources.functions import docstrings
from gloveport.sources.functions.framework_tools import FrameworkTool, framework_tool
from gloveport.sources.functions.signatures import BoundArguments, signature_of
from gloveport.sources.functions.threads import FunctionThreads
from gloveport.sources.source import SourceInfo
from gloveport.tool_names import RESERVED_SOURCE_NAMES, ROOT_SOURCE, problem_with
from gloveport.types import Tool

F = TypeVar("F", bound=Callable[..., Any])
TOOL_ATTRIBUTE = "__gloveport_tool__"
RENAME = "@tool(name=…) or a mapping {name: function} gives it another name"


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """The options that `@tool` gives to a function."""

    name: str | None = None
    description: str | None = None
    writes: bool = False
    inline: bool = False
    undo: str | None = None
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "labels", check_labels(self.labels, "@tool"))


@overload
def tool(function: F, /) -> F: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    writes: bool = False,
    inline: bool = False,
    undo: str | None = None,
    labels: Iterable[str] = (),
) -> Callable[[F], F]: ...
def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function as a tool and return it: its name and description, whether it writes, whether it is quick.

    `inline=True` calls a sync function in the event loop instead of a thread: only for quick, pure ones. `undo` is the call
    that undoes a write: `undo="remove(id = result.id)"`. `labels` are flow labels: `labels=["private"]`.
    """
    if function is None:
        return functools.partial(_mark, ToolOptions(**options))
    return _mark(ToolOptions(**options), function)


def _mark(options: ToolOptions, function: Any) -> Any:
    if not callable(function):
        raise OptionError(f"@tool marks functions, not {function!r}")
    try:
        setattr(function, TOOL_ATTRIBUTE, options)
    except AttributeError as error:
        raise OptionError(f"@tool can't mark {function!r}", hint="mark the function where it is defined") from error
    return function


@dataclass(frozen=True, slots=True)
class _FunctionTool:
    call: Callable[..., Any]
    tool: Tool
    bind: Callable[[dict[str, Any]], BoundArguments]
    is_async: bool
    inline: bool = False
    undo: str | None = None


class FunctionSource:
    """Plain callables as tools; `functions` makes it."""

    attributes_errors: Literal[True] = True

    def __init__(self, name: str, functions: Mapping[str, _FunctionTool], warnings: tuple[str, ...] = ()) -> None:
        self.name = name
        self._functions = functions
        self._warnings = warnings
        self._threads = FunctionThreads(name)

    def source_info(self) -> SourceInfo:
        """Return warnings about functions that were left out, and how writes are undone."""
        declared = {address.partition(".")[2]: one.undo for address, one in self._functions.items() if one.undo}
        return SourceInfo(warnings=self._warnings, undo=declared)

    def tools(self) -> Sequence[Tool]:
        """Return the tools in the order in which the functions were given."""
        return [function.tool for function in self._functions.values()]

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """Return what the function returned, unchanged; it gets the arguments in their annotated types."""
        function = self._functions[tool.address]
        try:
            positional, keywords = await off_loop_soon(function.bind, args) if is_large(args) else function.bind(args)
        except msgspec.ValidationError as error:
            raise ToolError(str(error), code="bad-arguments", tool=tool.address) from error
        if not function.is_async and not function.inline:
            self._threads.check()
        try:
            if function.is_async:
                return await function.call(*positional, **keywords)
            if function.inline:
                result = function.call(*positional, **keywords)
            else:
                result = await self._threads.run(function.call, positional, keywords)
            return await result if inspect.isawaitable(result) else result
        except SystemExit as error:
            # A tool that calls sys.exit() ends its call, not the host.
            raise ToolError(f"SystemExit: {error.code}", tool=tool.address, origin="tool") from error
        except ToolError as error:
            error.__dict__["origin"] = "tool"  # whatever the function has set: a tool's error is never a decision of ours
            raise

    async def close(self) -> None:
        """End the threads; a function that still runs in one ends by itself."""
        self._threads.close()


def functions(
    tools: Iterable[Callable[..., Any] | Mapping[str, Callable[..., Any]]] | Mapping[str, Callable[..., Any]],
    name: str = ROOT_SOURCE,
    *,
    leave_out: bool = False,
) -> FunctionSource:
    """Return a source of plain callables; a mapping among them gives its own names.

    A callable that can't be a tool is an error. With `leave_out`, as for the functions of a file, it is left out with a
    warning, unless no other is left.
    """
    if problem := problem_with(name):
        raise OptionError(f"the source name {name!r} {problem}")
    found: dict[str, _FunctionTool] = {}
    unfit: list[OptionError] = []
    for given, function in _each(tools):
        try:
            made = _function_tool(name, given, function)
        except OptionError as error:
            if not leave_out:
                raise
            unfit.append(error)
            continue
        address = made.tool.address
        if address in found:
            first, second = _where(found[address].call), _where(function)
            raise OptionError(f"two functions are called {address}: {first} and {second}", hint=RENAME)
        found[address] = made
    if unfit and not found:
        raise unfit[0]
    return FunctionSource(name, found, tuple(f"left out: {error.message}" for error in unfit))


def _each(tools: Any) -> Iterator[tuple[str | None, Callable[..., Any]]]:
    if isinstance(tools, Mapping):
        yield from tools.items()
        return
    if not isinstance(tools, Iterable) or isinstance(tools, (str, bytes)):
        raise OptionError(f"tools must be a list of functions, not {tools!r}")
    for item in tools:
        if isinstance(item, Mapping):
            yield from item.items()
        else:
            yield None, item


def _function_tool(source: str, given: str | None, function: Any) -> _FunctionTool:
    if (framework := framework_tool(function)) is not None:
        return _from_framework(source, given or framework.name, framework)
    if not callable(function):
        raise OptionError(f"a tool must be a function, not {function!r}")
    options = getattr(function, TOOL_ATTRIBUTE, None) or ToolOptions()
    name = given or options.name or _own_name(function)
    _check_name(source, name, _where(function))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise OptionError(f"the function {name} yields, which a tool can't", hint="return a list")
    signature = signature_of(function, name)
    return _FunctionTool(
        call=function,
        tool=Tool(
            address=f"{source}.{name}",
            description=options.description or docstrings.summary(_docstring(function)),
            input_schema=signature.input_schema,
            output_schema=signature.output_schema,
            writes=options.writes,
            labels=options.labels,
        ),
        bind=signature.bind,
        is_async=inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__),
        inline=options.inline,
        undo=options.undo,
    )


def _from_framework(source: str, name: str, given: FrameworkTool) -> _FunctionTool:
    _check_name(source, name, "a framework's tool")
    schemas = given.input_schema, given.output_schema
    tool = Tool(f"{source}.{name}", docstrings.summary(given.description), *schemas, writes=given.asks)
    return _FunctionTool(given.call, tool, lambda args: ([], args), is_async=True)


def _check_name(source: str, name: str, whose: str) -> None:
    problem = problem_with(name)
    if source == ROOT_SOURCE and name in RESERVED_SOURCE_NAMES:
        problem = f"is the name of the built-in tools.{name}"
    if problem:
        raise OptionError(f"the tool name {name!r} of {whose} {problem}", hint=RENAME)


def _docstring(function: Any) -> str | None:
    """Return a function's own docstring; that of a class which an object such as a partial inherits is not about it."""
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.getdoc(function)


def _own_name(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    return getattr(function, "__name__", None) or type(function).__name__


def _where(function: Any) -> str:
    while isinstance(function, functools.partial):
        function = function.func
    name = getattr(function, "__qualname__", None) or repr(type(function))
    return f"{getattr(function, '__module__', '?')}.{name}"
