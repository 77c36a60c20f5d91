"""Mutations of bytes, tokens, JSON trees and protobuf messages. Each keeps its format valid."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from gloveport.errors import WireError
from gloveport.sandbox.engines.monty import protobuf

WHOLE = (127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 10**30)
NUMBERS = (0, 1, -1, *WHOLE, *(-number for number in WHOLE))
TEXTS = (
    "",
    "$",
    "$$",
    "__proto__",
    "constructor",
    "\0",
    "\ud83d\ude00",
    "é",
    "a" * 300,
    "../..",
    "%2e%2e",
    "\u202e",
    "-0",
    "NaN",
)
DEEPEST = 300

_DIGITS = re.compile(rb"\d+")
_TOKEN = re.compile(rb"[A-Za-z_$][\w$]*|\d+|\s+|[^\w\s]")


def mutate_bytes(words: Sequence[bytes] = ()) -> Callable[[bytes, bytes, Random], bytes]:
    """Return a mutation of bytes that inserts `words` of the format."""

    def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
        start = chance.randint(0, len(data))
        end = min(len(data), start + 1 + int(chance.expovariate(0.1)))
        piece = data[start:end]
        match chance.randrange(9):
            case 8 if digits := [*_DIGITS.finditer(data)]:
                start, end = chance.choice(digits).span()
                piece = str(chance.choice((0, 1, -1, *NUMBERS))).encode()
            case 0:
                piece = bytes(byte ^ 1 << chance.randrange(8) if chance.random() < 0.3 else byte for byte in piece)
            case 1:
                piece = b""
            case 2:
                piece *= chance.choice((2, 3, 17, 200))
            case 3:
                piece = chance.randbytes(chance.randint(1, 8)) + piece
            case 4 if words:
                piece += chance.choice(words)
            case 5 if words:
                piece = chance.choice(words)
            case 6:
                at = chance.randint(0, len(other))
                piece += other[at : at + 1 + int(chance.expovariate(0.05))]
            case _:
                number = chance.choice(NUMBERS) & 0xFFFF_FFFF
                piece = number.to_bytes(4, chance.choice(("big", "little")))
        return data[:start] + piece + data[end:]

    return mutate


def mutate_tokens(words: Sequence[bytes]) -> Callable[[bytes, bytes, Random], bytes]:
    """Return a mutation of tokens: remove, repeat, move, replace by a word of the language, or nest deeply."""
    of_bytes = mutate_bytes(words)

    def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
        if chance.random() < 0.15:
            return of_bytes(data, other, chance)
        tokens, others = _TOKEN.findall(data) or [b""], _TOKEN.findall(other) or [b""]
        at = chance.randrange(len(tokens))
        end = min(len(tokens), at + 1 + int(chance.expovariate(0.4)))
        piece = tokens[at:end]
        match chance.randrange(7):
            case 0:
                piece = []
            case 1:
                piece *= chance.choice((2, 3, DEEPEST))
            case 2:
                start = chance.randrange(len(others))
                piece = others[start : start + 1 + int(chance.expovariate(0.15))]
            case 3:
                piece = [chance.choice(words)]
            case 4:
                piece = [*piece, b" ", chance.choice(words), b" "]
            case 5:
                opened, closed = chance.choice(((b"(", b")"), (b"[", b"]"), (b"{", b"}"), (b"`${", b"}`"), (b'"', b'"')))
                times = chance.choice((1, 1, 2, DEEPEST))
                piece = [opened * times, *piece, closed * times]
            case _:
                piece = [chance.choice(tokens)]
        return b"".join([*tokens[:at], *piece, *tokens[end:]])

    return mutate


def mutate_json(leaves: Sequence[Any] = ()) -> Callable[[bytes, bytes, Random], bytes]:
    """Return a mutation of JSON trees that inserts meaningful `leaves`. Text that is not JSON is mutated as bytes."""
    of_bytes = mutate_bytes((b"[", b"]", b"{", b"}", b'"$":', b",", b"null", b'"'))

    def mutate(data: bytes, other: bytes, chance: Random) -> bytes:
        tree, rest = _read(data), _read(other)
        if tree is None or chance.random() < 0.1:
            return of_bytes(data, other, chance)
        changed = _changed(tree, rest, leaves, chance)
        return json.dumps(changed, ensure_ascii=chance.random() < 0.5, separators=(",", ":")).encode("utf-8", "replace")

    return mutate


def _read(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _nodes(tree: Any) -> list[tuple[Any, Any]]:
    """Yield every position in a tree: the list or object, and the index or key."""
    found: list[tuple[Any, Any]] = []
    waiting = [tree]
    while waiting and len(found) < 5000:
        node = waiting.pop()
        for place in [*node] if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            found.append((node, place))
            waiting.append(node[place])
    return found


def _changed(tree: Any, other: Any, leaves: Sequence[Any], chance: Random) -> Any:
    whole = [tree]
    holder, place = chance.choice(_nodes(whole))
    node, others = holder[place], _nodes([other])
    match chance.randrange(8):
        case 0:
            holder[place] = chance.choice(NUMBERS)
        case 1:
            holder[place] = chance.choice((None, True, [], {}, 0.5, 1e300, *TEXTS))
        case 2 if leaves:
            holder[place] = chance.choice(leaves)
        case 3:
            from_, key = chance.choice(others)
            holder[place] = from_[key]
        case 4 if len(whole) > 1 or holder is not whole:
            del holder[place]
        case 5 if isinstance(holder, dict):
            new = chance.choice((*TEXTS, *(leaf for leaf in leaves if isinstance(leaf, str)), place + "x", "$" + place))
            holder[new] = holder.pop(place)
        case 6:
            for _ in range(chance.choice((1, 2, 20, DEEPEST))):
                node = [node] if chance.random() < 0.5 else {chance.choice(("", "a", "$", "v")): node}
            holder[place] = node
        case _ if isinstance(holder, list):
            holder[place:place] = [node] * chance.choice((1, 2, 50))
        case _:
            holder[f"{place}{chance.randrange(10)}"] = node
    return json.loads(json.dumps(whole[0])) if whole else None  # a copy, so that no node is shared


def mutate_message(data: bytes, other: bytes, chance: Random) -> bytes:
    """Mutate a protobuf message at any depth and correct every length."""
    try:
        fields, others = protobuf.read(data), protobuf.read(other)
    except WireError:
        return mutate_bytes()(data, other, chance)
    if not fields or chance.random() < 0.05:
        return mutate_bytes()(data, other, chance)
    at = chance.randrange(len(fields))
    number, content = fields[at]
    match chance.randrange(7):
        case 0:
            fields[at] = (chance.choice((number + 1, chance.randint(1, 40))), content)
        case 1:
            fields[at : at + 1] = []
        case 2:
            fields[at:at] = [fields[at]] * chance.choice((1, 2, 50))
        case 3 if others:
            fields[at] = (number, chance.choice(others)[1])
        case 4:
            fields.insert(at, (chance.randint(1, 40), chance.choice(NUMBERS) & 2**64 - 1))
        case _ if isinstance(content, bytes):
            below = next((held for _, held in chance.sample(others, len(others)) if isinstance(held, bytes)), other)
            fields[at] = (number, mutate_message(content, below, chance))
        case _:
            fields[at] = (number, chance.choice(NUMBERS) & 2**64 - 1)
    return b"".join(protobuf.block(n, c) if isinstance(c, bytes) else protobuf.number(n, c) for n, c in fields)
