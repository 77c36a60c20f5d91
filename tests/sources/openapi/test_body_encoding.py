"""Request bodies: the bytes of each kind, and values that must not inject anything."""

import email
import email.policy
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.sources.openapi.call import body_encoding
from gloveport.sources.openapi.operation import FieldEncoding, MediaContent

FORM = "application/x-www-form-urlencoded"
DEEP = FieldEncoding(style="deepObject", explode=True)


def form(value: Any, **encodings: FieldEncoding) -> str:
    return body_encoding.encode_body(MediaContent(FORM, "form", encodings), value).data.decode()


def parts(
    value: Any, binary: tuple[str, ...] = (), **encodings: FieldEncoding
) -> list[tuple[Any, str | None, str | None, bytes]]:
    """Return the parts of a multipart body as another library reads them: name, file name, type, bytes."""
    sent = body_encoding.encode_body(MediaContent("multipart/form-data", "multipart", encodings, binary), value)
    whole = b"Content-Type: " + sent.content_type.encode() + b"\r\n\r\n" + sent.data
    message = email.message_from_bytes(whole, policy=email.policy.HTTP)
    return [
        (
            part.get_param("name", header="content-disposition"),
            part.get_filename(),
            part["content-type"] and part.get_content_type(),
            part.get_payload(decode=True),
        )
        for part in message.iter_parts()  # pyright: ignore[reportAttributeAccessIssue]
    ]


def test_json_carries_large_integers_dates_and_bytes() -> None:
    value = {"n": 2**80, "at": datetime(2024, 1, 2, tzinfo=UTC), "raw": b"\0\xff", "none": None, "é": [1.5]}
    sent = body_encoding.encode_body(MediaContent("application/vnd.api+json", "json"), value)
    assert sent.content_type == "application/vnd.api+json"
    assert (
        sent.data
        == '{"n":1208925819614629174706176,"at":"2024-01-02T00:00:00Z","raw":"AP8=","none":null,"é":[1.5]}'.encode()
    )


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.text(),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
    )
)
def test_json_is_what_another_library_reads_back(value: Any) -> None:
    assert orjson.loads(body_encoding.encode_json(value)) == value


@pytest.mark.parametrize("value", [float("nan"), [1, {"a": float("inf")}], {"a": [None, float("-inf")]}])
def test_json_does_not_turn_a_number_that_it_lacks_into_null(value: Any) -> None:
    with pytest.raises(ValueError, match="NaN"):
        body_encoding.encode_json(value)


def test_forms_nest_as_their_encoding_says() -> None:
    value = {
        "amount": 100,
        "metadata": {"order": "7 & 8"},
        "items": [{"price": "p1"}, {"price": "p2"}],
        "expand": ["a", "b"],
    }
    assert parse_qsl(form(value, metadata=DEEP, items=DEEP, expand=DEEP)) == [
        ("amount", "100"),
        ("metadata[order]", "7 & 8"),
        ("items[0][price]", "p1"),
        ("items[1][price]", "p2"),
        ("expand[]", "a"),
        ("expand[]", "b"),
    ]


def test_forms_repeat_a_list_send_an_object_as_json_and_leave_null_out() -> None:
    value = {"tag": ["a", "b"], "where": {"x": 1}, "none": None, "empty": ""}
    assert parse_qsl(form(value), keep_blank_values=True) == [
        ("tag", "a"),
        ("tag", "b"),
        ("where", '{"x":1}'),
        ("empty", ""),
    ]
    assert form({"tag": ["a", "b"]}, tag=FieldEncoding(style="form", explode=False)) == "tag=a,b"
    assert form({"tag": ["a", "b"]}, tag=FieldEncoding(style="pipeDelimited", explode=False)) == "tag=a%7Cb"


@given(st.dictionaries(st.text(), st.text()))
def test_what_a_server_decodes_from_a_form_is_what_was_given(value: dict[str, str]) -> None:
    assert parse_qsl(form(value), keep_blank_values=True) == list(value.items())


def test_multipart_holds_files_lists_objects_and_plain_values() -> None:
    value = {"title": "Café", "n": 3, "photo": b"\x89PNG\r\n--x", "tags": ["a", "b"], "meta": {"x": [1]}, "none": None}
    assert parts(value, binary=("photo",)) == [
        ("title", None, None, "Café".encode()),
        ("n", None, None, b"3"),
        ("photo", "photo", "application/octet-stream", b"\x89PNG\r\n--x"),
        ("tags", None, None, b"a"),
        ("tags", None, None, b"b"),
        ("meta", None, "application/json", b'{"x":[1]}'),
    ]


def test_multipart_parts_have_the_types_that_the_definition_or_the_call_names() -> None:
    files = [{"data": b"one", "filename": "a.png", "content_type": "image/webp"}, b"two"]
    encodings = {
        "photos": FieldEncoding("image/png, image/jpeg"),
        "rows": FieldEncoding("text/csv"),
        "list": FieldEncoding("application/json"),
    }
    assert parts({"photos": files, "rows": "a,b", "list": [1, 2]}, ("photos",), **encodings) == [
        ("photos", "a.png", "image/webp", b"one"),
        ("photos", "photos", "image/png", b"two"),
        ("rows", None, "text/csv", b"a,b"),
        ("list", None, "application/json", b"[1,2]"),
    ]
    assert parts({"file": "as text"}, ("file",), file=FieldEncoding("image/*"))[0][2:] == (
        "application/octet-stream",
        b"as text",
    )
    assert [part[0] for part in parts({"a": {"b": {"c": 1}}}, a=DEEP)] == ["a[b][c]"]


@pytest.mark.parametrize(
    "value",
    [
        {"file": {"data": b"", "filename": "a\r\nX-Evil: 1"}},
        {"file": {"data": b"", "filename": "a\0"}},
        {"file": {"data": b"", "content_type": "text/plain\r\nX-Evil: 1"}},
        {"file": {"data": b"", "content_type": "nonsense"}},
        {"a\r\n\r\nevil": "1"},
        {"file": {"filename": "x"}},
        {"file": 5},
    ],
)
def test_multipart_refuses_values_that_would_inject_headers(value: dict[str, Any]) -> None:
    with pytest.raises(ValueError):
        parts(value, ("file",))


def test_a_quote_in_a_file_name_does_not_end_it() -> None:
    ((_, filename, _, _),) = parts({"file": {"data": b"", "filename": 'a"; name="b'}}, ("file",))
    assert filename == "a%22; name=%22b"


def test_a_definition_can_not_smuggle_headers_in_a_part_type() -> None:
    assert parts({"a": "1"}, a=FieldEncoding("text/plain\r\nX-Evil: 1"))[0][2] is None


def test_the_boundary_is_never_part_of_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter(["taken", "taken", "free"])
    monkeypatch.setattr(body_encoding.secrets, "token_hex", lambda _: next(drawn))
    sent = body_encoding.encode_body(MediaContent("multipart/form-data", "multipart"), {"a": "--taken--"})
    assert sent.content_type.endswith("boundary=free")


@pytest.mark.parametrize(
    ("content", "value", "sent"),
    [
        (MediaContent("application/octet-stream", "bytes"), b"\0\1", ("application/octet-stream", b"\0\1")),
        (MediaContent("image/*", "bytes"), b"x", ("application/octet-stream", b"x")),
        (MediaContent("application/zip", "bytes"), "text", ("application/zip", b"text")),
        (MediaContent("text/plain", "text"), "é", ("text/plain", "é".encode())),
        (MediaContent("text/plain; charset=utf-8", "text"), 5, ("text/plain; charset=utf-8", b"5")),
        (MediaContent("application/xml", "text"), "<a/>", ("application/xml", b"<a/>")),
        (MediaContent(FORM, "form"), "already=encoded&x=1", (FORM, b"already=encoded&x=1")),
    ],
)
def test_bytes_and_text_are_sent_as_they_are(content: MediaContent, value: Any, sent: tuple[str, bytes]) -> None:
    assert body_encoding.encode_body(content, value) == sent


def test_a_value_that_does_not_fit_its_kind_of_body_is_refused() -> None:
    for kind, value in (("bytes", {"a": 1}), ("form", [1]), ("multipart", "x")):
        with pytest.raises(ValueError):
            body_encoding.encode_body(MediaContent("a/b", kind), value)
