"""Whether a program could reach a tool, by its text alone: one that can't has nothing to wait for."""

from __future__ import annotations

import re

# Tools and the ways to wait for one; the global scope, and what leads to it; what could spell any of this in pieces; the
# function that a program may be.
_WORDS = re.compile(
    r"tools|codemode|local|await|async|then|import|require|this|self|window|global|eval|exec|compile|Function|constructor"
    r"|vars|attr|_frame|f_|__|\\|export|function|def |main"
)
# A program that is a function gets its tools as an argument, by whatever name. One that is passed on gets other things.
_PASSED_ON = re.compile(r"[(,]\s*(?:\w+|\([\w\s,]*\))\s*=>")


def may_reach(text: str) -> bool:
    """False for a text without any word that leads to tools. Sources are globals too, of names that it knows nothing of.

    It decides about waiting and about nothing else: a program that finds another way meets sources that are not open.
    """
    return not text.isascii() or _WORDS.search(text) is not None or "=>" in _PASSED_ON.sub("", text)
