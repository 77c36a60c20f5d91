"""Markdown: which stretches of a text are code, and which are prose."""

from __future__ import annotations

import re
from typing import NamedTuple

LABELS = frozenset(
    ["ts", "typescript", "mts", "cts", "tsx", "js", "javascript", "mjs", "cjs", "jsx", "node", "deno", "bun", "es6"]
)
"""Labels of a fence that holds TypeScript or JavaScript, in lower case."""
PYTHON = frozenset(["python", "py", "python3", "py3", "pycon", "python-repl", "ipython", "ipython3", "cpython"])
"""Labels of a fence that holds Python, in lower case."""
UNLABELLED = frozenset(["", "code", "tool_code", "program", "script", "snippet", "execute"])
"""Labels that do not name a language."""

_MARKER = re.compile(r"^[ \t]*(?P<fence>`{3,}|~{3,})(?P<info>[^\n\r]*)\r?$", re.MULTILINE)
_LABEL = re.compile(r"[{.\s]*([\w+#-]*)")
_INLINE_LABEL = re.compile(r"\s*+(?:([A-Za-z]+)[ \t]++)?")


class Block(NamedTuple):
    """A fenced block: the offset of its fence, its label, and where its content starts and ends."""

    fence: int
    label: str
    start: int
    end: int


def has_fence(text: str) -> bool:
    """Return whether a text could hold a fence at all. This test is cheap."""
    return "```" in text or "~~~" in text


def blocks(text: str, labels: frozenset[str] = LABELS) -> list[Block]:
    """Return the fenced blocks of a text, by the rules of Markdown. The last block may lack its closing fence."""
    inline = _inline(text, labels)
    if inline:
        return [inline]
    found: list[Block] = []
    opened: tuple[str, Block] | None = None
    for marker in _MARKER.finditer(text):
        fence, info = marker["fence"], marker["info"].strip()
        if opened is None:
            if fence[0] == "`" and "`" in info:
                continue
            start = min(_after_line_end(text, marker.end()), len(text))
            opened = (fence, Block(marker.start("fence"), _label(info), start, len(text)))
        elif not info and fence.startswith(opened[0]):
            found.append(opened[1]._replace(end=max(opened[1].start, marker.start())))
            opened = None
    if opened is not None:
        found.append(_left_open(text, *opened))
    return found


def _inline(text: str, labels: frozenset[str]) -> Block | None:
    """Return the block of a text that is a single line between fences."""
    kept = text.strip()
    if "\n" in kept or len(kept) < 7 or not (kept.startswith("```") and kept.endswith("```")) or kept[3] == "`":
        return None
    fence = text.index("```")
    end = fence + len(kept) - 3
    matched = _INLINE_LABEL.match(text, fence + 3)
    label = (matched[1] or "").lower() if matched else ""
    start = matched.end() if matched and label in labels else fence + 3
    return Block(fence, label if label in labels else "", start, end)


def widest(text: str, first: Block) -> Block | None:
    """Return the first block extended to the last closing fence, for a program that holds such a line itself."""
    fence = text[first.fence]
    closing = [m for m in _MARKER.finditer(text, first.start) if not m["info"].strip() and m["fence"][0] == fence]
    if not closing or closing[-1].start() <= first.end:
        return None
    return first._replace(end=closing[-1].start())


def programs(found: list[Block], labels: frozenset[str] = LABELS) -> list[Block]:
    """Return the blocks that form the program: those labelled with its language, else those without a language."""
    labelled = [block for block in found if block.label in labels]
    return labelled or [block for block in found if block.label in UNLABELLED]


def outside(text: str, chosen: list[Block]) -> list[tuple[int, int]]:
    """Return the stretches of a text around the chosen blocks."""
    edges = [0, *(edge for block in chosen for edge in (block.start, block.end)), len(text)]
    return [(start, end) for start, end in zip(edges[::2], edges[1::2], strict=True) if end > start]


def _label(info: str) -> str:
    matched = _LABEL.match(info)
    return matched[1].lower() if matched else ""


def _after_line_end(text: str, position: int) -> int:
    return position + 1 if position < len(text) else position


def _left_open(text: str, fence: str, block: Block) -> Block:
    """Return a block without a closing line: it ends with the text, or at a fence that ends its last line of code."""
    kept = text.rstrip()
    if kept.endswith(fence) and len(kept) - len(fence) >= block.start:
        return block._replace(end=len(kept) - len(fence))
    return block
