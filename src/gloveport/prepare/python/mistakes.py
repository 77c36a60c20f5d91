"""Recognise the mistakes that agents make most in Python, so that the hint can state the fix."""

from __future__ import annotations

import re

from gloveport.prepare.mistakes import DASHES, HTML, PROSE, line_around

PYTHON_DASHES = {**DASHES, "≠": "!=", "→": "->"}

_JAVASCRIPT = re.compile(
    r"^[ \t]*(?:export |import [\w{*][^\n]* from ['\"]|(?:async )?function\b|(?:const|let|var) [\w{\[])"
    r"|=>[ \t]*[({\w]|\bconsole\.log\(|\}[ \t]*(?:else|catch|finally)\b|^[ \t]*\}\)?;?[ \t]*$"
    r"|^[ \t]*(?:if|for|while) \([^\n]*\) \{",
    re.MULTILINE,
)
_INSTEAD = {
    "===": "`==`",
    "!==": "`!=`",
    "&&": "`and`",
    "||": "`or`",
    "++": "`+= 1`",
    "--": "`-= 1`",
    "<>": "`!=`",
}
_OPERATOR = re.compile(r"!==|===|&&|\|\||\+\+|--|<>")
_TERNARY = re.compile(r"\?[^:\n]*:")
_MAGIC = re.compile(r"\s*(?:%%?|!)[a-z]+[ \t]+\S|\s*pip3? install ")
_PROMPT = re.compile(r"\s*(?:>>>|In \[\d*\]:)")
_OLD = re.compile(r"\s*(?:raise|except)\s+[\w.]+\s*,|\s*(?:print|exec)\s+[^(=\s]|\s*print\s*>>")


def hint_for_mistake(source: str, offset: int) -> str | None:
    """Return a hint for a common mistake at or near an offset; None when there is none."""
    line = line_around(source, offset)
    rest = source[offset : offset + 80]
    if HTML.match(source):
        return "this is HTML; a program is Python"
    if _JAVASCRIPT.search(source, 0, 20_000):
        return 'this looks like JavaScript: set the language to "typescript", or write Python'
    if _OLD.match(line):
        return "this is Python 2; write `print(…)`, `raise Error(…)` and `except Error as e:`"
    if _MAGIC.match(line):
        return "a program can't contain shell or notebook commands; the standard library is installed already"
    if _PROMPT.match(line):
        return "remove the prompts, or start the first line with one"
    return _operator(line, rest) or _prose(line)


def _operator(line: str, rest: str) -> str | None:
    if rest.startswith(("//", "/*")) or line.lstrip().startswith(("//", "/*")):
        return "comments start with `#`"
    found = _OPERATOR.search(line)
    if found:
        return f"write {_INSTEAD[found[0]]} instead of `{found[0]}`"
    if rest.startswith("?") and _TERNARY.match(rest):
        return "write `a if condition else b`"
    if rest.startswith("!"):
        return "write `not` instead of `!`"
    if rest.startswith("`"):
        return 'write strings with quotes: f"…{value}…"'
    return None


def _prose(line: str) -> str | None:
    if PROSE.match(line):
        return "this line looks like prose; put the program in a ```python fence, or the prose in comments"
    return None
