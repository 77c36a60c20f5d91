"""JSON text is bounded before a JSON library builds values from it."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport import bounded_json


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
    bounded_json.check(text, max_depth=real)
    if real:
        with pytest.raises(bounded_json.JsonLimitError):
            bounded_json.check(text, max_depth=real - 1)


def test_brackets_and_commas_in_strings_do_not_count() -> None:
    assert bounded_json.read(b'["' + b"[,{" * 2_000_000 + b'"]')[0][:3] == "[,{"
    assert bounded_json.read(b'["' + b'\\"[' * 1_000_000 + b'"]')[0][:2] == '"['


@pytest.mark.parametrize("tail", [b"", b"\\"])
def test_an_unclosed_string_takes_linear_time(tail: bytes) -> None:
    with pytest.raises(bounded_json.JsonLimitError):
        bounded_json.read(b"," * (bounded_json.MAX_ITEMS + 1) + b'"' + b'\\"' * 5_000_000 + tail)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"[[],[],[]]", "holds more than 3 lists and objects"),
        (b"[1,2,3,4,5,6]", "holds more than 4 items"),
        (b'["[", "a", "b", "[["]', "holds more than 3 strings"),
        (b"[[[1]]]", "is nested deeper than 2 levels"),
    ],
)
def test_the_error_names_the_limit(text: bytes, problem: str) -> None:
    with pytest.raises(bounded_json.JsonLimitError, match=f"^{problem}$"):
        bounded_json.check(text, max_containers=3, max_items=4, max_strings=3, max_depth=2)


@pytest.mark.parametrize("text", [b"[[[", b"]]][[[", b'[[["'])
def test_brackets_that_do_not_match_are_no_json_when_the_depth_is_checked(text: bytes) -> None:
    with pytest.raises(ValueError, match="brackets"):
        bounded_json.check(text, max_depth=2)
    bounded_json.check(text)
