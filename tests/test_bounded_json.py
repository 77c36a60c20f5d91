"""JSON text is bounded before a JSON library builds values from it."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport import bounded_json
from gloveport.bounded_json import JsonLimits
from tests.holding import MAX_HOLD_MS, longest_hold_ms


@given(
    st.recursive(st.text() | st.none(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=60)
)
def test_the_depth_check_agrees_with_the_real_depth(value: object) -> None:
    def depth(item: object) -> int:
        if isinstance(item, list):
            return 1 + max(map(depth, item), default=0)
        if isinstance(item, dict):
            return 1 + max(map(depth, item.values()), default=0)
        return 0

    text = orjson.dumps(value)
    real = depth(value)
    bounded_json.check(text, JsonLimits(depth=real))
    if real:
        with pytest.raises(bounded_json.JsonLimitError):
            bounded_json.check(text, JsonLimits(depth=real - 1))


def test_brackets_and_commas_in_strings_do_not_count() -> None:
    assert bounded_json.read(b'["' + b"[,{" * 2_000_000 + b'"]')[0][:3] == "[,{"
    assert bounded_json.read(b'["' + b'\\"[' * 1_000_000 + b'"]')[0][:2] == '"['


@pytest.mark.parametrize("tail", [b"", b"\\"])
def test_an_unclosed_string_takes_linear_time(tail: bytes) -> None:
    with pytest.raises(bounded_json.JsonLimitError):
        bounded_json.read(b"[" + b"1," * (JsonLimits().items + 1) + b'"' + b'\\"' * 5_000_000 + tail)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[[],[],[]]", "holds more than 3 lists and objects"),
        (b"[1,2,3,4,5,6]", "holds more than 4 items"),
        (b"[[[1]]]", "is nested deeper than 2 levels"),
    ],
)
def test_the_error_names_the_limit(text: bytes, problem: str) -> None:
    with pytest.raises(bounded_json.JsonLimitError, match=f"^{problem}$"):
        bounded_json.check(text, JsonLimits(containers=3, items=4, depth=2))


@pytest.mark.parametrize("text", [b"[][][", b"]]][[[", b'[][]["'])
def test_brackets_that_do_not_match_are_no_json_when_the_depth_is_checked(text: bytes) -> None:
    with pytest.raises(ValueError, match="brackets"):
        bounded_json.check(text, JsonLimits(depth=2))


ODD_TEXTS = st.text() | st.sampled_from(['"', "\\", '\\"', "[", "},{", ",", "\\\\"])
VALUES = st.recursive(
    ODD_TEXTS | st.integers() | st.booleans() | st.none(),
    lambda inner: st.lists(inner) | st.dictionaries(ODD_TEXTS, inner),
    max_leaves=60,
)


@pytest.mark.parametrize(("piece_bytes", "tail_bytes"), [(7, 3), (16, 4), (100, 20)])
@given(value=VALUES, indent=st.sampled_from([None, 1]), change=st.tuples(st.integers(0), st.sampled_from('[]{},":\\ 1')))
def test_a_text_read_in_pieces_gives_the_same_as_one_read_at_once(
    piece_bytes: int, tail_bytes: int, value: object, indent: int | None, change: tuple[int, str]
) -> None:
    text = json.dumps([value, value], indent=indent).encode()
    place = change[0] % len(text)
    broken = text[:place] + change[1].encode() + text[place + 1 :]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_json, "PIECE_BYTES", piece_bytes)
        patch.setattr(bounded_json, "_TAIL_BYTES", tail_bytes)
        patch.setattr(bounded_json, "_holds_little", lambda data, limits: False)
        assert bounded_json.read(text) == [value, value]
        try:
            expected = msgspec.json.decode(broken)
        except ValueError:
            with pytest.raises(ValueError):
                bounded_json.read(broken)
        else:
            if json.dumps(expected).count('"') == broken.count(b'"'):  # no key occurs twice
                assert json.dumps(bounded_json.read(broken)) == json.dumps(expected)


M = 8 * 2**20
SHAPES: dict[str, Callable[[], bytes]] = {
    "lists": lambda: b"[" + b"[]," * (M // 3) + b"[]]",
    "numbers": lambda: b"[" + b"1," * (M // 2) + b"1]",
    "keys": lambda: b"{" + b",".join(b'"a%d":1' % number for number in range(M // 12)) + b"}",
    "deep lists": lambda: b"[" + (b"[" * 100 + b"]" * 100 + b",") * (M // 201) + b"1]",
    "open": lambda: b"[" * M,
    "closed": lambda: b"]" * M,
    "backslashes": lambda: b'["' + b"\\" * M + b'"' + b",[]" * 200 + b"]",
    "escaped quotes": lambda: b'["' + b'\\"' * (M // 2) + b'"' + b",[]" * 200 + b"]",
    "brackets in strings": lambda: b"[" + b'"[",' * (M // 4) + b"1]",
    "long numbers": lambda: b"[" + (b"9" * 4000 + b",") * (M // 4001) + b"1]",
    "quotes": lambda: b'"' * M,
    "commas": lambda: b"," * M,
    "just many": lambda: b"[" + b'{"a":[1,"x"]},' * 45_000 + b"1]",
}


@pytest.mark.parametrize("shape", SHAPES)
def test_no_text_holds_the_interpreter_lock_for_long(shape: str) -> None:
    assert longest_hold_ms(bounded_json.read, SHAPES[shape](), JsonLimits(), orjson.loads) < MAX_HOLD_MS
