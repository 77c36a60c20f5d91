"""Follows values through a program's names, in one pass in the order of the text, and finds what a person should look at.

`typescript/findings.py` and `python/findings.py` report here what they see in their trees. A mark is a property of values
(`result`: it comes from a tool), with the last step of the walk where it stood: an expression that began at `start` holds
it if that is not before `start`. So each step takes constant time.

It knows neither aliases of tools nor what the program's functions return. It is easy to evade; no decision depends on it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from gloveport.advice import MAX_FINDINGS_OF_A_KIND, ProgramFinding
from gloveport.prepare.call_check import TOOLS
from gloveport.prepare.diagnostics import line_and_column
from gloveport.prepare.positions import nearest_source_offset
from gloveport.types import Program

Part = Any
"""A node of a tree, None, or a function to call when the walk gets there; it may return more parts."""
Steps = Callable[[Any], Sequence[Part] | None]
"""Reports a node to the flow, and returns its parts in the order of their evaluation."""
NOWHERE = sys.maxsize  # the start of a value that holds nothing
MIN_OPAQUE_CHARS = 200
_CODE = frozenset({"Function", "compile", "eval", "exec", "marshal.loads", "pickle.loads"})
_ENCODING = "b16encode b32encode b64encode b85encode btoa compress hex hexlify toBase64 toHex urlsafe_b64encode"
_DECODING = "atob b16decode b32decode b64decode b85decode decompress fromBase64 fromHex fromhex unhexlify"
_REFLECTING = """
    __base__ __bases__ __builtins__ __closure__ __code__ __getattribute__ __globals__ __mro__ __proto__ __reduce_ex__
    __subclasses__ _getframe constructor.constructor f_back f_builtins f_globals f_locals gi_frame tb_frame
"""
_ENCODERS, _DECODERS, _INTERNALS = (frozenset(names.split()) for names in (_ENCODING, _DECODING, _REFLECTING))
_QUERIES = frozenset({"URLSearchParams", "urlencode"})
_FETCHES = frozenset({"fetch", "urlopen", "urllib.request.urlopen", "urllib.request.Request"})
_ADDING = frozenset({"add", "append", "extend", "push", "set", "update"})
_EXPLORING = frozenset(f"{root}.{name}" for root in TOOLS for name in ("describe", "search", "sources"))
_OPEN_QUERY = re.compile(r"(?:https?://[^\s?]*\?|[?&][\w.\[\]%~-]+=)\Z")
_OPAQUE = re.compile(r"(?=\D*\d)(?=[^A-Za-z]*[A-Za-z])[A-Za-z0-9+/=_\n-]+\Z")
_HIDDEN = re.compile("[\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0001-\U000e007f]")
_HONEST = re.compile("\\A\ufeff|\U0001f3f4[\U000e0020-\U000e007f]+")  # a byte order mark, and the flags of regions


class DataFlow:
    """The state of the walk over one program."""

    def __init__(self) -> None:
        self.now = 0
        self._marks: dict[str, int] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._bound: set[str] = set()
        self._found: list[tuple[str, Any, str]] = []
        self._in_query = False

    def walk(self, root: Part, steps: Steps) -> list[tuple[str, Any]]:
        """Visit a tree, and return what was found and where."""
        pending = [root]
        while pending:
            part = pending.pop()
            self.now += 1
            if part is not None:
                parts: Any = part() if callable(part) else steps(part)
                pending += reversed(parts or ())
        return [(kind, node) for kind, node, name in self._found if name not in self._bound]

    def report(self, kind: str, node: Part, name: str = "") -> None:
        """Note a finding. One about a global counts only if the program does not bind the name itself."""
        if sum(kind == known for known, *_ in self._found) < MAX_FINDINGS_OF_A_KIND:
            self._found.append((kind, node, name))

    def mark(self, mark: str) -> None:
        """Note that a value with this mark stands here."""
        self._marks[mark] = self.now
        if self._in_query and mark in ("result", "encoded"):
            self._marks["query"] = self.now

    def holds(self, mark: str, start: int) -> bool:
        """Return whether what began at `start` and ends here holds this mark."""
        return self._marks.get(mark, -1) >= start

    def use(self, name: str) -> None:
        """Note that a variable is read."""
        for mark in self._names.get(name, ()):
            self.mark(mark)

    def text(self, value: str) -> None:
        """Note a piece of text; what follows it in the same string may be in the query of a URL."""
        self._in_query = bool(_OPEN_QUERY.search(value[-MIN_OPAQUE_CHARS:]))
        if len(value) >= MIN_OPAQUE_CHARS and len(set(value)) > 12 and _OPAQUE.match(value):
            self.mark("opaque")

    def bind(self, names: Sequence[str], start: int, *, adds: bool = False) -> None:
        """Note that names get the value that began at `start`. With `adds`, they keep what they hold."""
        held = frozenset(mark for mark, at in self._marks.items() if at >= start)
        for name in names:
            self._names[name] = held | self._names.get(name, held) if adds else held
        self._bound.update(() if adds else names)

    def attribute(self, name: str, node: Part) -> None:
        """Note that a property is read."""
        if name in _INTERNALS:
            self.report("reflection", node)

    def call(self, callee: str, start: int, node: Part) -> None:
        """Note a call that began at `start`. A callee is a chain (`tools.mail.send`); one on a value begins with `.`."""
        root, _, rest = callee.partition(".")
        last = callee.rpartition(".")[2]
        if (root in TOOLS and rest) or callee in _FETCHES:
            self._send(callee, start, node)
        elif callee in _CODE or (last == "constructor" and rest):
            self.report("code-from-text", node, root or ".")
        elif last in _ENCODERS and self.holds("result", start):
            self.mark("encoded")
        elif last in _DECODERS and self.holds("opaque", start):
            self.report("opaque-literal", node)
        elif (last in _QUERIES or ".searchParams." in callee) and self.holds("result", start):
            self.mark("query")
        if last in _ADDING and root and rest:
            self.bind((root,), start, adds=True)

    def _send(self, callee: str, start: int, node: Part) -> None:
        for mark, kind in (("encoded", "encoded-result"), ("query", "url-from-result"), ("opaque", "opaque-literal")):
            if self.holds(mark, start):
                self.report(kind, node)
        if callee not in _FETCHES and callee not in _EXPLORING:
            self.mark("result")


def find_in(
    root: Part, program: Program, steps_for: Callable[[DataFlow], Steps], offset_of: Callable[[Part], int]
) -> tuple[ProgramFinding, ...]:
    """Return what a person should look at in a program whose code has this tree, in the order of the text."""
    source, flow = program.source, DataFlow()
    places = [(kind, offset_of(node)) for kind, node in flow.walk(root, steps_for(flow))]
    found = [(kind, nearest_source_offset(program.spans, offset)) for kind, offset in places]
    shown = _HONEST.sub(lambda honest: " " * len(honest[0]), source)
    hidden = (("hidden-characters", match.start()) for match in _HIDDEN.finditer(shown))
    found += islice(hidden, MAX_FINDINGS_OF_A_KIND)
    lines = {ProgramFinding(kind, line_and_column(source, at)[0]) for kind, at in found}
    return tuple(sorted(lines, key=lambda one: (one.line, one.kind)))
