"""The one table of values that cross the border: every value, through every engine, in every direction (design §2)."""

import math
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gloveport import ErrorValue, Gloveport, Outcome
from tests.engines import ENGINES, LACKS, Engine, Per, assert_lacks, program_of, said

NOTHING: Any = object()
SAME: Any = object()


@dataclass(frozen=True)
class Row:
    """A value. Expectations that are left out follow from `out`.

    `made` is how a program makes it (the last line of it is an expression), `out` what the host has when it came out as a
    result or an argument or was emitted. `given` is what the host puts in, and `found` is true in the program for what came
    in as `v`. A row that is `refused` names the path below the value, and why; so does `refused_in` for what the host tries
    to put in. `not_as` names directions in which it means something else.
    """

    name: str
    made: Any = NOTHING
    out: Any = NOTHING
    found: Any = NOTHING
    given: Any = SAME
    refused: Any = None
    refused_in: str | None = None
    not_as: tuple[str, ...] = ()


MOMENT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)
MILLIS = int(MOMENT.timestamp() * 1000)
PY_MOMENT = "datetime.datetime(2026, 3, 4, 5, 6, 7, 89000, tzinfo=datetime.timezone.utc)"
CYCLE: dict[str, Any] = {}
CYCLE["self"] = CYCLE
DEEP: list[Any] = []
for _ in range(500):
    DEEP = [DEEP]
ODD = "é \U0001f600 \x00 \u2028 \\ \" '"

TABLE = (
    # What JSON has.
    Row("null", Per("null", "None"), None, Per("v === null", "v is None")),
    Row("true", Per("true", "True"), True, Per("v === true", "v is True")),
    Row("false", Per("false", "False"), False, Per("v === false", "v is False")),
    Row("an integer", Per("42", "42"), 42, Per("v === 42", "v == 42 and type(v) is int")),
    Row("a fraction", Per("-1.5", "-1.5"), -1.5, Per("v === -1.5", "v == -1.5")),
    Row("a large fraction", Per("1e300", "1e300"), 1e300, Per("v === 1e300", "v == 1e300")),
    Row("a whole float", Per("1", "1.0"), Per(1, 1.0), Per("v === 1", "v == 1 and type(v) is float"), given=1.0),
    Row("an empty string", Per("''", "''"), "", Per("v === ''", "v == ''")),
    Row(
        "a string of odd characters",
        Per(r"""'é \u{1F600} \u0000 \u2028 \\ " \''""", r"""'é \U0001f600 \u0000 \u2028 \\ " \''"""),
        ODD,
        Per(r"""v === 'é \u{1F600} \u0000 \u2028 \\ " \''""", r"""v == 'é \U0001f600 \u0000 \u2028 \\ " \''"""),
    ),
    Row(
        "half a surrogate pair",
        Per(r"'a\ud800b'", r"'a\ud800b'"),
        "a\ufffdb",
        Per(r"v === 'a\ufffdb'", r"v == 'a\ufffdb'"),
        given="a\ud800b",
    ),
    Row("a long string", Per("'x'.repeat(300000)", "'x' * 300000"), "x" * 300_000, Per("v === 'x'.repeat(300000)", "v == 'x' * 300000")),
    Row("arrays", Per("[1, [2, []]]", "[1, [2, []]]"), [1, [2, []]], Per("v[1][1].length === 0", "v == [1, [2, []]]")),
    Row("objects", Per("({a: {b: null}})", "{'a': {'b': None}}"), {"a": {"b": None}}, Per("v.a.b === null", "v == {'a': {'b': None}}")),
    Row(
        "keys that look like tags",
        Per("({$: 1, $$: 2, $v: {$: 'bytes', v: 'AA=='}})", "{'$': 1, '$$': 2, '$v': {'$': 'bytes', 'v': 'AA=='}}"),
        {"$": 1, "$$": 2, "$v": {"$": "bytes", "v": "AA=="}},
        Per("v.$ === 1 && v.$$ === 2 && v.$v.$ === 'bytes'", "v['$'] == 1 and v['$$'] == 2 and v['$v']['$'] == 'bytes'"),
    ),
    Row(
        "a key __proto__",
        Per("""JSON.parse('{"__proto__": {"x": 1}}')""", "{'__proto__': {'x': 1}}"),
        {"__proto__": {"x": 1}},
        Per("Object.hasOwn(v, '__proto__') && v.x === undefined", "v == {'__proto__': {'x': 1}}"),
    ),
    # What JSON does not have.
    Row("undefined", Per("undefined"), None, not_as=("argument",)),  # a parameter that is left out
    Row("undefined in an array", Per("[1, undefined, , 2]"), [1, None, None, 2]),
    Row("undefined in an object", Per("({a: undefined, b: 1})"), {"b": 1}),
    Row("NaN", Per("NaN", "float('nan')"), math.nan, Per("Number.isNaN(v)", "v != v")),
    Row("infinity", Per("Infinity", "float('inf')"), math.inf, Per("v === Infinity", "v == float('inf')")),
    Row("minus infinity", Per("-Infinity", "-float('inf')"), -math.inf, Per("v === -Infinity", "v == -float('inf')")),
    Row("minus zero", Per("-0", "-0.0"), -0.0, Per("Object.is(v, -0)", "str(v) == '-0.0'")),
    Row("2^53 - 1", Per("2 ** 53 - 1", "2 ** 53 - 1"), 2**53 - 1, Per("v === 2 ** 53 - 1", "v == 2 ** 53 - 1")),
    Row("-(2^53 - 1)", Per("-(2 ** 53 - 1)", "-(2 ** 53 - 1)"), -(2**53 - 1), Per("v === -(2 ** 53 - 1)", "v == -(2 ** 53 - 1)")),
    Row("2^53", Per("2n ** 53n", "2 ** 53"), 2**53, Per("v === 2n ** 53n", "v == 2 ** 53")),
    Row("2^53 + 1", Per("2n ** 53n + 1n", "2 ** 53 + 1"), 2**53 + 1, Per("v === 2n ** 53n + 1n", "v == 2 ** 53 + 1")),
    Row("-(2^200)", Per("-(2n ** 200n)", "-(2 ** 200)"), -(2**200), Per("v === -(2n ** 200n)", "v == -(2 ** 200)")),
    Row("a double beyond 2^53", Per("2 ** 60", "2.0 ** 60"), 2.0**60, Per("v === 2 ** 60", "v == 2 ** 60 and type(v) is float")),
    Row("a small bigint", Per("5n"), 5),
    Row("a date", Per(f"new Date({MILLIS})", PY_MOMENT), MOMENT, Per(f"v instanceof Date && +v === {MILLIS}", f"v == {PY_MOMENT}")),
    Row(
        "a datetime of another zone",
        Per(None, "datetime.datetime(2026, 3, 4, 7, 6, 7, 89000, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))"),
        MOMENT,
        Per(f"+v === {MILLIS}", f"v == {PY_MOMENT}"),
        given=MOMENT.astimezone(timezone(timedelta(hours=2))),
    ),
    Row(
        "a datetime without a zone is UTC",
        Per(None, "datetime.datetime(2026, 3, 4, 5, 6, 7, 89000)"),
        MOMENT,
        Per(f"+v === {MILLIS}", f"v == {PY_MOMENT}"),
        given=MOMENT.replace(tzinfo=None),
    ),
    Row(
        "microseconds are cut",
        Per(None, "datetime.datetime(2026, 3, 4, 5, 6, 7, 89999, tzinfo=datetime.timezone.utc)"),
        MOMENT,
        Per(f"+v === {MILLIS}", f"v == {PY_MOMENT}"),
        given=MOMENT.replace(microsecond=89_999),
    ),
    Row(
        "the first day and the last",
        Per("[new Date(-62135596800000), new Date(253402300799999)]", "[datetime.datetime.min, datetime.datetime.max]"),
        [datetime.min.replace(tzinfo=UTC), datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)],
        Per("+v[0] === -62135596800000 && +v[1] === 253402300799999", "[v[0].year, v[1].year] == [1, 9999]"),
    ),
    Row("a day", Per(None, "datetime.date(2026, 3, 4)"), "2026-03-04", Per("v === '2026-03-04'", "v == '2026-03-04'"), given=date(2026, 3, 4)),
    Row("bytes", Per("new Uint8Array([0, 255, 7])", r"b'\x00\xff\x07'"), b"\0\xff\7", Per("v instanceof Uint8Array && v.join() === '0,255,7'", r"v == b'\x00\xff\x07'")),
    Row("no bytes", Per("new Uint8Array(0)", "b''"), b"", Per("v instanceof Uint8Array && v.length === 0", "v == b''")),
    Row(
        "a map",
        Per("new Map([[1, 'a'], [2, {x: 1}]] as any)", "{1: 'a', 2: {'x': 1}}"),
        {1: "a", 2: {"x": 1}},
        Per("v instanceof Map && v.get(2).x === 1", "v == {1: 'a', 2: {'x': 1}}"),
    ),
    Row(
        "a map with dates as keys",
        Per(f"new Map([[new Date({MILLIS}), 1]])", f"{{{PY_MOMENT}: 1}}"),
        {MOMENT: 1},
        Per(f"+[...v.keys()][0] === {MILLIS}", f"v == {{{PY_MOMENT}: 1}}"),
    ),
    Row("a set", Per("new Set(['a', 'b'])", "{'a', 'b'}"), {"a", "b"}, Per("v instanceof Set && v.has('a') && v.size === 2", "v == {'a', 'b'}")),
    Row(
        "an error and its cause",
        Per(
            "Object.assign(new TypeError('outer', {cause: new RangeError('inner')}), {limit: 5})",
            "class RangeError(Exception): pass\ne = TypeError('outer')\ne.__cause__ = RangeError('inner')\ne.limit = 5\ne",
            LACKS,
        ),
        ErrorValue("TypeError", "outer", ErrorValue("RangeError", "inner"), {"limit": 5}),
        Per(
            "v instanceof Error && v.name === 'TypeError' && v.message === 'outer' && v.limit === 5 && v.cause.message === 'inner'",
            "isinstance(v, Exception) and v.name == 'TypeError' and str(v) == 'outer' and v.limit == 5 and str(v.__cause__) == 'inner'",
            "isinstance(v, TypeError) and str(v) == 'outer'",  # its exceptions hold a message, and nothing else
        ),
    ),
    Row("an error", Per("new TypeError('no')", "TypeError('no')"), ErrorValue("TypeError", "no"), Per("v instanceof Error && v.name === 'TypeError' && v.message === 'no'", "isinstance(v, Exception) and v.name == 'TypeError' and str(v) == 'no'", "isinstance(v, TypeError) and str(v) == 'no'")),
    Row("an error of a class that the other side lacks", given=ErrorValue("HttpError", "no"), found=Per("v.name === 'HttpError'", "v.name == 'HttpError'", "isinstance(v, Exception) and str(v) == 'no'")),
    Row(
        "a mix",
        Per(
            f"({{a: [new Map([['k', [NaN, 2n ** 70n]]]), {{$: new Date({MILLIS})}}], b: new Set([1])}})",
            f"{{'a': [{{'k': [float('nan'), 2 ** 70]}}, {{'$': {PY_MOMENT}}}], 'b': {{1}}}}",
        ),
        {"a": [{"k": [math.nan, 2**70]}, {"$": MOMENT}], "b": {1}},
        Per("v.a[0].k[1] === 2n ** 70n && v.b.has(1)", "v['a'][0]['k'][1] == 2 ** 70 and v['b'] == {1}"),
    ),
    # What comes out as the nearest data.
    Row("typed arrays", Per("[new Float64Array([1.5, 2]), new BigInt64Array([5n])]"), [[1.5, 2], [5]]),
    Row("buffers", Per("[new ArrayBuffer(2), new DataView(new ArrayBuffer(3), 1), Buffer.from('ab')]", quickjs="[new ArrayBuffer(2), new DataView(new ArrayBuffer(3), 1), new Uint8Array([97, 98])]"), [b"\0\0", b"\0\0", b"ab"]),
    Row("bytes by other names", Per(None, "[bytearray(2), memoryview(b'ab')]", LACKS), [b"\0\0", b"ab"]),
    Row("a URL", Per("new URL('https://example.com/a?b=c')", quickjs=LACKS), "https://example.com/a?b=c"),
    Row("an instance", Per("new (class Point { x = 1; #hidden = 3; get sum() { return 3 } })()"), {"x": 1}),
    Row("an instance with toJSON", Per("new (class { toJSON() { return {mine: 1} } })()"), {"mine": 1}),
    Row("a dataclass", Per(None, "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\nP(1)"), {"x": 1}),
    Row("a tuple", Per(None, "(1, (2,))"), [1, [2]]),
    Row("a named tuple", Per(None, "from collections import namedtuple\nnamedtuple('Pair', 'a b')(1, 2)"), [1, 2]),
    Row("a deque", Per(None, "from collections import deque\ndeque([1])"), [1]),
    Row("a time of day", Per(None, "datetime.time(1, 2)"), "01:02:00"),
    Row("a path", Per(None, "from pathlib import Path\nPath('/a')"), "/a"),
    Row("a dataclass with a default", Per(None, "import dataclasses\n@dataclasses.dataclass\nclass P:\n    x: int\n    y: int = 2\nP(1)"), {"x": 1, "y": 2}),
    Row("a range", Per(None, "range(3)"), [0, 1, 2]),
    Row("a decimal", Per(None, "import decimal\ndecimal.Decimal('1.10')"), "1.10"),
    Row("a UUID", Per(None, "import uuid\nuuid.UUID(int=1)", LACKS), "00000000-0000-0000-0000-000000000001"),
    Row("a duration", Per(None, "datetime.timedelta(minutes=1, milliseconds=500)"), 60.5),
    Row("an enumeration's member", Per(None, "import enum\nclass C(enum.Enum):\n    RED = 'red'\n[C.RED, {C.RED: 1}]", LACKS), ["red", {"red": 1}]),
    Row("an object without a prototype", Per("Object.create(null, {a: {value: 1, enumerable: true}})"), {"a": 1}),
    Row("boxes", Per("[Object(5n), new String('s'), new Number(2)]"), [5, "s", 2]),
    Row("a set of objects", Per("new Set([{a: 1}])"), [{"a": 1}]),
    Row(
        "settled promises",
        Per("await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('x'))])"),
        [{"status": "fulfilled", "value": 1}, {"status": "rejected", "reason": ErrorValue("Error", "x")}],
    ),
    # What is refused, with the path.
    Row(
        "a function",
        Per("{rows: [0, {onClick: () => 1}]}", "{'rows': [0, {'onClick': len}]}"),
        given={"rows": [0, {"onClick": len}]},
        refused=".rows[1].onClick is a function: only data can cross",
        refused_in=".rows[1].onClick is ",
    ),
    Row("a class", Per("[class A {}]", "class A: pass\n[A]"), given=[Row], refused=Per("[0] is a function", "[0] is a class: only data can cross"), refused_in="[0] is "),
    Row("a symbol", Per("{'odd key': Symbol('s')}"), refused='["odd key"] is a symbol'),
    Row("an object that hides its data", Per("{a: /a/}", "class P: pass\n{'a': P()}"), given={"a": object()}, refused=Per(".a is an object whose data is hidden", ".a is an object of class P: only data can cross; make it a dict or a dataclass"), refused_in=".a is "),
    Row("a response", Per("{a: new Response('x')}", quickjs=LACKS), refused=".a is an object whose data is hidden"),
    Row("a weak map", Per("{a: new WeakMap()}"), refused=".a is an object whose data is hidden"),
    Row("what was not awaited", Per("[Promise.resolve(1)]", "async def f(): pass\n[f()]"), refused=Per("[0] is a promise: await it", "[0] is a coroutine: await it")),
    Row("a call that was not awaited", Per("[tools.give('null')]", "[tools.give('null')]"), refused=Per("[0] is a promise: await it", "[0] is a call or task that was not awaited: await it")),
    Row("an iterator", Per("[new Map([[1, 2]]).values()]", "[iter([1])]"), given=[iter([1])], refused=Per("[0] is an iterator", "[0] is an iterator: use list(…) to make it a list"), refused_in="[0] is "),
    Row("a generator", Per("[(function* () { yield 1 })()]", "def g():\n    yield 1\n[g()]", LACKS), refused=Per("[0] is an iterator", "[0] is a generator")),
    Row("a generator expression", Per(None, "[(n for n in [1])]", None), refused="[0] is a generator"),
    Row("a generator expression, which is a list in Monty", Per(None, None, "[(n for n in [1])]"), [[1]]),
    Row("a module", Per(None, "import json\n[json]"), refused="[0] is a module: only data can cross"),
    Row("a tool", Per("[tools.take]", "[tools.take]"), refused=Per("[0] is a function", "[0] is a function", "[0] is a tool")),
    Row("a group of tools", Per(None, None, "[tools.local]"), refused="[0] is a tool, or a group of tools: call it"),
    Row("no date", Per("[new Date(NaN)]"), refused="[0] is an invalid Date"),
    Row("a date after 9999", Per("[new Date(8.64e15)]"), refused="[0] is a Date outside the years 1 to 9999"),
    Row("a date of no year in UTC", Per(None, "[datetime.datetime(1, 1, 1, tzinfo=datetime.timezone(datetime.timedelta(hours=5)))]"), given=[datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=5)))], refused="[0] is a date outside the years 1 to 9999", refused_in="[0] is a date outside the years 1 to 9999"),
    Row("a key that is no key", Per("[new Map([[{}, 1]])]", "[{(1, 2): 3}]"), given=[{(1, 2): 3}], refused=Per("[0] is a Map with an object as a key", "[0] has a key of class tuple: only text, numbers, dates and bytes can be keys"), refused_in="[0] has a key"),
    Row("an integer without end", Per("[10n ** 5000n]", "[10 ** 5000]"), given=[10**5000], refused="[0] is an integer of more than 4", refused_in="[0] is an integer of more than 4"),
    Row("a cycle", Per("(() => { const a: any = {}; a.self = a; return a })()", "a = {}\na['self'] = a\na"), given=CYCLE, refused=Per(".self.self", ".self.self", ".self is nested too deeply, or contains itself"), refused_in=".self.self"),
    Row("a list that contains itself", Per(None, None, "a = [1]\na.append(a)\na"), refused="[1] is nested too deeply, or contains itself"),
    Row("too deep", Per("(() => { let a: any = []; for (let i = 0; i < 1e6; i++) a = [a]; return a })()", "a = []\nfor _ in range(10 ** 6): a = [a]\na"), given=DEEP, refused="[0][0]", refused_in="[0][0]"),
)  # fmt: skip
BY_NAME = {row.name: row for row in TABLE}

DIRECTIONS = ("input", "reply", "argument", "result", "emit")
INWARDS = ("input", "reply")


def cases() -> list[Any]:
    """Every row in every engine and direction where it has a meaning."""
    found = []
    for engine in ENGINES:
        for row in TABLE:
            for way in DIRECTIONS:
                told = (row.found if row.refused_in is None else row.refused_in) if way in INWARDS else row.made
                if told is not NOTHING and said(told, engine) is not None and way not in row.not_as:
                    found.append(pytest.param(engine, row, way, id=f"{engine.name}-{way}-{row.name}"))
    return found


taken: list[Any] = []


async def take(value: Any) -> None:
    """Keep what was given."""
    taken.append(value)


async def give(name: str) -> Any:
    """The value of a row."""
    row = BY_NAME[name]
    return row.out if row.given is SAME else row.given


@pytest.fixture(scope="module")
async def own() -> AsyncIterator[Gloveport]:
    async with Gloveport(tools=[take, give], spare=2) as opened:
        yield opened


def program(engine: Engine, row: Row, way: str) -> str:
    """The program that sends or takes the value."""
    if way in INWARDS:
        source = "input" if way == "input" else f"await tools.give({row.name!r})"
        if engine.language == "python":
            return f"import datetime\nv = {source}\nbool({program_of(row.found, engine) if row.refused_in is None else 1})"
        return f"const v: any = {source}; return {program_of(row.found, engine) if row.refused_in is None else 1}"
    *setup, value = program_of(row.made, engine).split("\n")
    if engine.language == "python":
        use = {"argument": f"await tools.take(value={value})", "result": value, "emit": f"emit({value})"}[way]
        return "\n".join(["import datetime", *setup, use])
    return {"argument": f"await tools.take({{value: {value}}})", "result": f"return {value}", "emit": f"emit({value})"}[way]


@pytest.mark.integration
@pytest.mark.parametrize(("engine", "row", "way"), cases())
async def test_a_value_crosses_as_the_table_says(own: Gloveport, engine: Engine, row: Row, way: str) -> None:
    options = {"input": await give(row.name)} if way == "input" else {}
    taken.clear()
    outcome = await own.run(program(engine, row, way), language=engine.language, engine=engine.name, **options)
    if said(row.found if way in INWARDS else row.made, engine) is LACKS:
        assert_lacks(outcome, engine)
    elif way in INWARDS and row.refused_in is not None:
        check_refusal(outcome, f"{'input' if way == 'input' else 'result'}{row.refused_in}")
    elif way in INWARDS:
        assert outcome.error is None, outcome.error
        assert outcome.value is True
    elif row.refused:
        check_refusal(outcome, f"{'argument.value' if way == 'argument' else way}{said(row.refused, engine)}")
        assert taken == []
        assert outcome.emitted == ()
    else:
        assert outcome.error is None, outcome.error
        out = {"argument": lambda: taken[0], "result": lambda: outcome.value, "emit": lambda: outcome.emitted[0]}[way]()
        assert_same(out, said(row.out, engine))


def check_refusal(outcome: Outcome, message: str) -> None:
    assert outcome.error is not None
    assert outcome.error.code == "bad-value"
    assert message in outcome.error.message


def assert_same(one: Any, other: Any) -> None:
    """Equal, and of the same types all the way down; NaN is itself, and -0 is not 0."""
    assert type(one) is type(other), (one, other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for key in one:
            assert_same(one[key], other[key])
    elif isinstance(one, list):
        assert len(one) == len(other)
        for left, right in zip(one, other, strict=True):
            assert_same(left, right)
    elif isinstance(one, ErrorValue):
        assert (one.name, one.message, dict(one.data)) == (other.name, other.message, dict(other.data))
        assert_same(one.cause, other.cause)
    else:
        assert repr(one) == repr(other) if isinstance(one, float) else one == other


def test_every_direction_is_there_for_every_engine() -> None:
    ways = {(case.values[0], case.values[2]) for case in cases()}
    assert ways == {(engine, way) for engine in ENGINES for way in DIRECTIONS}


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**64), 2**64)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(max_size=50),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.integration
@pytest.mark.parametrize("engine", ENGINES, ids=str)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(plain, max_size=40))
async def test_any_plain_data_makes_the_round_trip(own: Gloveport, engine: Engine, values: list[Any]) -> None:
    program = "return input" if engine.language == "typescript" else "input"
    outcome = await own.run(program, language=engine.language, engine=engine.name, input=values)
    assert outcome.value == values


@pytest.mark.integration
@pytest.mark.parametrize("engine", ENGINES, ids=str)
async def test_half_a_surrogate_pair_is_replaced_in_logs_and_errors_too(own: Gloveport, engine: Engine) -> None:
    program = r"console.log('log \ud800'); throw new Error('\ud800')"
    if engine.language == "python":
        program = r"print('log \ud800'); raise ValueError('\ud800')"
    outcome = await own.run(program, language=engine.language, engine=engine.name)
    assert outcome.logs[0].text == "log �"
    assert outcome.error is not None
    assert outcome.error.message == "�"
