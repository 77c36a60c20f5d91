"""Reads docstrings: the first paragraph, and the parameters in Google, NumPy or Sphinx style."""

from __future__ import annotations

import inspect
import re
from collections.abc import Collection

PARAMETERS_HEADING = re.compile(
    r"^(args|arguments|parameters|params|keyword args|keyword arguments|other parameters)\s*:?\s*$", re.I
)
OTHER_HEADING = re.compile(
    r"^(returns?|yields?|raises|examples?|notes?|see also|warnings?|references|attributes)\s*:?\s*$", re.I
)
GOOGLE_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(\S.*)$")
NUMPY_ITEM = re.compile(r"^\*{0,2}(\w+)\s*(?::.*)?$")
SPHINX_ITEM = re.compile(r"^:param\s+(?:[^:]*\s)?\*{0,2}(\w+)\s*:\s*(.*)$")
MAX_TEXT_CHARS = 2000


def summary(docstring: str | None) -> str:
    """Return the first paragraph on one line; empty when there is none."""
    text = inspect.cleandoc(docstring or "").strip()
    first = text.split("\n\n", 1)[0]
    lines = []
    for line in first.splitlines():
        if PARAMETERS_HEADING.match(line.strip()) or OTHER_HEADING.match(line.strip()) or line.lstrip().startswith(":"):
            break
        lines.append(line.strip())
    return " ".join(lines).strip()[:MAX_TEXT_CHARS]


def parameters(docstring: str | None, names: Collection[str]) -> dict[str, str]:
    """Return the descriptions of the parameters called `names`."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    found: dict[str, list[str]] = {}
    _sphinx(lines, found)
    _sections(lines, found)
    return {name: " ".join(text).strip()[:MAX_TEXT_CHARS] for name, text in found.items() if name in names and any(text)}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _sphinx(lines: list[str], found: dict[str, list[str]]) -> None:
    current: list[str] | None = None
    for line in lines:
        match = SPHINX_ITEM.match(line.strip())
        if match:
            current = found.setdefault(match[1], [match[2]])
        elif current is not None and line.strip() and _indent(line) > 0:
            current.append(line.strip())
        else:
            current = None


def _sections(lines: list[str], found: dict[str, list[str]]) -> None:
    inside, underlined, item_indent = False, False, -1
    current: list[str] | None = None
    for number, line in enumerate(lines):
        text = line.strip()
        if PARAMETERS_HEADING.match(text):
            inside, item_indent, current = True, -1, None
            underlined = number + 1 < len(lines) and _is_rule(lines[number + 1])  # as in NumPy's style
        elif OTHER_HEADING.match(text) or (number + 1 < len(lines) and text and _is_rule(lines[number + 1])):
            inside = False
        elif not inside or not text or _is_rule(line):
            continue
        else:
            item_indent = _indent(line) if item_indent < 0 else item_indent
            if _indent(line) > item_indent:
                if current is not None:
                    current.append(text)
                continue
            current = _item(text, underlined, found)


def _item(text: str, underlined: bool, found: dict[str, list[str]]) -> list[str] | None:
    match = (NUMPY_ITEM if underlined else GOOGLE_ITEM).match(text)
    if match is None:
        return None
    return found.setdefault(match[1], [] if underlined else [match[2]])


def _is_rule(line: str) -> bool:
    return len(line.strip()) >= 3 and set(line.strip()) == {"-"}
