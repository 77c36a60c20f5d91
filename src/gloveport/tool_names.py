"""Rules for the names of sources and tools: which ones are legal, and which are reserved at the root of `tools`."""

from __future__ import annotations

import unicodedata

ROOT_SOURCE = "local"
"""The source whose tools are also mounted at the root of `tools`."""

CALLER_SOURCE = "caller"
"""The source of the tools that the caller of one run brings. No other source may have this name."""

RESERVED_ROOT_NAMES = frozenset({"search", "describe", "sources", "run", "snippets", "executor", "egress"})
"""Names at the root of `tools` that Gloveport implements itself; no source and no root-mounted tool may have them."""

RESERVED_SOURCE_NAMES = RESERVED_ROOT_NAMES | {CALLER_SOURCE}
"""Names that no source and no root-mounted tool of a port may have."""

REPLACEABLE_NAMES = frozenset({"search", "describe", "sources", "run"})
"""Reserved names that a caller's own tools may have: they were written for another executor, where these are free."""

# Members that every JavaScript object inherits, and those that `await` or `JSON.stringify` would call (B1).
JAVASCRIPT_OBJECT_NAMES = frozenset(
    {"constructor", "prototype", "hasOwnProperty", "isPrototypeOf", "propertyIsEnumerable", "toLocaleString"}
    | {"toString", "toJSON", "valueOf", "then"}
)
MAX_NAME_CHARS = 256
# Invisible, yet allowed in identifiers: joiners, variation selectors, Hangul fillers.
INVISIBLE_CHARACTERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))
)


MAX_UNICODE_NAME_CHARS = 500


def problem_with(name: str) -> str | None:
    """Return why `name` can't be part of a tool's address, or None when it can."""
    if not isinstance(name, str) or not name.isidentifier():
        return "is not an identifier (letters, digits and _; not starting with a digit)"
    if name.startswith("__") or name in JAVASCRIPT_OBJECT_NAMES:
        return "is a name that every JavaScript object already has"
    if len(name) > MAX_NAME_CHARS:
        return f"is longer than {MAX_NAME_CHARS} characters"
    if name.isascii():
        return None
    if len(name) > MAX_UNICODE_NAME_CHARS:  # bringing marks into their order takes quadratic time
        return f"is longer than {MAX_UNICODE_NAME_CHARS} characters"
    if unicodedata.normalize("NFC", name) != name:
        return "is not in Unicode's composed form (NFC)"
    if not INVISIBLE_CHARACTERS.isdisjoint(name):
        return "contains an invisible character"
    return None
