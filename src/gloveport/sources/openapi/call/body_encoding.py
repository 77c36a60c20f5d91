"""Encode a value as a request body: JSON, form, multipart, bytes or text."""

from __future__ import annotations

import math
import re
import secrets
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from gloveport.sources.openapi.call import styles
from gloveport.sources.openapi.operation import FieldEncoding, MediaContent

OCTET_STREAM = "application/octet-stream"
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
CONCRETE_MEDIA_TYPE = re.compile(r"[\w.+-]+/[\w.+-]+\s*(;[^\x00-\x1f\x7f]*)?", re.ASCII)
CONTROL_CHARS = re.compile(r"[\x00-\x1f\x7f]")


class EncodedBody(NamedTuple):
    """A body ready to send."""

    content_type: str
    data: bytes


class _FormPart(NamedTuple):
    name: str
    data: bytes
    content_type: str | None = None
    filename: str | None = None


def encode_body(content: MediaContent, value: Any) -> EncodedBody:
    """Return the encoded body; raises ValueError when the value can't be encoded as this kind."""
    if content.kind == "multipart":
        return _multipart(content, value)
    media_type = _concrete(content.media_type)
    if content.kind == "json":
        return EncodedBody(media_type or JSON, encode_json(value))
    if content.kind == "form" and not isinstance(value, str):
        pairs = (pair for name, item in _fields(value) for pair in _form_pairs(content, name, item))
        return EncodedBody(media_type or FORM, "&".join(f"{name}={item}" for name, item in pairs).encode())
    if content.kind in {"text", "form"}:
        return EncodedBody(media_type or "text/plain", styles.text_of(value).encode())
    return EncodedBody(media_type or OCTET_STREAM, _to_bytes(value))


def encode_json(value: Any) -> bytes:
    """Return JSON with integers of any size, dates as text, bytes in base64; raises ValueError for NaN and infinities."""
    data = msgspec.json.encode(value)
    if b"null" in data and not _is_finite(value):
        raise ValueError("NaN and infinities can't be sent as JSON")
    return data


def _is_finite(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, Mapping):
        return all(map(_is_finite, value.values()))
    return all(map(_is_finite, value)) if isinstance(value, styles.LIST_TYPES) else True


def _to_bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode()
    raise ValueError("a binary body must be bytes or a string")


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    if not isinstance(value, Mapping):
        raise ValueError("a form must be an object")
    return ((styles.text_of(name), item) for name, item in value.items() if item is not None)


def _form_pairs(content: MediaContent, name: str, value: Any) -> list[styles.Pair]:
    encoding = content.encodings.get(name, FieldEncoding())
    encode = styles.encode_reserved if encoding.allow_reserved else styles.encode
    if encoding.style is None and encoding.explode is None and _is_nested(value):
        return [(styles.encode(name), encode(encode_json(value).decode()))]  # OpenAPI's default for such a field
    return _styled(name, value, encoding, encode)


def _is_nested(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, styles.LIST_TYPES) and any(isinstance(item, (Mapping, *styles.LIST_TYPES)) for item in value)
    )


def _styled(name: str, value: Any, encoding: FieldEncoding, encode: styles.Encode) -> list[styles.Pair]:
    style = encoding.style or "form"
    explode = encoding.explode if encoding.explode is not None else style == "form"
    return styles.name_value_pairs(name, value, style, explode, encode)


def _multipart(content: MediaContent, value: Any) -> EncodedBody:
    parts = [part for name, item in _fields(value) for part in _parts(content, name, item)]
    boundary = secrets.token_hex(16)
    while any(boundary.encode() in part.data for part in parts):
        boundary = secrets.token_hex(16)
    chunks: list[bytes] = []
    for part in parts:
        chunks += (f"--{boundary}\r\n{_part_header(part)}\r\n\r\n".encode(), part.data, b"\r\n")
    chunks.append(f"--{boundary}--\r\n".encode())
    media_type = content.media_type.partition(";")[0].strip()
    return EncodedBody(
        f"{media_type if CONCRETE_MEDIA_TYPE.fullmatch(media_type) else 'multipart/form-data'}; boundary={boundary}",
        b"".join(chunks),
    )


def _part_header(part: _FormPart) -> str:
    lines = f'Content-Disposition: form-data; name="{_quoted(part.name)}"'
    if part.filename is not None:
        lines += f'; filename="{_quoted(part.filename)}"'
    return f"{lines}\r\nContent-Type: {part.content_type}" if part.content_type else lines


def _quoted(text: str) -> str:
    """Quote a name for a part's header as browsers do. A line break would let a program inject a header of its own."""
    if CONTROL_CHARS.search(text):
        raise ValueError(f"{text[:80]!r} has a control character, so it can't name a part or a file")
    return text.replace('"', "%22")


def _parts(content: MediaContent, name: str, value: Any) -> Iterator[_FormPart]:
    encoding = content.encodings.get(name, FieldEncoding())
    kind = _concrete(encoding.content_type)
    several = isinstance(value, styles.LIST_TYPES)
    if several and not value:
        raise ValueError(f"`{name}`: {styles.NOTHING_TO_SEND}")
    if name in content.binary or isinstance(value, bytes):
        for item in value if several else [value]:
            yield _file(name, item, kind)
    elif encoding.style is not None:
        yield from (_FormPart(part, item.encode()) for part, item in _styled(name, value, encoding, str))
    elif kind and _is_json(kind):
        yield _FormPart(name, encode_json(value), kind)
    else:
        for item in value if several else [value]:
            nested = isinstance(item, (Mapping, *styles.LIST_TYPES))
            yield (
                _FormPart(name, encode_json(item), kind or JSON)
                if nested
                else _FormPart(name, styles.text_of(item).encode(), kind)
            )


def _file(name: str, value: Any, kind: str | None) -> _FormPart:
    """Return a file part. The value is bytes, a text, or `{data, filename, content_type}`."""
    if not isinstance(value, Mapping):
        return _FormPart(name, _to_bytes(value), kind or OCTET_STREAM, name)
    given = value.get("content_type")
    if given is not None and not _concrete(given):
        raise ValueError(f"{str(given)[:80]!r} is not a content type")
    return _FormPart(
        name, _to_bytes(value.get("data")), given or kind or OCTET_STREAM, styles.text_of(value.get("filename") or name)
    )


def _concrete(media_type: str | None) -> str | None:
    """Return the first of a list of media types that has no `*`, or None."""
    for one in (media_type or "").split(","):
        if CONCRETE_MEDIA_TYPE.fullmatch(one.strip()):
            return one.strip()
    return None


def _is_json(media_type: str) -> bool:
    bare = media_type.partition(";")[0].strip().lower()
    return bare == JSON or bare.endswith("+json")
