"""Recognise the mistakes that agents make most, so that the hint can state the fix."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

SMART_QUOTES = {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "‚": "'", "′": "'", "″": '"'}
DASHES = {"–": "-", "—": "-", "−": "-", "…": "...", "×": "*", "÷": "/", "≤": "<=", "≥": ">=", "≠": "!==", "→": "=>"}


def name_character(character: str, dashes: Mapping[str, str] = DASHES) -> tuple[str, str]:
    """Return a message and a hint for a character that code can't hold; `dashes` maps characters to their replacements."""
    point = f"U+{ord(character):04X}"
    if character in SMART_QUOTES:
        plain = SMART_QUOTES[character]
        return f"smart quote {character} ({point}) in code", f"write a straight quote: {plain}"
    if character in dashes:
        return f"unexpected `{character}` ({point})", f"write `{dashes[character]}`"
    name = unicodedata.name(character, "control character").lower()
    if not character.isprintable() or character.isspace():
        return f"invisible character {point} ({name}) in code", "delete it, or write it as an escape inside a string"
    return f"unexpected `{character}` ({point}, {name})", "outside strings and comments, use plain ASCII characters"


_PYTHON = re.compile(
    r"^[ \t]*(?:async )?def \w+\("
    r"|^[ \t]*(?:if|elif|while|for|with|class|try|except|else)\b[^{}\n]*:[ \t]*(?:#[^\n]*)?$"
    r"|^[ \t]*from [\w.]+ import |^import \w+(?: as \w+)?[ \t]*$",
    re.MULTILINE,
)
_PYTHON_WORDS = re.compile(r"\b(?:None|True|False)\b|\bprint\(|\bf['\"]|\bnot in\b|\bis not\b")
JSON = re.compile(r'\s*+[\[{]\s*+(?://[^\n]*+\s*+)*+"')
PROSE = re.compile(r"^\s*(?:[-*#>]\s+)?[A-Z][\w']*,?(?:[ ]+[\w'`,()-]+){3,}[.:!?]?\s*$")
HTML = re.compile(r"^\s*<(?:!doctype|html|head|body|script|\?xml)\b", re.IGNORECASE)
_JSX = re.compile(r"</?[A-Za-z][\w.]*(?:\s[^<>]*)?/?>")


IS_PYTHON = 'this is Python: set the language to "python"'


def hint_for_mistake(source: str, shape: str, offset: int) -> str | None:
    """Return a hint for a common mistake at or near an offset; None when there is none."""
    line = line_around(source, offset)
    if HTML.match(source):
        return "this is HTML; a program is TypeScript or JavaScript"
    if _PYTHON.search(source, 0, 20_000) or _PYTHON_WORDS.search(line):
        return 'this looks like Python: set the language to "python", or write TypeScript'
    if shape.startswith("#", offset):
        return "comments start with `//`"
    if JSON.match(source):
        return "this looks like JSON; a program of data alone must be a valid expression"
    if offset and shape[offset - 1] == "'" and re.match(r"[a-z]{1,2}\b", shape[offset:]):
        return "a ' inside '…' ends the string: write \\' or put the string in double quotes"
    if shape[offset : offset + 1] == "<" or _JSX.search(line):
        return "a program can't contain JSX or HTML; build the text with template strings"
    if PROSE.match(line):
        return "this line looks like prose; put the program in a ```ts fence, or the prose in comments"
    return None


def line_around(source: str, offset: int) -> str:
    """Return the line that holds an offset, cut at 500 characters."""
    start = source.rfind("\n", 0, offset) + 1
    end = source.find("\n", offset)
    return source[start : len(source) if end < 0 else end][:500]
