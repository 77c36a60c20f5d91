"""Whether a program computes little, by the look of its tree: then an interpreter, which starts sooner, is no slower.

A *pass* goes over a list once: the body of a loop, or a function that is given to a method such as `map` or `sort`. A
program computes little where

- its loops are `for … of`, `for … in`, or count up to a `length` or a small number. Other loops may not end soon;
- no pass is made within a pass, neither written there nor by a function of the program that is called there. It may go
  over a part of the element that the outer pass has reached (`order.items`);
- it has no recursion, no generator, no regular expression, and no list or text of a size that it computes;
- it hands no result of a call on as a whole to another one: of a large one, encoding takes longest.

What waits in each turn (`await`) is no pass: a call costs more than the turn. What a call returns has crossed the border,
which costs more than a pass over it. The rule guesses. Where it is wrong, a program takes longer, and does nothing else.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

from gloveport.prepare.typescript.survey import VARIABLES, marks

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

_LOOPS = frozenset({"do_statement", "for_in_statement", "for_statement", "while_statement"})
MARKS = marks(_LOOPS | {"call_expression", "new_expression", "regex", "spread_element"})
"""What the survey of a program collects for this."""

_NEVER = frozenset({"regex", "generator_function", "generator_function_declaration"})
_UNNAMED = frozenset({"arrow_function", "function_expression"})
_FUNCTIONS = _UNNAMED | {"function_declaration", "method_definition"}
_LOOKED_AT = (*_LOOPS, *_FUNCTIONS, "call_expression", "new_expression", "spread_element")
_CALLS_ONCE = frozenset({"then", "catch", "finally", "setTimeout", "queueMicrotask", "Promise"})
_SIZED = frozenset({"Array", "from", "repeat", "padStart", "padEnd"})
_WALKS = """
    Map Set assign concat entries flat from fromEntries includes indexOf join keys lastIndexOf parse reverse shift sort
    splice stringify structuredClone toReversed toSorted toSpliced unshift values with
"""
_WALKING = frozenset(_WALKS.split())  # these go over a whole list or object without calling a function of the program
_COUNT = r"(?:\d{1,3}|1_?000)"
_BOUNDED = re.compile(rf"[\w$]+\s*<=?\s*(?:[\w$.\[\]?]+\.length|{_COUNT})\s*;?")
_CERTAIN_SIZE = re.compile(rf"\(\s*(?:\{{\s*length\s*:\s*)?{_COUNT}\s*[,}})]|\(\s*\)")
_FROM_OBJECT = re.compile(r"\(\s*\{")
_WORD = re.compile(r"[\w$]+")
_LAST_NAME = re.compile(r"[\w$]+$")
_DECLARED = re.compile(r"\b(?:const|let|var)\s+([\w$]+)(?:[^=;]|=>)*=$")
_ASSIGNED = re.compile(r"([\w$]+)\s*[=:]$")
_RESULT = re.compile(r"\b(?:const|let|var)\s+([\w$]+)\s*(?::[^=;]{0,200})?=\s*await\b")
_WHOLE = re.compile(r"(?:[({\[:,]|\.\.\.)\s*([\w$]+)(?=\s*[,})\]])")
_TAKERS = ("tools.", "codemode.", "emit")
_PLACE = itemgetter(0, 1)
MAX_LOOKED_AT = 400  # loops, functions and calls of a program that may compute little
MAX_NAME_CHARS = 60  # of what is called: a longer name is none of those that matter
MAX_NAME_DISTANCE = 200  # characters from the name of a variable to the function that it holds, with its type


class _Range(NamedTuple):
    """A pass, another part of the program, or a call.

    `start` of a call is that of its arguments. `name` is what a call calls, or a function is called; for a pass, it is the
    text that names the variables for its element.
    """

    start: int
    end: int
    kind: Literal["pass", "part", "call"]
    name: str
    goes_over: int = 0  # where the list is named that a call may go over


class _TooMuchError(Exception):
    """The program may compute much."""


def computes_little(source_text: SourceText) -> bool:
    """Return whether a program computes little. Its survey must have used `MARKS`."""
    if not source_text.found.nodes.keys().isdisjoint(_NEVER):
        return False
    try:
        _Look(source_text).look()
    except _TooMuchError:
        return False
    return True


@dataclass(slots=True)
class _Look:
    source_text: SourceText
    source: str = ""
    awaits: list[int] = field(default_factory=list)
    around: list[_Range] = field(default_factory=list)  # what the current node is in, the innermost last
    functions: list[_Range] = field(default_factory=list)  # those that the program can call by a name
    passes: list[_Range] = field(default_factory=list)
    open_passes: list[_Range] = field(default_factory=list)  # those around the current node
    walks: list[int] = field(default_factory=list)  # where the program goes over a list
    calls: list[tuple[int, str]] = field(default_factory=list)

    def look(self) -> None:
        found, self.source = self.source_text.found, self.source_text.source
        self.awaits = [node.start_byte for node in found.of("await")]
        results = frozenset(_RESULT.findall(self.source)) if self.awaits else frozenset()
        nodes = [(node.start_byte, -node.end_byte, kind, node) for kind in _LOOKED_AT for node in found.nodes.get(kind, ())]
        if len(nodes) > MAX_LOOKED_AT:
            raise _TooMuchError
        nodes.sort(key=_PLACE)
        around = self.around
        for start, minus_end, kind, node in nodes:
            while around and around[-1].end <= start:
                around.pop()
            while self.open_passes and self.open_passes[-1].end <= start:
                self.open_passes.pop()
            if kind == "call_expression":
                self._call(node, -minus_end, "function", results)
            elif kind in _FUNCTIONS:
                self._function(node, kind, start, -minus_end)
            elif kind in _LOOPS:
                self._loop(node, kind)
            elif kind == "spread_element":
                self._walk(start, start + len("..."))
            else:
                self._call(node, -minus_end, "constructor", results)
        if self.functions:
            self._check_functions()

    def _loop(self, node: Node, kind: str) -> None:
        body = node.child_by_field_name("body")
        assert body
        start, end = body.start_byte, node.end_byte
        if self._waits(start, end):
            self.around.append(_Range(start, end, "part", ""))
            return
        if kind == "for_statement":
            condition = node.child_by_field_name("condition")
            if condition is None or not _BOUNDED.fullmatch(self.source, condition.start_byte, condition.end_byte):
                raise _TooMuchError
            self._pass(start, end, condition.start_byte, "")
        elif kind == "for_in_statement":
            left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
            assert left
            assert right
            self._pass(start, end, right.start_byte, self.source_text.text(left))
        else:
            raise _TooMuchError

    def _function(self, node: Node, kind: str, start: int, end: int) -> None:
        if kind not in _UNNAMED:
            name = node.child_by_field_name("name")
            self.functions.append(_Range(start, end, "part", self.source_text.text(name) if name else ""))
        elif self.around and self.around[-1].kind == "call" and self.around[-1].start <= start:
            call = self.around[-1].name
            if call not in _CALLS_ONCE and not self._waits(start, end):
                until = self.source.find("=>" if kind == "arrow_function" else "{", start, end)
                gathers = call.startswith("reduce")  # what it gathers grows with each turn
                self._pass(start, end, self.around[-1].goes_over, "" if gathers else self.source[start:until])
                return
        else:
            before = self.source[max(0, start - MAX_NAME_DISTANCE) : start].rstrip()
            given = before.endswith(("=", ":")) and (_DECLARED.search(before) or _ASSIGNED.search(before))
            if given:
                self.functions.append(_Range(start, end, "part", given[1]))
        self.around.append(_Range(start, end, "part", ""))

    def _call(self, node: Node, end: int, callee_field: str, results: frozenset[str]) -> None:
        callee, arguments = node.child_by_field_name(callee_field), node.child_by_field_name("arguments")
        if callee is None or arguments is None:
            return
        at, start = callee.start_byte, arguments.start_byte
        found = _LAST_NAME.search(self.source, max(at, callee.end_byte - MAX_NAME_CHARS), callee.end_byte)
        name = found[0] if found else ""
        goes_over = self.source.find("(", at) if self.source[at].isupper() else at  # `Object.keys(order)`
        if name in _WALKING:
            self._walk(start, goes_over)
        is_sized = name in _SIZED and (name != "from" or _FROM_OBJECT.match(self.source, start))
        if is_sized and not _CERTAIN_SIZE.match(self.source, start):
            raise _TooMuchError
        takes = results and self.source.startswith(_TAKERS, at)
        if takes and not results.isdisjoint(_WHOLE.findall(self.source, start, end)):
            raise _TooMuchError
        self.around.append(_Range(start, end, "call", name, goes_over))
        self.calls.append((start, name))

    def _pass(self, start: int, end: int, goes_over: int, variables: str) -> None:
        self._walk(start, goes_over)
        found = _Range(start, end, "pass", variables)
        self.around.append(found)
        self.passes.append(found)
        self.open_passes.append(found)

    def _walk(self, start: int, goes_over: int) -> None:
        """Note that the program goes over a list, the one that is named at `goes_over`.

        Raise _TooMuchError if this may be too much: in a pass, unless the list is a part of its element.
        """
        self.walks.append(start)
        if self.open_passes:
            found = _WORD.search(self.source, goes_over)
            if found is None or found[0] not in _WORD.findall(self.open_passes[-1].name):
                raise _TooMuchError

    def _waits(self, start: int, end: int) -> bool:
        index = bisect_left(self.awaits, start)
        return index < len(self.awaits) and self.awaits[index] < end

    # The functions of the program.

    def _check_functions(self) -> None:
        """Raise _TooMuchError for recursion, and for a function that goes over a list and may be called in a pass."""
        walkers = {one.name for one in self.functions if any(one.start <= at < one.end for at in self.walks)}
        uses = list(self._uses())
        callees: dict[str, set[str]] = {one.name: set() for one in self.functions}
        for at, name in uses:
            for one in self.functions:
                if one.start <= at < one.end:
                    callees[one.name].add(name)
        for name in callees:
            reached = _reached(name, callees)
            if name in reached:
                raise _TooMuchError
            if not walkers.isdisjoint(reached):
                walkers.add(name)
        for at, name in uses:
            if name in walkers and (not self._is_called(at, name) or any(one.start <= at < one.end for one in self.passes)):
                raise _TooMuchError

    def _uses(self) -> Iterator[tuple[int, str]]:
        """Yield where the program uses the name of one of its functions."""
        names, source = {one.name for one in self.functions}, self.source
        for node, parent in self.source_text.found.identifiers:
            name = source[node.start_byte : node.end_byte]
            if name in names and node.type in VARIABLES:
                declares = parent.type in {"function_declaration", "variable_declarator"}
                if not declares or parent.child_by_field_name("name") != node:
                    yield node.start_byte, name
        for arguments, name in self.calls:
            if name in names:
                yield arguments - len(name), name

    def _is_called(self, at: int, name: str) -> bool:
        return self.source.startswith(name, at) and self.source[at + len(name) : at + len(name) + 1] == "("


def _reached(name: str, callees: dict[str, set[str]]) -> set[str]:
    """Return the functions that a function may call, directly or not."""
    reached, left = set[str](), list(callees[name])
    while left:
        if (one := left.pop()) not in reached:
            reached.add(one)
            left += callees[one]
    return reached
