"""The tools that the caller of one run brings along: the run's calls of them go back to the caller, which makes them.

Runs with the same tools share one source, and with it a catalog and compiled schemas. So the source makes no call itself:
each run has a `CallerTools` that knows where its own caller is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Literal, NoReturn, TypeVar

import msgspec

from gloveport.errors import CODES, OptionError, ToolError
from gloveport.large_values import is_large, off_loop, off_loop_if
from gloveport.sources.schemas.normaliser import normalise
from gloveport.sources.texts import clean
from gloveport.tool_names import CALLER_SOURCE, problem_with
from gloveport.types import CALLER_KIND, MIB, Tool

MAX_CALLER_TOOLS = 1000
MAX_SCHEMA_BYTES = 128 * 1024  # of one tool
MAX_KEPT_SOURCES = 32
MAX_KEPT_BYTES = 8 * MIB  # of the definitions of the kept sources
MAX_PATH_PARTS = 8
MAX_SHOWN_NAME_CHARS = 100
T = TypeVar("T")


class CallerTool(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One tool of a caller. `name` is its path, such as `github.issues.list`.

    `read_only` means that a call may be repeated. With `positional`, it takes the values that the program passed as an
    array, and `input_schema` describes that array.
    """

    name: str
    description: str = ""
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    read_only: bool = False
    positional: bool = False


class CallerSource:
    """The tools of a caller, as a source. Equal tools have the same `digest`."""

    name = CALLER_SOURCE
    attributes_errors: Literal[True] = True

    def __init__(self, given: Iterable[CallerTool]) -> None:
        """Check and compile the tools: in a thread, for the schemas may be large. Raise OptionError for a wrong one."""
        self.given = tuple(given)
        if len(self.given) > MAX_CALLER_TOOLS:
            raise OptionError(f"a caller brings at most {MAX_CALLER_TOOLS:,} tools, not {len(self.given):,}")
        text = msgspec.json.encode(self.given)
        self.digest, self.size = hashlib.sha256(text).digest(), len(text)
        self._tools = tuple(map(_tool, self.given))

    def tools(self) -> Sequence[Tool]:
        """Return the tools."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> NoReturn:
        """Refuse: only a run that its caller has begun can reach the caller."""
        raise caller_gone(path_of(tool))

    async def close(self) -> None:
        """Do nothing: the caller's connection belongs to its surface."""

    @property
    def stored(self) -> list[dict[str, Any]]:
        """What the store keeps of the tools, so that a run can be read and resumed without its caller."""
        return [{"name": one.name, "readOnly": one.read_only} for one in self.given]


class LatestSources(Generic[T]):
    """What was made of the tools of the latest callers, within bounds: by the digest of the tools."""

    def __init__(self) -> None:
        self._kept: dict[bytes, tuple[T, int]] = {}  # with the size of the tools; the latest last

    def get(self, digest: bytes) -> T | None:
        """Return what is kept, or None."""
        found = self._kept.get(digest)
        return None if found is None else found[0]

    def keep(self, digest: bytes, made: T, size: int) -> None:
        """Keep something as the latest, and forget the oldest that are too much."""
        self._kept.pop(digest, None)
        self._kept[digest] = made, size
        while len(self._kept) > MAX_KEPT_SOURCES or sum(size for _, size in self._kept.values()) > MAX_KEPT_BYTES:
            del self._kept[next(iter(self._kept))]


class CallerSources:
    """The sources of the latest callers. Most callers bring the same tools to every run."""

    def __init__(self) -> None:
        self._sources = LatestSources[CallerSource]()  # by the digest of the tools as they were given

    async def source(self, tools: Sequence[Mapping[str, Any]]) -> CallerSource:
        """Return the source of tools whose form was checked. Raise OptionError for one that can't be used."""
        given = await off_loop_if(is_large(tools), msgspec.json.encode, tools)
        digest = hashlib.sha256(given).digest()
        found = self._sources.get(digest)
        if found is None:
            found = await off_loop(lambda: CallerSource(msgspec.convert(tools, list[CallerTool])))
        self._sources.keep(digest, found, found.size)
        return found


CallCaller = Callable[[Tool, int, Any], Awaitable[Any]]
"""Makes a call: of a tool, with the number of the call in its run, and with its arguments: an object or an array."""


async def _call_nobody(tool: Tool, call: int, args: Any) -> NoReturn:
    raise caller_gone(path_of(tool))


@dataclass(frozen=True, slots=True)
class CallerTools:
    """The tools that one run gets of its caller, and the way to the caller.

    `on_start` is called with the id of the run when it begins. `on_end` is called when no call can come any more.
    """

    source: CallerSource
    call: CallCaller = _call_nobody
    on_start: Callable[[str], None] = lambda _: None
    on_end: Callable[[], None] = lambda: None

    @classmethod
    def stored(cls, tools: Iterable[Mapping[str, Any]]) -> CallerTools:
        """Return the tools of a run in the store, whose caller is gone."""
        return cls(CallerSource(msgspec.convert(list(tools), list[CallerTool])))


def path_of(tool: Tool) -> str:
    """Return the path of a caller's tool as the caller named it."""
    return tool.address.partition(".")[2]


def caller_gone(path: str, *, sent: bool = False) -> ToolError:
    """Return the error of a call whose caller is gone. If it was `sent` and writes, nobody knows whether it was made."""
    if sent:
        message = f"nobody knows whether `tools.{path}` was made: the caller went away before it answered"
        return ToolError(message, code="outcome-unknown", tool=path, hint=CODES["outcome-unknown"].fix)
    message = f"`tools.{path}` can't be called: the caller that brought it is gone"
    return ToolError(message, code="caller-gone", tool=path, hint=CODES["caller-gone"].fix)


def _tool(given: CallerTool) -> Tool:
    parts = given.name.split(".")
    shown = ascii(given.name[:MAX_SHOWN_NAME_CHARS])
    if len(parts) > MAX_PATH_PARTS:
        raise OptionError(f"the name {shown} has more than {MAX_PATH_PARTS} parts")
    for part in parts:
        if problem := problem_with(part):
            raise OptionError(f"the name {part[:MAX_SHOWN_NAME_CHARS]!a} in the tool {shown} {problem}")
    takes: Literal["object", "array", "anything"] = "object"
    schema = given.input_schema
    if given.positional:
        takes, schema = "array", _array_schema(schema)
    elif schema is None:
        takes, schema = "anything", {"type": "object", "additionalProperties": True}
    elif schema.get("type") != "object":
        raise OptionError(f"the inputSchema of the tool {shown} must have the type object")
    return Tool(
        f"{CALLER_SOURCE}.{given.name}",
        clean(given.description),
        _normal(schema, shown),
        None if given.output_schema is None else _normal(given.output_schema, shown),
        kind=CALLER_KIND,
        writes=not given.read_only,
        takes=takes,
    )


def _array_schema(schema: dict[str, Any] | None) -> dict[str, Any]:
    """Return the schema of the arguments as the bridge validates them: the array is the member `args`."""
    members: dict[str, Any] = {"type": "object", "required": ["args"]}
    if schema is None:
        return members | {"properties": {"args": {"type": "array"}}}
    moved = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return members | moved | {"properties": {"args": {key: each for key, each in schema.items() if key not in moved}}}


def _normal(schema: dict[str, Any], shown: str) -> dict[str, Any]:
    try:
        size = len(msgspec.json.encode(schema))
        found = normalise(schema) if size <= MAX_SCHEMA_BYTES else None
    except RecursionError:
        found = None
    if found is None:
        raise OptionError(f"a schema of the tool {shown} is nested too deeply, or larger than {MAX_SCHEMA_BYTES:,} bytes")
    return found.schema
