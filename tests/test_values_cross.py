"""The table of values that cross the border, in both directions, through real engines (design §2)."""

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gloveport import ErrorValue, Gloveport

MOMENT = datetime(2026, 3, 4, 5, 6, 7, 89_000, tzinfo=UTC)

# JavaScript expression, the Python value, and a JavaScript test that the value passes when it comes from Python.
TABLE: list[tuple[str, Any, str]] = [
    ("null", None, "v === null"),
    ("true", True, "v === true"),
    ("42", 42, "v === 42"),
    ("-1.5", -1.5, "v === -1.5"),
    ("9007199254740991", 2**53 - 1, "v === 9007199254740991"),
    ("9007199254740993n", 2**53 + 1, "v === 9007199254740993n"),
    ("-(2n ** 200n)", -(2**200), "v === -(2n ** 200n)"),
    ("Infinity", math.inf, "v === Infinity"),
    ("-Infinity", -math.inf, "v === -Infinity"),
    ("1e300", 1e300, "v === 1e300"),
    ("'text \\u{1F600} \\u0000 \\u2028'", "text \U0001f600 \x00 \u2028", "v === 'text \\u{1F600} \\u0000 \\u2028'"),
    ("[1, [2, []]]", [1, [2, []]], "JSON.stringify(v) === '[1,[2,[]]]'"),
    ("({a: {b: null}})", {"a": {"b": None}}, 'JSON.stringify(v) === \'{"a":{"b":null}}\''),
    (
        "({$: 1, $$: 2, $v: {$: 'bytes'}})",
        {"$": 1, "$$": 2, "$v": {"$": "bytes"}},
        "v.$ === 1 && v.$$ === 2 && v.$v.$ === 'bytes'",
    ),
    (
        'JSON.parse(\'{"__proto__": {"x": 1}}\')',
        {"__proto__": {"x": 1}},
        "Object.hasOwn(v, '__proto__') && v.x === undefined",
    ),
    (
        f"new Date({int(MOMENT.timestamp() * 1000)})",
        MOMENT,
        f"v instanceof Date && +v === {int(MOMENT.timestamp() * 1000)}",
    ),
    ("new Uint8Array([0, 255, 7])", b"\x00\xff\x07", "v instanceof Uint8Array && v.join() === '0,255,7'"),
    ("new Map([[1, 'a'], [true, 'b']])", {1: "b"}, ""),
    ("new Map([[1, 'a'], [2, {x: 1}]])", {1: "a", 2: {"x": 1}}, "v instanceof Map && v.get(2).x === 1"),
    ("new Set(['a', 'b'])", {"a", "b"}, "v instanceof Set && v.has('a') && v.size === 2"),
    (
        "new Error('outer', {cause: new TypeError('inner')})",
        ErrorValue("Error", "outer", ErrorValue("TypeError", "inner")),
        "v instanceof Error && v.message === 'outer' && v.cause.name === 'TypeError' && v.cause.message === 'inner'",
    ),
    (
        "Object.assign(new RangeError('r'), {limit: 5})",
        ErrorValue("RangeError", "r", None, {"limit": 5}),
        "v.name === 'RangeError' && v.limit === 5",
    ),
]


@pytest.mark.parametrize(("script", "value", "_check"), TABLE, ids=[row[0] for row in TABLE])
async def test_a_value_comes_out(port: Gloveport, script: str, value: Any, _check: str) -> None:
    outcome = await port.run(f"return ({script})")
    assert outcome.error is None
    assert outcome.value == value
    assert type(outcome.value) is type(value)
    asked = await port.run(f"return await tools.echo({{value: {script}}})")
    assert asked.calls[0].args == {"value": value}


@pytest.mark.parametrize(
    ("_script", "value", "check"), [row for row in TABLE if row[2]], ids=[row[0] for row in TABLE if row[2]]
)
async def test_a_value_goes_in_as_input_and_as_reply(port: Gloveport, _script: str, value: Any, check: str) -> None:
    given_in = await port.run(f"const v: any = input; return [{check}, v]", input=value)
    assert given_in.error is None
    assert given_in.value == [True, value]

    async def give() -> Any:
        return value

    if not isinstance(value, ErrorValue):
        async with Gloveport(tools=[give], spare=0) as own:
            replied = await own.run(f"const v: any = await tools.give(); return {check}")
            assert replied.value is True


@pytest.mark.parametrize(
    ("script", "value"),
    [
        ("undefined", None),
        ("[1, undefined, , 2]", [1, None, None, 2]),
        ("({a: undefined, b: 1})", {"b": 1}),
        ("new Float64Array([1.5, 2])", [1.5, 2]),
        ("new BigInt64Array([5n])", [5]),
        ("new ArrayBuffer(2)", b"\x00\x00"),
        ("new DataView(new ArrayBuffer(3), 1)", b"\x00\x00"),
        ("Buffer.from('ab')", b"ab"),
        ("new URL('https://example.com/a?b=c')", "https://example.com/a?b=c"),
        ("new (class Point { x = 1; y = {z: 2}; #hidden = 3; get sum() { return 3 } })()", {"x": 1, "y": {"z": 2}}),
        ("({toJSON() { return 1 }, x: 5}).x", 5),
        ("new (class { toJSON() { return {mine: 1} } })()", {"mine": 1}),
        ("Object.create(null, {a: {value: 1, enumerable: true}})", {"a": 1}),
        ("new Set([{a: 1}])", [{"a": 1}]),
        ("Object(5n)", 5),
        ("new String('s')", "s"),
        ("2 ** 60", float(2**60)),
        ("await Promise.allSettled([Promise.resolve(1), Promise.reject(new Error('x'))])",
         [{"status": "fulfilled", "value": 1}, {"status": "rejected", "reason": ErrorValue("Error", "x")}]),
    ],
)  # fmt: skip
async def test_near_kin_come_out_as_the_nearest_data(port: Gloveport, script: str, value: Any) -> None:
    outcome = await port.run(f"return ({script})")
    assert outcome.error is None
    assert outcome.value == value


async def test_nan_and_negative_zero_cross_both_ways(port: Gloveport) -> None:
    outcome = await port.run("return [NaN, -0, Number.isNaN(input[0]), Object.is(input[1], -0)]", input=[math.nan, -0.0])
    assert math.isnan(outcome.value[0])
    assert math.copysign(1, outcome.value[1]) == -1
    assert outcome.value[2:] == [True, True]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("{rows: [0, 1, 2, {onClick: () => 1}]}", "result.rows[3].onClick is a function"),
        ("{'odd key': Symbol('s')}", 'result["odd key"] is a symbol'),
        ("[Promise.resolve(1)]", "result[0] is a promise: await it"),
        ("[new Map([[1, 2]]).values()]", "result[0] is an iterator"),
        ("tools.add", "result is a function"),
        ("[new Date(NaN)]", "result[0] is an invalid Date"),
        ("new Map([[{}, 1]])", None),
        ("(() => { const a: any = {}; a.self = a; return a })()", "result"),
        ("(() => { let a: any = []; for (let i = 0; i < 1e6; i++) a = [a]; return a })()", "result"),
    ],
)
async def test_what_has_no_meaning_on_the_other_side_is_an_error_that_names_the_path(
    port: Gloveport, script: str, message: str | None
) -> None:
    outcome = await port.run(f"return {script}")
    assert outcome.error is not None
    assert outcome.error.code in ("bad-value", "wire-violation")
    if message is not None:
        assert outcome.error.code == "bad-value"
        assert message in outcome.error.message


async def test_a_bad_argument_is_a_catchable_error_that_names_the_path(port: Gloveport) -> None:
    outcome = await port.run("return await tools.echo({value: {f: () => 1}}).catch((e: any) => [e.code, e.message])")
    assert outcome.value[0] == "bad-value"
    assert ".value.f is a function" in outcome.value[1]
    assert outcome.calls == ()


async def test_a_tool_result_that_is_not_data_is_a_tool_error() -> None:
    async def odd() -> Any:
        return {"rows": [object()]}

    async with Gloveport(tools=[odd], spare=0) as own:
        outcome = await own.run("return await tools.odd().catch((e: any) => [e.code, e.message])")
    assert outcome.value[0] == "bad-value"
    assert "rows[0]" in outcome.value[1]


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


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(plain, max_size=40))
async def test_any_plain_data_makes_the_round_trip(port: Gloveport, values: list[Any]) -> None:
    outcome = await port.run("return input", input=values)
    assert outcome.value == values


async def test_half_a_surrogate_pair_becomes_the_replacement_character(port: Gloveport) -> None:
    outcome = await port.run("console.log('log \\ud800'); emit('\\udc00'); return {'\\ud800': ['\\u{1F600}'.slice(0, 1)]}")
    assert outcome.value == {"�": ["�"]}
    assert outcome.logs[0].text == "log �"
    assert outcome.emitted == ("�",)
    outcome = await port.run("throw new Error('\\ud800')")
    assert outcome.error is not None
    assert outcome.error.message == "�"


@pytest.mark.parametrize(
    "script", ["/a/", "new WeakMap()", "new Response('x')", "new Headers()", "new Intl.NumberFormat()"]
)
async def test_an_object_whose_data_is_hidden_is_refused_instead_of_lost(port: Gloveport, script: str) -> None:
    outcome = await port.run(f"return {{a: {script}}}")
    assert outcome.error is not None
    assert outcome.error.code == "bad-value"
    assert outcome.error.message.startswith("result.a is a")
