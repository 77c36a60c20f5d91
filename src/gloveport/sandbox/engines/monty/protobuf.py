"""The part of protobuf that Monty's protocol needs. Reading is total: any bytes give fields or a WireError."""

from __future__ import annotations

from gloveport.errors import WireError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
MAX_VARINT_BYTES = 10

Fields = list[tuple[int, int | bytes]]
"""Field numbers and their content: a number, or the bytes of a text, a message or a double."""


_SMALL = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """Encode a whole number from 0 to 2^64 - 1."""
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> int:
    """Return the number that encodes a signed one."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """Return the signed number that a number encodes."""
    return value >> 1 if not value & 1 else -(value >> 1) - 1


def signed(value: int) -> int:
    """Return the signed value of an int32 or int64 field, which is in two's complement."""
    return value - (1 << 64) if value >> 63 else value


def number(field: int, value: int) -> bytes:
    """Encode a field with a number; a negative one in two's complement."""
    return varint(field << 3 | VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def double(field: int, value: bytes) -> bytes:
    """Encode a field with eight bytes."""
    return varint(field << 3 | FIXED64) + value


def block(field: int, content: bytes = b"") -> bytes:
    """Encode a field with bytes: a text, or another message."""
    return varint(field << 3 | BYTES) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """Encode a field with text."""
    return block(field, content.encode("utf-8", "replace"))


def packed(field: int, values: list[int]) -> bytes:
    """Encode a field with packed numbers."""
    return block(field, b"".join(map(varint, values))) if values else b""


def read(data: bytes) -> Fields:
    """Return the fields of a message, in order."""
    fields: Fields = []
    at, end = 0, len(data)
    while at < end:
        field, value, at = _field(data, at)
        fields.append((field, value))
    return fields


def _field(data: bytes, at: int) -> tuple[int, int | bytes, int]:
    """Return the field at an offset and the offset of the next one. Most numbers have one byte."""
    key, at = (data[at], at + 1) if data[at] < 0x80 else _varint(data, at)
    kind = key & 7
    if kind in (FIXED64, FIXED32):
        size = 8 if kind == FIXED64 else 4
    elif at < len(data) and data[at] < 0x80:
        size, at = data[at], at + 1
    else:
        size, at = _varint(data, at)
    if kind == VARINT:
        return key >> 3, size, at
    if kind not in (BYTES, FIXED64, FIXED32) or at + size > len(data):
        raise WireError("a message of the worker is truncated or is not protobuf")
    return key >> 3, data[at : at + size], at + size


def read_begun(data: bytes) -> Fields:
    """Return the complete fields of the message inside the first field of a truncated message."""
    fields: Fields = []
    try:
        _, at = _varint(data, 1)
        while at < len(data):
            field, value, at = _field(data, at)
            fields.append((field, value))
    except WireError:
        pass
    return fields


def read_first(data: bytes) -> tuple[int, int | bytes]:
    """Return the first field of a message, whatever follows it."""
    if not data:
        raise WireError("a message of the worker is empty")
    return _field(data, 0)[:2]


def read_packed(data: bytes) -> list[int]:
    """Return packed numbers."""
    values: list[int] = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        value, shift = 0, 0
        for place in range(at, at + MAX_VARINT_BYTES):
            byte = data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
            shift += 7
    except IndexError:
        pass
    raise WireError("a message of the worker has a number that does not end")


def as_text(value: int | bytes) -> str:
    """Return the content of a text field."""
    return as_bytes(value).decode("utf-8", "replace")


def as_bytes(value: int | bytes) -> bytes:
    """Return the content of a bytes field."""
    if isinstance(value, int):
        raise WireError("a message of the worker has a number in place of bytes")
    return value


def as_number(value: int | bytes) -> int:
    """Return the content of a number field."""
    if isinstance(value, bytes):
        raise WireError("a message of the worker has bytes in place of a number")
    return value
