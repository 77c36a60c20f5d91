"""Every style and explode, against OpenAPI's table and against RFC 6570 as another library implements it."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import pytest
import uritemplate
from hypothesis import given
from hypothesis import strategies as st

from gloveport.sources.openapi.call import styles

EMPTY, ONE, MANY, RECORD = "", "teal", ["teal", "jade", "rust"], {"x": 4, "y": 8, "z": 15}

# style, explode, and the results for an empty string, a string, a list and an object; None if the style can't express it.
PATHS = [
    ("simple", False, None, "teal", "teal,jade,rust", "x,4,y,8,z,15"),
    ("simple", True, None, "teal", "teal,jade,rust", "x=4,y=8,z=15"),
    ("label", False, ".", ".teal", ".teal,jade,rust", ".x,4,y,8,z,15"),
    ("label", True, ".", ".teal", ".teal.jade.rust", ".x=4.y=8.z=15"),
    ("matrix", False, ";hue", ";hue=teal", ";hue=teal,jade,rust", ";hue=x,4,y,8,z,15"),
    ("matrix", True, ";hue", ";hue=teal", ";hue=teal;hue=jade;hue=rust", ";x=4;y=8;z=15"),
]
QUERIES = [
    ("form", False, "hue=", "hue=teal", "hue=teal,jade,rust", "hue=x,4,y,8,z,15"),
    ("form", True, "hue=", "hue=teal", "hue=teal&hue=jade&hue=rust", "x=4&y=8&z=15"),
    ("spaceDelimited", False, None, None, "hue=teal%20jade%20rust", "hue=x%204%20y%208%20z%2015"),
    ("pipeDelimited", False, None, None, "hue=teal%7Cjade%7Crust", "hue=x%7C4%7Cy%7C8%7Cz%7C15"),
    ("spaceDelimited", True, None, None, "hue=teal&hue=jade&hue=rust", None),
    ("deepObject", True, None, None, None, "hue%5Bx%5D=4&hue%5By%5D=8&hue%5Bz%5D=15"),
]


def query(value: Any, style: str = "form", explode: bool = True, name: str = "hue") -> str:
    return "&".join(f"{key}={text}" for key, text in styles.name_value_pairs(name, value, style, explode))


@pytest.mark.parametrize(("style", "explode", "empty", "one", "many", "record"), PATHS)
def test_path_parameters_are_written_as_the_table_says(
    style: str, explode: bool, empty: Any, one: Any, many: Any, record: Any
) -> None:
    for value, text in zip((EMPTY, ONE, MANY, RECORD), (empty, one, many, record), strict=True):
        if text is not None:
            assert styles.path_text("hue", value, style, explode) == text


@pytest.mark.parametrize(("style", "explode", "empty", "one", "many", "record"), QUERIES)
def test_query_parameters_are_written_as_the_table_says(
    style: str, explode: bool, empty: Any, one: Any, many: Any, record: Any
) -> None:
    for value, text in zip((EMPTY, ONE, MANY, RECORD), (empty, one, many, record), strict=True):
        if text is not None:
            assert query(value, style, explode) == text


texts = st.text(min_size=1)
# The other library sorts the keys of an object.
records = st.dictionaries(texts, texts, min_size=1, max_size=4).map(lambda record: dict(sorted(record.items())))
values = st.one_of(texts, st.lists(texts, min_size=1, max_size=4), records)


@given(value=values, explode=st.booleans())
def test_styles_of_rfc_6570_agree_with_another_implementation_of_it(value: Any, explode: bool) -> None:
    star = "*" if explode else ""
    for style, operator in (("simple", ""), ("label", "."), ("matrix", ";")):
        assert styles.path_text("hue", value, style, explode) == uritemplate.expand(f"{{{operator}hue{star}}}", hue=value)
    assert f"?{query(value, 'form', explode)}" == uritemplate.expand(f"{{?hue{star}}}", hue=value)


@given(st.dictionaries(texts, st.text(), min_size=1, max_size=5))
def test_what_a_server_decodes_from_a_query_is_what_was_given(record: dict[str, str]) -> None:
    assert parse_qsl(query(record), keep_blank_values=True) == list(record.items())


def test_deep_objects_nest_and_their_lists_are_numbered_only_where_parts_must_stay_together() -> None:
    value = {"customer": {"name": "Ada", "tags": ["a", "b"]}, "items": [{"price": 1, "n": 2}, {"price": 3}], "none": None}
    decoded = parse_qsl(query(value, "deepObject", name="q"))
    assert decoded == [
        ("q[customer][name]", "Ada"),
        ("q[customer][tags][]", "a"),
        ("q[customer][tags][]", "b"),
        ("q[items][0][price]", "1"),
        ("q[items][0][n]", "2"),
        ("q[items][1][price]", "3"),
    ]
    assert query(["card", "bank"], "deepObject", name="expand") == "expand%5B%5D=card&expand%5B%5D=bank"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (2**70, "1180591620717411303424"),
        (1.5, "1.5"),
        (3.0, "3"),
        (1e300, "1e300"),
        (b"\xff\xfe", "//4="),
        (datetime(2024, 2, 29, 12, 30, tzinfo=UTC), "2024-02-29T12:30:00Z"),
        ([1, [2, 3]], "[1,[2,3]]"),
        ("plain", "plain"),
    ],
)
def test_a_single_value_is_written_as_json_prints_it(value: Any, text: str) -> None:
    assert styles.text_of(value) == text


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_lacks_are_refused(value: float) -> None:
    with pytest.raises(ValueError, match="can't be sent as a number"):
        styles.text_of(value)


def test_null_is_left_out_of_lists_and_objects() -> None:
    assert query([None, 1, None]) == "hue=1"
    assert query({"a": None, "b": 2}) == "b=2"


@pytest.mark.parametrize("style", ["form", "pipeDelimited", "deepObject"])
@pytest.mark.parametrize("explode", [True, False])
def test_a_value_of_which_nothing_would_be_sent_is_refused(style: str, explode: bool) -> None:
    for value in ([], {}, [None], {"a": None}):
        with pytest.raises(ValueError, match="can't be sent"):
            query(value, style, explode)
    with pytest.raises(ValueError, match="can't be sent"):
        query({"a": 1, "b": {"c": []}}, "deepObject")


def test_reserved_characters_stand_only_where_they_can_not_end_the_value() -> None:
    (pair,) = styles.name_value_pairs("path", "a/b:c?d&e#f+g[h]%20", "form", True, styles.encode_reserved)
    assert pair == ("path", "a/b:c?d%26e%23f%2Bg%5Bh%5D%2520")
