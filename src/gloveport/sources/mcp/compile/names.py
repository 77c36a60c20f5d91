"""A server's tool names → names that a program can write: legal, unique, and the same at every load."""

from __future__ import annotations

import hashlib
import keyword
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from gloveport.sources.mcp.tool_rows import RESERVED_GROUP_NAMES
from gloveport.tool_names import problem_with

MAX_NAME_CHARS = 100


def identifiers(names: Iterable[str]) -> Mapping[str, str]:
    """Return the identifier for each of a server's names.

    A legal name stays as it is. Where several names lead to the same identifier, each gets a digest of its own name, so
    that no server can pass one tool off as another by changing the order or the spelling (M5).
    """
    names = list(dict.fromkeys(names))
    wanted = {name: _identifier(name) for name in names}
    claims = Counter(wanted.values())
    found = {name: name for name in names if wanted[name] == name}
    taken = set(found)
    for name in names:
        if name not in found:
            alone = claims[wanted[name]] == 1 and wanted[name] not in taken
            found[name] = wanted[name] if alone else _with_digest(wanted[name], name, taken)
            taken.add(found[name])
    return found


def _with_digest(wanted: str, name: str, taken: set[str]) -> str:
    """Return the identifier with as much of the name's digest as makes it unique."""
    lengths = range(8, 65, 8)
    return next(unique for length in lengths if (unique := f"{wanted}_{_digest(name, length)}") not in taken)


def _identifier(name: str) -> str:
    if not name.isascii() or len(name) > MAX_NAME_CHARS:
        # A hostile server would use letters that look like others; the digest tells such names apart.
        return f"{_words(name)[:MAX_NAME_CHARS]}_{_digest(name)}"
    found = _words(name) if problem_with(name) else name
    return f"{found}_" if found in RESERVED_GROUP_NAMES or keyword.iskeyword(found) or problem_with(found) else found


def _words(name: str) -> str:
    found = "_".join(re.findall(r"[A-Za-z0-9]+", name)) or "tool"
    return f"tool_{found}" if found[0].isdigit() else found


def _digest(name: str, length: int = 8) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:length]
