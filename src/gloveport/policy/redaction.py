"""Redaction: remove the secrets of a request from its reply, in the common encodings.

A secret of fewer than 4 characters is not searched for. One of fewer than 8 is searched for as it is and escaped, but not
in base64 or hex: texts that short occur everywhere, and a reply full of redactions is of no use.
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

_MIN_SECRET_CHARS = 4
_MIN_ENCODED_SECRET_CHARS = 8
_MAX_ESCAPE_BYTES = 64  # for one character
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
# The characters that escapes consist of, also where those were escaped again.
_SLASH = rb"(?:\\|(?i:%(?:25)*5c|u005c|&(?:amp;)*#(?:0*92|x0*5c);))"
_AND = rb"(?:&|(?i:%(?:25)*26|u0026))(?i:amp(?:;|%(?:25)*3b))*"
_HASH, _END = rb"(?:#|(?i:%(?:25)*23))", rb"(?:;|(?i:%(?:25)*3b))"
# A run of backslashes starts here, in any spelling. Matching only at the start keeps the search linear.
_FIRST = rb"(?<!\\)(?<!5[cC])(?<!92;)(?<!5[cC];)"


class Redaction:
    """Replaces the secrets of one request by `•••(label)`."""

    def __init__(self, attachments: Sequence[Attachment]) -> None:
        self._texts: list[tuple[bytes, str, bytes]] = []
        self._forms: list[tuple[bytes, bytes]] = []
        for attachment in attachments:
            shown = f"•••({attachment.secret.label})".encode()
            for text in sorted(_texts(attachment), key=len, reverse=True):
                if len(text) >= _MIN_SECRET_CHARS:
                    self._texts.append((_anchor(text), text, shown))
                if len(text) >= _MIN_ENCODED_SECRET_CHARS:
                    data = text.encode("utf-8", "surrogateescape")
                    self._forms += [(form, shown) for form in _encoded(data)]
                    self._texts += [(_anchor(form), form, shown) for form in _base64(data)]

    def __bool__(self) -> bool:
        return bool(self._texts)

    def clean(self, data: bytes) -> bytes:
        """Return the bytes without the secrets; the same object when it contains none."""
        for anchor, text, shown in self._texts:
            if anchor in data:
                data = b"".join(_replaced(data, anchor, text, shown))
        for form, shown in self._forms:
            if form in data:
                data = data.replace(form, shown)
        return data

    def clean_text(self, text: str) -> str:
        """Return the text without the secrets."""
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self else text


def _texts(attachment: Attachment) -> set[str]:
    """Return the texts to redact: the secret, and the form in which it is sent, because an echo may encode that again.

    For `user:password` the password alone is a secret too.
    """
    secret = attachment.secret.reveal()
    if attachment.place == "basic":
        return {secret, secret.partition(":")[2], b64encode(secret.encode("utf-8", "surrogateescape")).decode()}
    return {secret, quote(secret, safe="", errors="surrogateescape")}


def _anchor(text: str) -> bytes:
    """Return the longest part that no escaping changes. Data without it needs no search."""
    return max(re.findall(r"[0-9A-Za-z]*", text), key=len).encode()


def _replaced(data: bytes, anchor: bytes, text: str, shown: bytes) -> Iterator[bytes]:
    """Yield the data without the text, however it is escaped. Only the surroundings of the anchor are searched."""
    pattern, reach = _escaped(text), _MAX_ESCAPE_BYTES * len(text)
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
    """Return a pattern for the text with any of its characters escaped as URLs, forms, JSON or HTML do it, also mixed.

    Escaped text may have been escaped again: JSON in JSON, JSON in a URL. Runs of backslashes match possessively (`++`),
    so that they cause no backtracking.
    """
    runs = re.findall(r"\\+|[^\\]", text)
    ways = (_ways(run, before) for before, run in itertools.pairwise(["", *runs]))
    return re.compile(rb"(?:(?<!\\)|(?!\\))" + b"".join(b"|".join(each).join((b"(?:", b")")) for each in ways))


def _ways(run: str, before: str) -> Iterator[bytes]:
    """Yield patterns for the spellings of a character, or of a run of backslashes, whose number escaping hides.

    When a run of backslashes stands before a character, it has matched the backslash of the character's own escape too.
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
    """Return the text in hex and in UTF-16."""
    text = data.decode("utf-8", "surrogateescape")
    wide = {text.encode("utf-16-le", "surrogatepass"), text.encode("utf-16-be", "surrogatepass")}
    return wide | {data.hex().encode(), data.hex().upper().encode()}


def _base64(data: bytes) -> set[str]:
    """Return the text in base64 for each position at which it can begin in the encoded data."""
    forms: set[str] = set()
    for before in range(3):
        # The characters at both ends mix bits of the secret with its neighbours' bits. They are unknown, so they stay.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        form = b64encode(bytes(before) + data)[first:last]
        forms |= {form.decode(), form.translate(_URL_SAFE).decode()}
    return forms
