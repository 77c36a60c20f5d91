"""Edits of JSON with comments change one member and nothing else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.errors import OptionError
from gloveport.surfaces.cli.connect.jsonc import parse, put, remove

COMMENTED = """// servers of mine
{
    "a": 1, // one
    "servers": {
        /* the old one */
        "old": {"command": "x", "args": ["1", /* why */ "2"]}, // keep
    },
}
"""


def test_comments_trailing_commas_and_indentation_stay() -> None:
    text = put(COMMENTED, ("servers", "new"), {"command": "y"})
    assert text == COMMENTED.replace("// keep\n", '// keep\n        "new": {\n            "command": "y"\n        }\n')
    assert parse(text).comments == parse(COMMENTED).comments


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", '{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ("\n\n", '{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ("// mine\n", '// mine\n{\n  "s": {\n    "n": 1\n  }\n}\n'),
        ("{}", '{\n  "s": {\n    "n": 1\n  }\n}'),
        ('{"a": 2}\n', '{"a": 2,\n  "s": {\n    "n": 1\n  }\n}\n'),
        ('{\n\t"a": 2 // two\n}', '{\n\t"a": 2, // two\n\t"s": {\n\t\t"n": 1\n\t}\n}'),
        ('{\r\n  "s": {}\r\n}\r\n', '{\r\n  "s": {\r\n    "n": 1\r\n  }\r\n}\r\n'),
        ('{\n  "s": { /* none */ }\n}', '{\n  "s": { /* none */\n    "n": 1\n  }\n}'),
        ('{"s": {"n": [1, 2]}, "b": 3}', '{"s": {"n": 1}, "b": 3}'),
        ('\ufeff{"s": {"n": 0}}', '\ufeff{"s": {"n": 1}}'),
    ],
)
def test_a_member_is_put_where_it_belongs(before: str, after: str) -> None:
    assert put(before, ("s", "n"), 1) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('{"a": 1, "b": 2}', '{"a": 1 }'),
        ('{"b": 2, "a": 1}', '{ "a": 1}'),
        ('{"b": 2}', "{}"),
        ('{\n  "a": 1,\n  "b": 2\n}', '{\n  "a": 1\n}'),
        ('{\n  "a": 1, // one\n  "b": 2,\n}', '{\n  "a": 1, // one\n}'),
        ('{\n  "b": 2, // two\n  "a": 1\n}', '{\n // two\n  "a": 1\n}'),
    ],
)
def test_a_member_is_removed_with_its_comma_and_no_comment(before: str, after: str) -> None:
    assert remove(before, ("b",)) == after
    assert parse(after).comments == parse(before).comments


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": }', "line 1, column 7: a value is missing here"),
        ('{\n  "a": 1\n  "b": 2\n}', "line 3, column 3: a `,` or `}` is missing here"),
        ("{'a': 1}", "line 1, column 2: a key in double quotes"),
        ('{"a" 1}', "line 1, column 6: a `:` is missing here"),
        ('{"a": 1', "a `,` or `}` is missing here"),
        ('{"a": 1} x', "line 1, column 10: there is text after the end"),
        ('{"a": 1, "a": 2}', 'line 1, column 10: the key "a" is there twice'),
        ('{"a": /* never ends }', "a value is missing here"),
        ('{"a": "\\x"}', "this is not a JSON value"),
        ("[" * 200 + "]" * 200, "nested too deeply"),
        ("{,}", "a key in double quotes"),
        ("[,]", "a value is missing here"),
    ],
)
def test_what_is_not_json_with_comments_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(OptionError) as caught:
        parse(text)
    assert said in caught.value.message


@pytest.mark.parametrize("text", ["[1]", "3", '{"s": [1]}', '{"s": null}'])
def test_a_value_that_is_no_object_is_not_written_into(text: str) -> None:
    with pytest.raises(OptionError) as caught:
        put(text, ("s", "n"), 1)
    assert "is not an object" in caught.value.message


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def _spelled(draw: st.DrawFn, value: Any) -> str:
    """Return the value as a person may write it: with comments, spaces and trailing commas anywhere."""
    gap = draw(st.sampled_from(["", " ", "\n  ", "/* c */", "// d\n", "\r\n\t"]))
    if isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else [(None, item) for item in value]
        parts = [("" if key is None else f"{json.dumps(key)}{gap}:") + draw(_spelled(item)) for key, item in items]
        tail = "," if parts and draw(st.booleans()) else ""
        body = ",".join(parts) + tail + gap
        return gap + ("{" + body + "}" if isinstance(value, dict) else "[" + body + "]") + gap
    return gap + json.dumps(value) + gap


@given(st.data())
def test_put_and_remove_leave_the_rest_of_the_document_unchanged(data: st.DataObject) -> None:
    value = data.draw(st.dictionaries(st.text(max_size=4), _VALUES, max_size=4))
    text = data.draw(_spelled(value))
    before = parse(text)
    assert before.root.data == value
    servers = value.get("s") if isinstance(value.get("s"), dict) else {}
    if isinstance(value.get("s", {}), dict):
        after = parse(put(text, ("s", "n"), {"x": [1]}))
        assert after.root.data == {**value, "s": {**servers, "n": {"x": [1]}}}
        if "n" not in servers:
            assert sorted(after.comments) == sorted(before.comments)
    if value:
        key = data.draw(st.sampled_from(sorted(value)))
        assert parse(remove(text, (key,))).root.data == {other: value[other] for other in value if other != key}
