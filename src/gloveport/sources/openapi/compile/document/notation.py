"""Notation: the bytes of a definition, JSON or YAML → plain values, or a SourceError whatever the bytes are."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

import orjson

from gloveport.errors import SourceError

MOST_BYTES = 50_000_000

_SPACED = re.compile(rb'"\s+:')
_ESCAPED = b"\\u0022"
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def parse(raw: bytes, name: str) -> Any:
    """The values that the text stands for; `name` is how a message calls it."""
    if len(raw) > MOST_BYTES:
        hint = "use a smaller definition: one version, or one part of the service"
        raise SourceError(f"{name} has {len(raw):,} bytes, more than {MOST_BYTES:,}", hint=hint)
    raw = _utf8(raw, name)
    start = raw[:1000].lstrip()[:1]
    if start in (b"{", b"["):
        try:
            return _json(raw, name)
        except orjson.JSONDecodeError as error:
            if not _may_be_yaml(raw):
                _refuse(name, f"is not JSON: {error.msg} in line {error.lineno}, column {error.colno}")
    from gloveport.sources.openapi.compile.document.yaml import parse_yaml

    return parse_yaml(raw, name)


def _utf8(raw: bytes, name: str) -> bytes:
    for mark, encoding in _MARKS:
        if raw.startswith(mark):
            try:
                return raw[len(mark) :].decode(encoding).encode()
            except UnicodeError:
                _refuse(name, f"is not the {encoding.upper()} that it says it is")
    return raw


def _may_be_yaml(raw: bytes) -> bool:
    # `{openapi: 3.1.0, …}` is YAML's flow style: its keys need no quotes, JSON's do.
    return re.match(rb"\s*\{\s*[A-Za-z#]", raw) is not None


def _json(raw: bytes, name: str) -> Any:
    value = orjson.loads(raw)
    # A document with one key twice means two things to two readers. As many keys in the text as in the value: all is well.
    try:
        again = orjson.dumps(value)
    except orjson.JSONEncodeError:
        _refuse(name, "is nested deeper than 250 levels")
    if _ESCAPED in raw or _SPACED.search(raw) or raw.count(b'":') != again.count(b'":'):
        json.loads(raw, object_pairs_hook=lambda pairs: _once(pairs, name))
    return value


def _once(pairs: list[tuple[str, Any]], name: str) -> None:
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            _refuse(name, f"has the key {key[:100]!a} twice in one object")
        seen.add(key)


def _refuse(name: str, problem: str) -> NoReturn:
    raise SourceError(f"{name} {problem}", hint="correct the definition, or get it again from where it came from")
