"""How values cross, on the Python side alone; the table through real engines is in tests/test_values_cross.py."""

import contextlib
import math
from datetime import UTC, date, datetime, timedelta, timezone
from enum import IntEnum, StrEnum
from functools import cache

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.errors import ValueCrossingError, WireError
from gloveport.types import ErrorValue
from gloveport.values import encode, from_wire, to_json
from tests.holding import MAX_HOLD_MS, cpu_ms, longest_hold_ms


class Colour(StrEnum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


def crossed(value: object) -> object:
    return from_wire(orjson.loads(encode(value)))


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.just(UTC)).map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text() | st.sampled_from(["$", "$$", "$v", "__proto__"]), inner, max_size=5)
        | st.dictionaries(st.integers(), inner, min_size=1, max_size=3)
    ),
    max_leaves=20,
)


@given(plain)
def test_plain_data_comes_back_as_it_was(value: object) -> None:
    assert crossed(value) == value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ((1, 2), [1, 2]),
        ({1, 2}, {1, 2}),
        (frozenset("a"), {"a"}),
        (bytearray(b"ab"), b"ab"),
        (memoryview(b"ab"), b"ab"),
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (True, True),
        (date(2026, 1, 2), "2026-01-02"),
        (datetime(2026, 1, 2, 3, 4, 5), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)),
        (datetime(2026, 1, 2, tzinfo=timezone(timedelta(hours=2))), datetime(2026, 1, 1, 22, tzinfo=UTC)),
        (float("inf"), float("inf")),
        (ErrorValue("E", "m", ErrorValue("C", "c"), {"k": 1}), ErrorValue("E", "m", ErrorValue("C", "c"), {"k": 1})),
        (ValueError("no"), ErrorValue("ValueError", "no")),
    ],
)
def test_other_kinds_arrive_as_their_nearest_kin(value: object, expected: object) -> None:
    assert crossed(value) == expected


def test_negative_zero_and_nan_keep_their_nature() -> None:
    assert math.copysign(1, crossed(-0.0)) == -1  # pyright: ignore[reportArgumentType]
    assert math.isnan(crossed(float("nan")))  # pyright: ignore[reportArgumentType]


def test_what_cannot_cross_is_named_by_its_path() -> None:
    with pytest.raises(ValueCrossingError, match=r"^result\.rows\[1\]\['on click'\] is a function"):
        encode({"rows": [1, {"on click": print.__class__ and (lambda: 1)}]}, "result")


@pytest.mark.parametrize("key", [(1, 2), frozenset({1}), ValueError("x")])
def test_a_key_that_is_no_simple_value_is_refused(key: object) -> None:
    with pytest.raises(ValueCrossingError, match=rf"^input\.a has a key of class {type(key).__name__}"):
        encode({"a": {1: "a", key: "b"}}, "input")


def test_a_value_that_contains_itself_is_an_error() -> None:
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(ValueCrossingError, match="contains itself"):
        encode(loop)


@pytest.mark.parametrize(
    "tag",
    [
        {"$": "bigint", "v": "x"},
        {"$": "bigint", "v": "9" * 100_000},
        {"$": "bytes", "v": "@@@"},
        {"$": "date", "v": 1e300},
        {"$": "date", "v": True},
        {"$": "map", "v": [[1]]},
        {"$": "map", "v": [[[1], 2]]},
        {"$": "set", "v": 5},
        {"$": "error", "v": {"name": 1}},
        {"$": "nothing"},
        {"$": ["list"]},
        {"$": "number", "v": None},
    ],
)
def test_a_malformed_tag_is_a_wire_error(tag: object) -> None:
    with pytest.raises(WireError):
        from_wire(tag)


@given(
    st.recursive(
        st.none() | st.text() | st.integers(),
        lambda i: st.lists(i) | st.dictionaries(st.sampled_from(["$", "v", "a"]), i),
    )
)
def test_decoding_any_json_gives_a_value_or_a_wire_error(value: object) -> None:
    with contextlib.suppress(WireError):
        from_wire(value)


def test_at_a_json_surface_the_tags_become_plain_json() -> None:
    value = {
        "big": 2**60,
        "nan": float("nan"),
        "at": datetime(2026, 1, 2, tzinfo=UTC),
        "raw": b"\x00\x01",
        "set": {2, 1},
        "map": {1: 2},
        "error": ErrorValue("E", "m", ErrorValue("C", "c"), {"code": "x"}),
    }
    assert orjson.loads(orjson.dumps(to_json(value))) == {
        "big": str(2**60),
        "nan": None,
        "at": "2026-01-02T00:00:00.000Z",
        "raw": "AAE=",
        "set": [1, 2],
        "map": {"1": 2},
        "error": {"name": "E", "message": "m", "code": "x", "cause": {"name": "C", "message": "c"}},
    }


PRIME = 2**61 - 1


@cache
def colliding(count: int) -> list[int]:
    """Return integers that a dict of this size looks for in one place after the other, although their hashes differ."""
    bits = (count * 3 // 2).bit_length()
    mask, slots, slot = (1 << bits) - 1, [], 0
    for _ in range(count):
        slots.append(slot)
        slot = (5 * slot + 1) & mask
    taken, keys, high = set(slots[: count // 2]), slots[: count // 2], 1
    while len(keys) < count:
        key, high = high << bits, high + 1
        place, perturb = key & mask, key
        while perturb and place in taken:
            perturb >>= 5
            place = (place * 5 + perturb + 1) & mask
        if not perturb and place in taken:
            keys.append(key)
            taken.add(slots[len(keys) - 1])
    return keys


@pytest.mark.parametrize("kind", ["map", "set"])
@pytest.mark.parametrize("same", [pytest.param("slots", marks=pytest.mark.long), "hashes"])
def test_colliding_numbers_within_the_limits_take_milliseconds(kind: str, same: str) -> None:
    numbers = colliding(2900) if same == "slots" else [PRIME * number for number in range(1, 480)]
    keys = [number if number < 2**53 else {"$": "bigint", "v": str(number)} for number in numbers]
    value = {"$": kind, "v": [[key, 0] for key in keys] if kind == "map" else keys}
    assert len(from_wire(value)) == len(numbers)
    assert cpu_ms(from_wire, value) < MAX_HOLD_MS


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("nested", [False, True])
def test_colliding_numbers_are_refused_before_they_take_long(wide: bool, nested: bool) -> None:
    keys = [{"$": "bigint", "v": str(PRIME * number)} if wide else 8192 * number for number in range(87_000)]
    pieces = [keys[at : at + 100] for at in range(0, len(keys), 100)] if nested else [keys]
    value = [{"$": "map", "v": [[key, {"$": "set", "v": [key]}] for key in piece]} for piece in pieces]
    with pytest.raises(WireError, match=r"numbers.* as keys of maps or members of sets") as caught:
        from_wire(value)
    assert caught.value.code == "bad-value"
    assert "use strings as keys" in str(caught.value.hint)
    assert longest_hold_ms(from_wire, value) < MAX_HOLD_MS
