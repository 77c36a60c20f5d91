"""What a part of an address may look like, and which names the root of `tools` keeps for itself."""

from __future__ import annotations

import unicodedata

ROOT_SOURCE = "local"
"""The source whose tools are also mounted at the root of `tools`."""

RESERVED_ROOT_NAMES = frozenset({"search", "describe", "sources", "run", "snippets", "executor"})
"""Names at the root of `tools` that Gloveport answers itself."""

# What every JavaScript object answers to by itself, and what makes `await` or `JSON.stringify` call it (B1).
PROTOTYPE = frozenset(
    {"constructor", "prototype", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString"}
    | {"toString", "toJSON", "valueOf", "then"}
)
# Invisible, yet parts of identifiers: joiners, variation selectors, Hangul fillers.
INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


def problem_with(name: str) -> str | None:
    """Why `name` can't be a part of an address, or None when it can."""
    if not isinstance(name, str) or not name.isidentifier():
        return "is not an identifier (letters, digits and _; not starting with a digit)"
    if name.startswith("__") or name in PROTOTYPE:
        return "means something else to every JavaScript object"
    if name.isascii():
        return None
    if unicodedata.normalize("NFC", name) != name:
        return "is not in Unicode's composed form (NFC)"
    if not INVISIBLE.isdisjoint(name):
        return "has an invisible character in it"
    return None
