"""Canaries: random secrets, and the search for them in whatever form they may have been written down."""

from __future__ import annotations

import secrets
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass

# What separates the random parts is escaped differently everywhere; the parts are not, so they are what is looked for.
ODD = '+/"&=%<\\'
PLAIN = "-"


@dataclass(frozen=True)
class Canary:
    """A secret of two random parts: either alone, in any of its forms, is a leak."""

    name: str
    parts: tuple[str, str]
    between: str

    @property
    def text(self) -> str:
        """The secret as it is handed to Gloveport."""
        return self.between.join(self.parts)

    @property
    def forms(self) -> frozenset[bytes]:
        """What no output may contain."""
        return frozenset(form for part in self.parts for form in _forms(part.encode()))


def canary(name: str, between: str = PLAIN) -> Canary:
    """A new secret, like no other."""
    # Letters and digits of one case: also a host name, or a text that something has put into lower case, is recognised.
    return Canary(name, (secrets.token_hex(8), secrets.token_hex(8)), between)


def leaks(haystack: Mapping[str, bytes], canaries: Mapping[str, Canary]) -> set[tuple[str, str]]:
    """Which canary is in which output, by their names."""
    needles = {form: name for name, each in canaries.items() for form in each.forms}
    return {(where, name) for where, data in haystack.items() for form, name in needles.items() if form in data}


def _forms(data: bytes) -> set[bytes]:
    """The bytes as they are, backwards, in hex, in UTF-16, and in base64 wherever they begin in what was encoded."""
    text = data.decode()
    found = {data, data[::-1], data.hex().encode(), data.hex().upper().encode(), text.encode("utf-16-le")}
    for before in range(3):
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        found.add(b64encode(bytes(before) + data)[first:last])
    return found | {form.translate(bytes.maketrans(b"+/", b"-_")) for form in found}
