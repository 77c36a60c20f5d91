"""Redaction: what a service echoes of the secrets that were sent to it is blacked out, in the common encodings.

A secret of fewer than 4 characters is not looked for, and one of fewer than 8 only as it is or escaped, not in base64 or
hex: such short texts turn up everywhere, and a reply full of holes helps nobody.
"""

from __future__ import annotations

import html
import itertools
import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from urllib.parse import quote

from gloveport.policy.credentials import Attachment

_SHORTEST = 4
_SHORTEST_ENCODED = 8
_LONGEST_ESCAPE = 64  # bytes, for one character
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
# The characters that escapes are made of, as they are written where they were escaped in their turn.
_SLASH = rb"(?:\\|(?i:%(?:25)*5c|u005c|&(?:amp;)*#(?:0*92|x0*5c);))"
_AND = rb"(?:&|(?i:%(?:25)*26|u0026))(?i:amp(?:;|%(?:25)*3b))*"
_HASH, _END = rb"(?:#|(?i:%(?:25)*23))", rb"(?:;|(?i:%(?:25)*3b))"
# Where a row of backslashes begins, however they are written: no text makes a search take long that begins there alone.
_FIRST = rb"(?<!\\)(?<!5[cC])(?<!92;)(?<!5[cC];)"


class Redaction:
    """Blacks out the secrets of one request as `•••(label)`."""

    def __init__(self, attachments: Sequence[Attachment]) -> None:
        self._texts: list[tuple[bytes, str, bytes]] = []
        self._forms: list[tuple[bytes, bytes]] = []
        for attachment in attachments:
            shown = f"•••({attachment.secret.label})".encode()
            for text in sorted(_texts(attachment), key=len, reverse=True):
                if len(text) >= _SHORTEST:
                    self._texts.append((_anchor(text), text, shown))
                if len(text) >= _SHORTEST_ENCODED:
                    data = text.encode("utf-8", "surrogateescape")
                    self._forms += [(form, shown) for form in _encoded(data)]
                    self._texts += [(_anchor(form), form, shown) for form in _base64(data)]

    def __bool__(self) -> bool:
        return bool(self._texts)

    def clean(self, data: bytes) -> bytes:
        """The bytes without the secrets; the same object when none is in it."""
        for anchor, text, shown in self._texts:
            if anchor in data:
                data = b"".join(_replaced(data, anchor, text, shown))
        for form, shown in self._forms:
            if form in data:
                data = data.replace(form, shown)
        return data

    def clean_text(self, text: str) -> str:
        """The same for text."""
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self else text


def _texts(attachment: Attachment) -> set[str]:
    """What is secret in an attachment, also as it is sent: an echo may encode that once more.

    Of `user:password` the password alone is secret as well.
    """
    secret = attachment.secret.reveal()
    if attachment.place == "basic":
        return {secret, secret.partition(":")[2], b64encode(secret.encode("utf-8", "surrogateescape")).decode()}
    return {secret, quote(secret, safe="", errors="surrogateescape")}


def _anchor(text: str) -> bytes:
    """The longest part that no escaping changes: where it is missing, no search is needed."""
    return max(re.findall(r"[0-9A-Za-z]*", text), key=len).encode()


def _replaced(data: bytes, anchor: bytes, text: str, shown: bytes) -> Iterator[bytes]:
    """The data in pieces, without the text in any way of writing it. Only the surroundings of the anchor are searched."""
    pattern, reach = _escaped(text), _LONGEST_ESCAPE * len(text)
    if not anchor:
        yield pattern.sub(lambda _: shown, data)
        return
    done, at = 0, data.find(anchor)
    while at >= 0:
        start, end = max(done, at - reach), at + reach
        while 0 <= (at := data.find(anchor, at + 1)) < end + reach:
            end = at + reach
        yield data[done:start]
        yield pattern.sub(lambda _: shown, data[start:end])
        done = end
    yield data[done:]


def _escaped(text: str) -> re.Pattern[bytes]:
    """Matches the text with any of its characters escaped, as URLs, forms, JSON and HTML do it, in any mixture.

    What was escaped may have been escaped again: JSON in JSON, JSON in a URL. Repeated backslashes are taken possessively
    (`++`), so that no text makes it take long.
    """
    runs = re.findall(r"\\+|[^\\]", text)
    ways = (_ways(run, before) for before, run in itertools.pairwise(["", *runs]))
    return re.compile(rb"(?:(?<!\\)|(?!\\))" + b"".join(b"|".join(each).join((b"(?:", b")")) for each in ways))


def _ways(run: str, before: str) -> Iterator[bytes]:
    """How a character may be written, or a run of backslashes: how many they were can't be told once they are escaped.

    A run before it has taken the backslashes of its own escape, too.
    """
    data = run.encode("utf-8", "surrogateescape")
    slashes = (b"" if before else _FIRST) + _SLASH + (b"{0,16}+" if before.startswith("\\") else b"{1,16}+")
    if run.isascii() and run.isalnum():
        yield data
        return
    yield rb"\\++" if run[0] == "\\" else rb"\\*+" + re.escape(data)
    if run[0] == "\\":
        yield slashes
    others = [
        b"".join(b"(?i:%%(?:25)*%02x)" % byte for byte in data),
        b"".join(_AND + _HASH + b"(?i:0*%d|x0*%x)" % (ord(char), ord(char)) + _END for char in run),
    ]
    if (named := html.escape(run)) != run:
        others.append(_AND + named[1:-1].encode() + _END)
    if run == " ":
        others.append(rb"\+|(?i:%(?:25)*2b)")
    yield from others
    in_json = [
        re.escape(json.dumps(run[0])[1:-1].lstrip("\\").encode()),
        (_SLASH + b"{1,16}+").join(b"(?i:u%04x)" % unit for unit in _units(run)),
        re.escape(data),
    ]
    yield slashes + b"|".join(in_json + others).join((b"(?:", b")"))


def _units(char: str) -> list[int]:
    data = char.encode("utf-16-be", "surrogatepass")
    return [int.from_bytes(data[index : index + 2], "big") for index in range(0, len(data), 2)]


def _encoded(data: bytes) -> set[bytes]:
    """The text in hex, and in UTF-16."""
    text = data.decode("utf-8", "surrogateescape")
    wide = {text.encode("utf-16-le", "surrogatepass"), text.encode("utf-16-be", "surrogatepass")}
    return wide | {data.hex().encode(), data.hex().upper().encode()}


def _base64(data: bytes) -> set[str]:
    """The text in base64 wherever it may begin in what was encoded."""
    forms: set[str] = set()
    for before in range(3):
        # Characters at both ends mix bits of the secret with bits of its neighbours: they can't be known, and are left.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        form = b64encode(bytes(before) + data)[first:last]
        forms |= {form.decode(), form.translate(_URL_SAFE).decode()}
    return forms
