"""The little of protobuf that Monty's protocol needs. Reading is total: any bytes give fields or a WireError."""

from __future__ import annotations

from gloveport.errors import WireError

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
LONGEST_VARINT = 10

Fields = list[tuple[int, int | bytes]]
"""Field numbers and what they hold: a number, or the bytes of text, of a message, or of a double."""


def varint(value: int) -> bytes:
    """A whole number from 0 to 2^64 - 1."""
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
        key, at = _varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = _varint(data, at)
            fields.append((key >> 3, value))
            continue
        size = 8 if kind == FIXED64 else 4 if kind == FIXED32 else -1
        if kind == BYTES:
            size, at = _varint(data, at)
        if size < 0 or at + size > end:
            raise WireError("a message of the worker is cut off, or is no protobuf")
        fields.append((key >> 3, data[at : at + size]))
        at += size
    return fields


def read_one(data: bytes) -> tuple[int, int | bytes]:
    """The field of a message that has one; nearly all are short, and many are read."""
    if len(data) > 1 and data[0] < 0x80 and data[1] < 0x80:
        kind = data[0] & 7
        if kind == BYTES and data[1] == len(data) - 2:
            return data[0] >> 3, data[2:]
        if kind == VARINT and len(data) == 2:
            return data[0] >> 3, data[1]
    fields = read(data)
    if not fields:
        raise WireError("a message of the worker is empty")
    return fields[-1]


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
        byte = data[at]
        if byte < 0x80:
            return byte, at + 1
        value, shift = byte & 0x7F, 7
        for place in range(at + 1, at + LONGEST_VARINT):
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
