"""Plain callables become tools: their schemas, their names, and how arguments reach them."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import threading
import typing
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, Optional, TypedDict, Union
from uuid import UUID

import pytest

from gloveport.errors import OptionError, ToolError
from gloveport.sources.functions import functions, tool
from gloveport.sources.functions.threads import STILL_RUNNING, FunctionThreads
from gloveport.types import Tool

DEADLINE = 5


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: int
    y: int = 0
    tags: set[str] = field(default_factory=set)


@dataclass
class Circle:
    radius: float


class Address(TypedDict):
    street: str
    zip: NotRequired[str]


class Model:
    """Looks like a pydantic model."""

    def __init__(self, n: int) -> None:
        self.n = n

    @classmethod
    def model_json_schema(cls, ref_template: str = "") -> dict[str, Any]:
        inner = {"type": "integer", "minimum": 1}
        ref = ref_template.format(model="Small")
        return {"type": "object", "properties": {"n": {"$ref": ref}}, "required": ["n"], "$defs": {"Small": inner}}

    @classmethod
    def model_validate(cls, value: dict[str, Any]) -> Model:
        return cls(value["n"])


def only(function: Any, name: str = "local") -> Tool:
    (found,) = functions([function], name).tools()
    return found


def schema_of(annotation: Any) -> dict[str, Any]:
    def f(p: Any) -> None: ...

    f.__annotations__["p"] = annotation
    return dict(only(f).input_schema)


async def call(function: Any, **args: Any) -> Any:
    source = functions([function])
    async with asyncio.timeout(DEADLINE):
        try:
            return await source.call(source.tools()[0], args)
        finally:
            await source.close()


SCHEMAS = [
    (str, {"type": "string"}),
    (int, {"type": "integer"}),
    (float, {"type": "number"}),
    (bool, {"type": "boolean"}),
    (None, {"type": "null"}),
    (Any, {}),
    (object, {}),
    (list, {"type": "array"}),
    (dict, {"type": "object"}),
    (list[int], {"type": "array", "items": {"type": "integer"}}),
    (dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}),
    (set[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
    (typing.Iterable[int], {"type": "array", "items": {"type": "integer"}}),
    (Optional[int], {"anyOf": [{"type": "integer"}, {"type": "null"}]}),  # noqa: UP045
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}),  # noqa: UP007
    (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
    (Literal["a", "b"], {"enum": ["a", "b"]}),
    (datetime, {"type": "string", "format": "date-time"}),
    (date, {"type": "string", "format": "date"}),
    (bytes, {"type": "string", "contentEncoding": "base64"}),
    (UUID, {"type": "string", "format": "uuid"}),
    (Annotated[str, "The city"], {"type": "string", "description": "The city"}),
    (Annotated[int | bytes | str, "Any of them"], None),
    (str | datetime, {"anyOf": [{"type": "string"}, {"type": "string", "format": "date-time"}]}),
]


@pytest.mark.parametrize(("annotation", "expected"), SCHEMAS, ids=lambda value: str(value)[:40])
def test_an_annotation_becomes_its_schema(annotation: Any, expected: Any) -> None:
    found = schema_of(annotation)["properties"]["p"]
    if expected is None:
        assert found["description"] == "Any of them"
    else:
        assert found == expected


def test_a_tuple_has_its_length_in_the_schema() -> None:
    found = schema_of(tuple[int, str])["properties"]["p"]
    assert (found["minItems"], found["maxItems"]) == (2, 2)


@pytest.mark.parametrize("kind", [Point, Address, list[Point], dict[str, Address], Point | None])
def test_fields_that_a_class_does_not_have_are_refused_by_its_schema(kind: Any) -> None:
    (definition,) = schema_of(kind)["$defs"].values()
    assert definition["additionalProperties"] is False


def test_required_defaults_and_docstring_reach_the_schema() -> None:
    def weather(city: str, /, days: int = 3, *, unit: Colour = Colour.RED, note: str = None) -> dict[str, int]:  # type: ignore[assignment]  # noqa: RUF013
        """The weather
        in a city.

        More words.

        Args:
            city (str): Where,
                in full.
            days: How many.

        Returns:
            days: not this one
        """
        return {}

    found = only(weather)
    properties = found.input_schema["properties"]
    assert found.address == "local.weather"
    assert found.description == "The weather in a city."
    assert found.parameters == ("city", "days", "unit", "note")
    assert found.input_schema["required"] == ["city"]
    assert found.input_schema["additionalProperties"] is False
    assert properties["city"]["description"] == "Where, in full."
    assert properties["days"] == {"type": "integer", "default": 3, "description": "How many."}
    assert properties["unit"]["default"] == "red"
    assert {"type": "null"} in properties["note"]["anyOf"]
    assert found.output_schema == {"type": "object", "additionalProperties": {"type": "integer"}}


@pytest.mark.parametrize(
    "docstring",
    [
        "Does.\n\nParameters\n----------\na : int\n    The first.\nb\n    The second.\n\nReturns\n-------\nint\n    It.",
        "Does.\n\n:param a: The first.\n:param str b: The second.\n:returns: it",
        "Does.\n\nArguments:\n  a: The first.\n  b (int, optional): The second.",
    ],
)
def test_numpy_sphinx_and_google_docstrings_are_read(docstring: str) -> None:
    def f(a: int, b: int = 1) -> None: ...

    f.__doc__ = docstring
    found = only(f)
    said = {name: schema.get("description") for name, schema in found.input_schema["properties"].items()}
    assert found.description == "Does."
    assert said == {"a": "The first.", "b": "The second."}


def test_keyword_arguments_open_the_schema() -> None:
    def f(a: int, **rest: Any) -> None: ...
    def g(**rest: int) -> None: ...

    assert only(f).input_schema["additionalProperties"] is True
    assert only(g).input_schema["additionalProperties"] == {"type": "integer"}


def test_a_return_annotation_that_plain_data_cannot_show_gives_no_output_schema() -> None:
    def f() -> threading.Lock: ...  # type: ignore[empty-body]

    assert only(f).output_schema is None


def refusals() -> list[tuple[Any, tuple[str, ...]]]:
    def star(*things: int) -> None: ...
    def odd(a: int, lock: threading.Lock) -> None: ...  # type: ignore[valid-type]
    def ghost(a: Nowhere) -> None: ...  # type: ignore[name-defined]  # noqa: F821
    def search(q: str) -> None: ...
    def rows() -> Any:
        yield 1

    def then() -> None: ...
    def constructor() -> None: ...
    def one() -> None: ...

    twin = tool(name="one")(lambda: None)
    return [
        ([star], ("star", "things", "list")),
        ([odd], ("odd", "lock")),
        ([ghost], ("ghost", "Nowhere")),
        ([search], ("search", "built-in")),
        ([rows], ("rows", "yields")),
        ([then], ("then",)),
        ([constructor], ("constructor",)),
        ([lambda: None], ("<lambda>", "identifier")),
        ([tool(name="a-b")(one)], ("a-b",)),
        ([{"__proto__": star}], ("__proto__",)),
        ([{"one": int.__add__}, {"one": twin}], ("one", "add", "lambda")),
        ([5], ("5",)),
        ("abc", ("abc",)),
    ]


@pytest.mark.parametrize(("tools", "told"), refusals(), ids=lambda value: "-".join(value) if type(value) is tuple else "")
def test_what_cannot_be_a_tool_is_refused_by_name_when_the_source_is_made(tools: Any, told: tuple[str, ...]) -> None:
    with pytest.raises(OptionError) as refusal:
        functions(tools)
    for word in told:
        assert word in f"{refusal.value.message} {refusal.value.hint}"


def test_reserved_names_are_free_outside_the_root() -> None:
    def search(q: str) -> None: ...

    assert only(search, "library").address == "library.search"


def test_the_decorator_works_bare_and_with_arguments_and_leaves_the_function_alone() -> None:
    @tool
    def plain(a: int) -> int:
        return a

    @tool(name="other", description="Says so.", writes=True)
    def named(a: int) -> int:
        return a

    assert plain(3) == named(3) == 3
    assert not only(plain).writes
    found = only(named)
    assert (found.address, found.description, found.writes) == ("local.other", "Says so.", True)


CONVERSIONS = [
    (Point, {"x": 1, "tags": ["a"]}, Point(1, 0, {"a"})),
    (Point | Circle, {"radius": 2}, Circle(2.0)),
    (Colour, "blue", Colour.BLUE),
    (datetime, "2026-01-02T03:04:05Z", datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
    (datetime, datetime(2026, 1, 2, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)),
    (date, datetime(2026, 1, 2, 23, tzinfo=UTC), date(2026, 1, 2)),
    (str, datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
    (str | datetime, "2026-01-02", "2026-01-02"),
    (bytes | str, "abcd", "abcd"),
    (bytes, b"\0\1", b"\0\1"),
    (bytes, "AAE=", b"\0\1"),
    (set[int], [1, 2, 2], {1, 2}),
    (tuple[int, str], [1, "a"], (1, "a")),
    (int, 5.0, 5),
    (float, 5, 5.0),
    (dict[int, str], {"1": "a"}, {1: "a"}),
    (Decimal, "1.10", Decimal("1.10")),
    (list[Point | Circle], [{"x": 1}, {"radius": 1.5}], [Point(1), Circle(1.5)]),
    (Any, {"a": [1]}, {"a": [1]}),
]


@pytest.mark.parametrize(("kind", "given", "expected"), CONVERSIONS, ids=lambda value: str(value)[:30])
async def test_arguments_arrive_in_their_annotated_types(kind: Any, given: Any, expected: Any) -> None:
    async def f(p: Any) -> Any:
        return p

    f.__annotations__["p"] = kind
    found = await call(f, p=given)
    assert found == expected
    assert type(found) is type(expected)


async def test_a_pydantic_like_model_is_validated_by_itself() -> None:
    async def f(model: Model, more: list[Model] | None = None) -> Any:
        return model

    f.__annotations__ |= {"model": Model, "more": list[Model] | None}
    schema = only(f).input_schema
    assert schema["properties"]["model"]["properties"]["n"] == {"$ref": "#/$defs/Small"}
    assert schema["properties"]["model"]["additionalProperties"] is False
    assert schema["$defs"]["Small"] == {"type": "integer", "minimum": 1}
    assert (await call(f, model={"n": 3})).n == 3


async def test_a_value_that_does_not_convert_is_a_bad_argument() -> None:
    async def f(when: datetime) -> None: ...

    f.__annotations__["when"] = datetime
    with pytest.raises(ToolError) as failure:
        await call(f, when="not a date")
    assert failure.value.code == "bad-arguments"
    assert "when" in failure.value.message


async def test_positional_only_parameters_get_their_values() -> None:
    def f(a: int, b: int = 2, /, c: int = 3, **rest: int) -> tuple[Any, ...]:
        return a, b, c, rest

    assert await call(f, a=1) == (1, 2, 3, {})
    assert await call(f, a=1, b=5, c=6, d=7) == (1, 5, 6, {"d": 7})
    assert await call(f, a=1, c=6, z=0) == (1, 2, 6, {"z": 0})


class Shop:
    def __init__(self, stock: int) -> None:
        self.stock = stock

    def buy(self, n: int = 1) -> int:
        """Buys."""
        self.stock -= n
        return self.stock

    async def __call__(self, n: int) -> int:
        return self.stock + n


async def test_bound_methods_partials_and_callable_objects_are_callables_too() -> None:
    shop = Shop(10)
    assert await call(shop.buy, n=3) == 7
    assert await call(functools.partial(shop.buy, 2)) == 5
    assert await call({"ask": shop}, n=1) == 6
    assert only(shop.buy).parameters == ("n",)
    assert only(shop.buy).description == "Buys."


async def test_a_blocking_function_blocks_nobody_and_keeps_the_context() -> None:
    gate = threading.Event()
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="none")

    def waits() -> tuple[bool, str]:
        return gate.wait(DEADLINE), variable.get()

    async def opens() -> None:
        gate.set()

    source = functions([waits, opens])
    first, second = source.tools()
    variable.set("mine")
    async with asyncio.timeout(DEADLINE):
        waiting = asyncio.create_task(source.call(first, {}))
        await asyncio.sleep(0)
        await source.call(second, {})
        assert await waiting == (True, "mine")
    await source.close()


async def test_more_blocking_calls_than_threads_all_end() -> None:
    def work(n: int) -> int:
        return n

    source = functions([work])
    (found,) = source.tools()
    async with asyncio.timeout(DEADLINE):
        assert await asyncio.gather(*(source.call(found, {"n": n}) for n in range(300))) == list(range(300))
    await source.close()


async def test_functions_that_run_on_for_nobody_keep_others_from_nothing_until_there_are_too_many() -> None:
    gate, begun = threading.Event(), threading.Semaphore(0)

    def stuck() -> None:
        begun.release()
        gate.wait(4 * DEADLINE)

    def quick() -> str:
        return "done"

    async def leave_one() -> None:
        task = asyncio.create_task(threads.run(stuck, (), {}))
        await asyncio.to_thread(begun.acquire)
        task.cancel()
        with pytest.raises(asyncio.CancelledError, match=STILL_RUNNING):
            await task

    threads = FunctionThreads("few", max_threads=2)
    async with asyncio.timeout(4 * DEADLINE):
        await leave_one()
        await leave_one()
        with pytest.raises(ToolError, match="2 functions of `few` still run") as busy:
            threads.check()
        assert (busy.value.code, busy.value.retryable) == ("tool-busy", True)
        gate.set()
        while threads._abandoned:  # noqa: ASYNC110 - what ends it is another thread, a moment after its function
            await asyncio.sleep(0)
        assert await threads.run(quick, (), {}) == "done"
    threads.close()


async def test_a_job_that_waits_is_taken_over_when_a_thread_is_given_up() -> None:
    gate, begun = threading.Event(), threading.Event()

    def stuck() -> None:
        begun.set()
        gate.wait(4 * DEADLINE)

    threads = FunctionThreads("one", max_threads=1)
    async with asyncio.timeout(4 * DEADLINE):
        first = asyncio.create_task(threads.run(stuck, (), {}))
        await asyncio.to_thread(begun.wait)
        second = asyncio.create_task(threads.run(str, (5,), {}))
        dropped = asyncio.create_task(threads.run(str, (6,), {}))
        await asyncio.sleep(0)
        dropped.cancel()
        first.cancel()
        with pytest.raises(asyncio.CancelledError, match=STILL_RUNNING):
            await first
        assert await second == "5"
        with pytest.raises(asyncio.CancelledError) as plain:
            await dropped
        assert plain.value.args == ()
    gate.set()
    threads.close()


async def test_an_inline_function_runs_in_the_loop() -> None:
    @tool(inline=True)
    def where() -> int:
        return threading.get_ident()

    def elsewhere() -> int:
        return threading.get_ident()

    assert await call(where) == threading.get_ident()
    assert await call(elsewhere) != threading.get_ident()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("error", [StopIteration(3), SystemExit(2), KeyError("k")])
async def test_awkward_exceptions_leave_a_function_as_exceptions(inline: bool, error: BaseException) -> None:
    @tool(inline=inline)
    def fails() -> None:
        raise error

    with pytest.raises((ToolError, RuntimeError, StopIteration, KeyError)):
        await call(fails)


async def test_a_function_that_still_blocks_does_not_hold_up_a_cancelled_caller() -> None:
    gate, started = threading.Event(), threading.Event()

    def stuck() -> None:
        started.set()
        gate.wait(DEADLINE)

    source = functions([stuck])
    task = asyncio.create_task(source.call(source.tools()[0], {}))
    await asyncio.to_thread(started.wait, DEADLINE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        async with asyncio.timeout(DEADLINE):
            await task
    gate.set()
    await source.close()


class Pair(NamedTuple):
    a: int
    b: str


async def test_a_named_tuple_parameter_takes_an_array() -> None:
    async def f(pair: Pair) -> Any:
        return pair

    f.__annotations__["pair"] = Pair
    assert await call(f, pair=[1, "x"]) == Pair(1, "x")
