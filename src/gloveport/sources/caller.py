"""The tools that the caller of one run brings along: the run's calls of them go back to the caller, which makes them.

Runs with the same tools share one source, and with it a catalog and compiled schemas. So the source makes no call itself:
each run has a `CallerTools` that knows where its own caller is.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, NoReturn, TypeVar

import msgspec

from gloveport.errors import CODES, OptionError, TooComplexError, ToolError
from gloveport.large_values import is_large, looked_up, off_loop, off_loop_if
from gloveport.sources.context import TaskRunner
from gloveport.sources.definition_cache import LazySchema
from gloveport.sources.schemas.normaliser import normalise
from gloveport.sources.texts import clean
from gloveport.tool_names import CALLER_SOURCE, problem_with
from gloveport.types import CALLER_KIND, MIB, Tool

MAX_CALLER_TOOLS = 1000
MAX_SCHEMA_BYTES = 128 * 1024  # of one tool
MAX_NORMAL_BYTES = 256 * 1024  # of one schema in the normal form
NORMALISE_TASK = "gloveport.sources.schemas.task:normalise_schemas"
MAX_KEPT_SOURCES = 32
MAX_KEPT_BYTES = 8 * MIB  # of the definitions of the kept sources
MAX_PATH_PARTS = 8
MAX_SHOWN_NAME_CHARS = 100
T = TypeVar("T")
Schema = dict[str, Any]


@looked_up
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

    def __init__(self, given: Iterable[CallerTool], normal: Sequence[bytes] | None = None) -> None:
        """Check the tools; raise OptionError for a wrong one.

        `normal` has their schemas in the normal form, as JSON. Without it they are normalised here, which may take seconds
        for hostile ones: that is for tools of this process, and for tools without schemas.
        """
        given = tuple(given)
        text = msgspec.json.encode(given)
        self.digest, self.size = hashlib.sha256(text).digest(), len(text)
        drafts = _drafts(given)
        schemas = iter(normal if normal is not None else [_normal(each) for each in _schemas_of(drafts)])
        self._tools = tuple(draft.tool(schemas) for draft in drafts)
        self.stored = [{"name": one.name, "readOnly": one.read_only} for one in given]
        """What the store keeps of the tools, so that a run can be read and resumed without its caller."""

    def tools(self) -> Sequence[Tool]:
        """Return the tools."""
        return self._tools

    async def call(self, tool: Tool, args: dict[str, Any]) -> NoReturn:
        """Refuse: only a run that its caller has begun can reach the caller."""
        raise caller_gone(path_of(tool))

    async def close(self) -> None:
        """Do nothing: the caller's connection belongs to its surface."""


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

    def __init__(self, tasks: TaskRunner) -> None:
        self._tasks = tasks
        self._sources = LatestSources[CallerSource]()  # by the digest of the tools as they were given
        self._turns: dict[str, asyncio.Lock] = {}  # one process reads the schemas of a caller at a time

    async def source(self, caller: str, tools: Sequence[Mapping[str, Any]]) -> CallerSource:
        """Return the source of tools whose form was checked. Raise OptionError for one that can't be used.

        A jailed process brings the schemas into the normal form: hostile ones take long (S23).
        """
        given = await off_loop_if(is_large(tools), msgspec.json.encode, tools)
        digest = hashlib.sha256(given).digest()
        found = self._sources.get(digest)
        if found is None:
            asked, texts = await off_loop(_asked, tools)
            normal: Sequence[bytes] = ()
            if texts:
                async with self._turns.setdefault(caller, asyncio.Lock()):
                    normal = await self._normalised(texts)
            found = await off_loop(CallerSource, asked, normal)
        self._sources.keep(digest, found, found.size)
        return found

    async def _normalised(self, texts: Sequence[bytes]) -> Sequence[bytes]:
        try:
            made = await self._tasks.run(NORMALISE_TASK, [b"[" + b",".join(texts) + b"]"])
        except TooComplexError as error:
            raise OptionError(f"the schemas of the caller's tools can't be used: {error.message}") from None
        if len(made) != len(texts) or any(len(text) > MAX_NORMAL_BYTES for text in made):
            raise OptionError("the schemas of the caller's tools can't be used: in the normal form they are too large")
        return made


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


@dataclass(frozen=True, slots=True)
class _Draft:
    """A tool whose schemas are not in the normal form yet."""

    given: CallerTool
    takes: Literal["object", "array", "anything"]
    schema: Schema

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """The schemas of what it takes and, if it states that, of what it gives."""
        own = () if self.given.input_schema is None else (self.schema,)
        return own if self.given.output_schema is None else (*own, self.given.output_schema)

    def tool(self, normal: Iterator[bytes]) -> Tool:
        """Return the tool with the next schemas in the normal form; it decodes them again on first use.

        As objects, those of a hostile caller would be so many that a full garbage collection took 0.1 s.
        """
        given = self.given
        texts = [next(normal) for _ in self.schemas]
        schemas = [_decoded(text) for text in texts]
        lazy = [LazySchema(_decoded, text) for text in texts]
        gives = None if given.output_schema is None else lazy.pop()
        tool = Tool(
            f"{CALLER_SOURCE}.{given.name}",
            clean(given.description),
            schemas[0] if lazy else self.schema,
            gives,
            kind=CALLER_KIND,
            writes=not given.read_only,
            takes=self.takes,
        )
        if not lazy:
            return tool
        return replace(tool, input_schema=lazy[0], named=tool.parameters, described=tool.parameter_text)


def _drafts(given: Sequence[CallerTool]) -> list[_Draft]:
    if len(given) > MAX_CALLER_TOOLS:
        raise OptionError(f"a caller brings at most {MAX_CALLER_TOOLS:,} tools, not {len(given):,}")
    return [_draft(one) for one in given]


def _draft(given: CallerTool) -> _Draft:
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
    draft = _Draft(given, takes, schema)
    for each in draft.schemas:
        if len(_text(each)) > MAX_SCHEMA_BYTES:
            raise OptionError(f"a schema of the tool {shown} is larger than {MAX_SCHEMA_BYTES:,} bytes")
    return draft


def _array_schema(schema: dict[str, Any] | None) -> dict[str, Any]:
    """Return the schema of the arguments as the bridge validates them: the array is the member `args`."""
    members: dict[str, Any] = {"type": "object", "required": ["args"]}
    if schema is None:
        return members | {"properties": {"args": {"type": "array"}}}
    moved = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return members | moved | {"properties": {"args": {key: each for key, each in schema.items() if key not in moved}}}


def _text(schema: Schema) -> bytes:
    try:
        return msgspec.json.encode(schema)
    except RecursionError:
        raise OptionError("a schema of a tool is nested too deeply") from None


def _schemas_of(drafts: Iterable[_Draft]) -> Iterator[Schema]:
    return (schema for draft in drafts for schema in draft.schemas)


def _asked(tools: Sequence[Mapping[str, Any]]) -> tuple[list[CallerTool], list[bytes]]:
    """Return the tools, and their schemas as JSON."""
    given = msgspec.convert(tools, list[CallerTool])
    return given, [_text(schema) for schema in _schemas_of(_drafts(given))]


def _normal(schema: Schema) -> bytes:
    try:
        return msgspec.json.encode(normalise(schema).schema)
    except RecursionError:
        raise OptionError("a schema of a tool is nested too deeply") from None


def _decoded(text: bytes) -> Schema:
    """Return a schema that a task made: hostile text may have controlled it, and the bridge bounds what it compiles."""
    try:
        found = msgspec.json.decode(text, type=Schema | None)
    except (msgspec.DecodeError, RecursionError):
        raise OptionError("the schemas of the caller's tools can't be read") from None
    if found is None:
        raise OptionError("a schema of a tool is nested too deeply")
    return found
