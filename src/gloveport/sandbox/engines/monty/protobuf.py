"""The little of protobuf that Monty's protocol needs. Reading is total: any bytes give fields or a WireError."""

from __future__ import annotations

from gloveport.errors import WireError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10

Fields = list[tuple[int, int | bytes]]
"""Field numbers and what they hold: a number, or the bytes of text, of a message, or of a double."""


_SMALL = [bytes((value,)) for value in range(0x80)]


def varint(value: int) -> bytes:
    """A whole number from 0 to 2^64 - 1."""
    if value < 0x80:
        return _SMALL[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def zigzag(value: int) -> int:
    """The number that stands for a signed one."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """The signed number that a number stands for."""
    return value >> 1 if not value & 1 else -(value >> 1) - 1


def signed(value: int) -> int:
    """What an int32 or int64 field holds: two's complement."""
    return value - (1 << 64) if value >> 63 else value


def number(field: int, value: int) -> bytes:
    """A field that holds a number; a negative one in two's complement."""
    return varint(field << 3 | VARINT) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def double(field: int, value: bytes) -> bytes:
    """A field that holds eight bytes."""
    return varint(field << 3 | FIXED64) + value


def block(field: int, content: bytes = b"") -> bytes:
    """A field that holds bytes: text, or another message."""
    return varint(field << 3 | BYTES) + varint(len(content)) + content


def text(field: int, content: str) -> bytes:
    """A field that holds text."""
    return block(field, content.encode("utf-8", "replace"))


def packed(field: int, values: list[int]) -> bytes:
    """A field that holds a row of numbers."""
    return block(field, b"".join(map(varint, values))) if values else b""


def read(data: bytes) -> Fields:
    """The fields of a message, in their order."""
    fields: Fields = []
    at, end = 0, len(data)
    while at < end:
        field, value, at = _field(data, at)
        fields.append((field, value))
    return fields


def _field(data: bytes, at: int) -> tuple[int, int | bytes, int]:
    """The field that begins at a place, and where the next one does. Most numbers have one byte."""
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
        raise WireError("a message of the worker is cut off, or is no protobuf")
    return key >> 3, data[at : at + size], at + size


def read_begun(data: bytes) -> Fields:
    """The fields of the message in the first field of a message that is cut off somewhere, up to there."""
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
    """The first field of a message, whatever follows it."""
    if not data:
        raise WireError("a message of the worker is empty")
    return _field(data, 0)[:2]


def read_packed(data: bytes) -> list[int]:
    """A row of numbers."""
    values: list[int] = []
    at = 0
    while at < len(data):
        value, at = _varint(data, at)
        values.append(value)
    return values


def _varint(data: bytes, at: int) -> tuple[int, int]:
    try:
        value, shift = 0, 0
        for place in range(at, at + LONGEST_VARINT):
            byte = data[place]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value & 0xFFFF_FFFF_FFFF_FFFF, place + 1
            shift += 7
    except IndexError:
        pass
    raise WireError("a message of the worker has a number that does not end")


def as_text(value: int | bytes) -> str:
    """What a field of text holds."""
    return as_bytes(value).decode("utf-8", "replace")


def as_bytes(value: int | bytes) -> bytes:
    """What a field of bytes holds."""
    if isinstance(value, int):
        raise WireError("a message of the worker has a number where bytes belong")
    return value


def as_number(value: int | bytes) -> int:
    """What a field of numbers holds."""
    if isinstance(value, bytes):
        raise WireError("a message of the worker has bytes where a number belongs")
    return value
