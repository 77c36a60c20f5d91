"""What a person should look at before they approve a call of a program: advice, never a boundary.

The process that reads a program reports findings as a kind and a line. The host writes the text.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

MAX_FINDINGS_OF_A_KIND = 3
KINDS = {
    "code-from-text": "text becomes code, so the program does more than it shows",
    "computed-import": "a module is imported by a computed name",
    "reflection": "the internals of objects lead to things that the program does not name",
    "native-code": "ctypes reaches below the language",
    "encoded-result": "a tool's result is encoded before it is sent, so the arguments do not show what it says",
    "url-from-result": "a tool's result is put into the query of a URL",
    "opaque-literal": "a long encoded text is decoded or sent, and the program does not show what it says",
    "hidden-characters": "the text has characters that are invisible or reorder it",
}
"""The kinds of findings, each with the sentence that a person reads."""


class ProgramFinding(NamedTuple):
    """A kind of `KINDS`, and the line of the agent's text."""

    kind: str
    line: int


def advise(findings: Iterable[ProgramFinding]) -> tuple[str, ...]:
    """Return what to read beside a request for approval: one sentence for each kind."""
    lines: dict[str, list[str]] = {}
    for kind, line in findings:
        lines.setdefault(kind, []).append(str(line))
    return tuple(f"look at line{'s'[: len(at) - 1]} {', '.join(at)}: {KINDS[kind]}" for kind, at in lines.items())
