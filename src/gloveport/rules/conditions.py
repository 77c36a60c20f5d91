"""Conditions of rules: `args.amount > 100 and args.currency == "EUR"`, compiled when the rules are loaded.

    condition   one or more tests, joined by `and`, `or`, `not` and brackets
    test        value == != < <= > >= value · value in value · value matches "acme/*" · a value that is true or false
    value       args.name, args.list[0], args["odd name"] · 12.5 "text" true false null ["a", "b"] · len(value)

A missing argument is null. A test that makes no sense for its values (an order between a text and a number, of null, of
lists) is neither true nor false, and so is what depends on it alone: `Condition.holds` returns None. Rules read that in the
safe direction: one that denies or asks then applies, and one that allows does not.

Nothing is evaluated by Python: the text becomes a tree of our own functions. The time of a test is linear in its values.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import translate
from typing import Any, NamedTuple

from gloveport.suggestions import did_you_mean

MAX_CONDITION_CHARS = 1000
MAX_CONDITION_DEPTH = 30
MAX_TESTED_CHARS = 64 * 1024
"""A longer text is not searched: the test is neither true nor false."""

Truth = bool | None
Value = Callable[[Any], Any]
Test = Callable[[Any], Truth]

_TOKEN = re.compile(
    r"""\s*(?:
        (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)
      | (?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<sign>==|!=|<=|>=|[<>()\[\],.])
      | (?P<end>\Z)
    )""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "\\": "\\", '"': '"', "'": "'"}
_ORDERS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_WORDS = {"true": True, "false": False, "null": None}
_NAMES = ("args", "len", "and", "or", "not", "in", "matches", *_WORDS)


class ConditionError(ValueError):
    """A text that is no condition: what is wrong, at which column (from 1), and what to write."""

    def __init__(self, message: str, column: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message, self.column, self.hint = message, column, hint


@dataclass(frozen=True, slots=True)
class Condition:
    """A compiled condition."""

    text: str
    test: Test

    def holds(self, args: Mapping[str, Any]) -> Truth:
        """Return whether it holds for these arguments; None when it is neither true nor false."""
        return self.test(args)


def compile_condition(text: str) -> Condition:
    """Return the condition that a text states; raise ConditionError."""
    if len(text) > MAX_CONDITION_CHARS:
        raise ConditionError(f"it has more than {MAX_CONDITION_CHARS:,} characters", 1, "split the rule")
    parser = _ConditionParser(_tokens(text))
    test = parser.condition(0)
    parser.expect("end", "")
    return Condition(text, test)


class _Token(NamedTuple):
    kind: str
    text: str
    column: int


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, at)
        if match is None:
            column = at + len(text[at:]) - len(text[at:].lstrip()) + 1
            sign = text[column - 1]
            hints = {"=": "write == to compare", "&": "write and", "|": "write or", "!": "write not, or != to compare"}
            message = "the text has no end" if sign in "\"'" else f"{sign!r} is not part of a condition"
            raise ConditionError(message, column, hints.get(sign))
        kind = match.lastgroup or ""
        found.append(_Token(kind, match[kind], match.start(kind) + 1))
        at = match.end()
    return found


class _ConditionParser:
    """Recursive descent over the tokens; each method takes the tokens of one construct."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    def _take(self, *texts: str) -> _Token | None:
        token = self._next
        if token.text not in texts or token.kind not in ("name", "sign"):
            return None
        self._at += 1
        return token

    def expect(self, kind: str, text: str) -> _Token:
        """Take the next token, which must be this one."""
        token = self._next
        if token.kind != kind or (text and token.text != text):
            raise self._wanted(token, f"`{text}`" if text else {"end": "the end", "name": "a name"}[kind])
        self._at += 1
        return token

    def _wanted(self, token: _Token, wanted: str) -> ConditionError:
        there = "the condition ends" if token.kind == "end" else f"there is `{token.text[:40]}`"
        hint = did_you_mean(token.text, _NAMES) if token.kind == "name" else None
        return ConditionError(f"{there} where {wanted} should stand", token.column, hint)

    def condition(self, depth: int) -> Test:
        tests = [self._conjunction(depth)]
        while self._take("or"):
            tests.append(self._conjunction(depth))
        return tests[0] if len(tests) == 1 else _any(tests)

    def _conjunction(self, depth: int) -> Test:
        tests = [self._negation(depth)]
        while self._take("and"):
            tests.append(self._negation(depth))
        return tests[0] if len(tests) == 1 else _all(tests)

    def _negation(self, depth: int) -> Test:
        if depth > MAX_CONDITION_DEPTH:
            raise ConditionError("it is nested too deeply", self._next.column)
        if self._take("not"):
            return _not(self._negation(depth + 1))
        if self._take("("):
            inside = self.condition(depth + 1)
            self.expect("sign", ")")
            return inside
        return self._comparison(depth)

    def _comparison(self, depth: int) -> Test:
        left = self._value(depth)
        if token := self._take("==", "!="):
            equal = _equality(left, self._value(depth))
            return equal if token.text == "==" else _not(equal)
        if token := self._take(*_ORDERS):
            return _order(_ORDERS[token.text], left, self._value(depth))
        if self._take("in"):
            return _membership(left, self._value(depth))
        if self._take("not"):
            self.expect("name", "in")
            return _not(_membership(left, self._value(depth)))
        if self._take("matches"):
            return _match(left, self._pattern())
        return lambda args: found if isinstance(found := left(args), bool) else (False if found is None else None)

    def _pattern(self) -> str:
        token = self._next
        if token.kind != "text":
            raise self._wanted(token, 'a pattern such as "acme/*"')
        self._at += 1
        return _unquoted(token)

    def _value(self, depth: int) -> Value:
        token = self._next
        if depth > MAX_CONDITION_DEPTH:
            raise ConditionError("it is nested too deeply", token.column)
        if token.kind in ("number", "text"):
            self._at += 1
            return _constant(_number(token) if token.kind == "number" else _unquoted(token))
        if found := self._take(*_WORDS):
            return _constant(_WORDS[found.text])
        if self._take("["):
            return self._list(depth)
        if self._take("len"):
            self.expect("sign", "(")
            inside = self._value(depth + 1)
            self.expect("sign", ")")
            return _length(inside)
        if self._take("args"):
            return self._path()
        if token.kind == "name" and token.text not in _NAMES:
            hint = f'write args.{token.text[:40]}, or "{token.text[:40]}" for a text'
            raise ConditionError(f"there is no `{token.text[:40]}`", token.column, hint)
        raise self._wanted(token, "a value")

    def _list(self, depth: int) -> Value:
        items: list[Value] = []
        while not self._take("]"):
            if items:
                self.expect("sign", ",")
            items.append(self._value(depth + 1))
        return lambda args: [item(args) for item in items]

    def _path(self) -> Value:
        steps: list[str | int] = []
        while True:
            if self._take("."):
                steps.append(self.expect("name", "").text)
            elif self._take("["):
                token = self._next
                if token.kind not in ("number", "text") or (token.kind == "number" and not token.text.isdecimal()):
                    raise self._wanted(token, "a position or a name in quotes")
                self._at += 1
                steps.append(int(token.text[:9]) if token.kind == "number" else _unquoted(token))
                self.expect("sign", "]")
            else:
                return _lookup(steps)


def _number(token: _Token) -> int | float:
    return int(token.text) if re.fullmatch(r"-?\d{1,300}", token.text) else float(token.text)


def _unquoted(token: _Token) -> str:
    for escape in _ESCAPE.finditer(token.text):
        if escape[1] not in _ESCAPES:
            hint = "write \\\\ for a backslash"
            raise ConditionError(f"{escape[0]} has no meaning in a text", token.column + escape.start(), hint)
    return _ESCAPE.sub(lambda escape: _ESCAPES[escape[1]], token.text[1:-1])


# ── values ──


def _constant(value: Any) -> Value:
    return lambda args: value


def _lookup(steps: Sequence[str | int]) -> Value:
    def look_up(found: Any) -> Any:
        for step in steps:
            if isinstance(found, Mapping) and isinstance(step, str):
                found = found.get(step)
            elif isinstance(found, list | tuple) and isinstance(step, int):
                found = found[step] if step < len(found) else None
            else:
                return None
        return found

    return look_up


def _length(of: Value) -> Value:
    def length(args: Any) -> int | None:
        found = of(args)
        return len(found) if isinstance(found, str | bytes | list | tuple | Mapping) else None

    return length


# ── tests ──


def _all(tests: Sequence[Test]) -> Test:
    def all_hold(args: Any) -> Truth:
        truth: Truth = True
        for test in tests:
            found = test(args)
            if found is False:
                return False
            truth = truth and found
        return truth

    return all_hold


def _any(tests: Sequence[Test]) -> Test:
    none_fails = _all([_not(test) for test in tests])
    return _not(none_fails)


def _not(test: Test) -> Test:
    def negated(args: Any) -> Truth:
        found = test(args)
        return None if found is None else not found

    return negated


def _equality(left: Value, right: Value) -> Test:
    return lambda args: _equal(left(args), right(args))


def _equal(one: Any, other: Any) -> Truth:
    if one is None or other is None:
        return one is other
    kind = _kind(one)
    return one == other if kind and kind == _kind(other) else None


def _kind(value: Any) -> str:
    """Return the kind of a value that can be compared; empty for lists, objects and NaN."""
    if isinstance(value, bool):
        return "truth"
    if isinstance(value, int | float):
        return "" if isinstance(value, float) and math.isnan(value) else "number"
    return "text" if isinstance(value, str) else ""


def _order(holds: Callable[[Any, Any], bool], left: Value, right: Value) -> Test:
    def ordered(args: Any) -> Truth:
        one, other = left(args), right(args)
        kind = _kind(one)
        return holds(one, other) if kind in ("number", "text") and kind == _kind(other) else None

    return ordered


def _membership(item: Value, container: Value) -> Test:
    def is_in(args: Any) -> Truth:
        wanted, found = item(args), container(args)
        if isinstance(found, str):
            return wanted in found if isinstance(wanted, str) and len(found) <= MAX_TESTED_CHARS else None
        if not isinstance(found, list | tuple):
            return None
        truths = {_equal(wanted, each) for each in found}
        return True if True in truths else None if None in truths else False

    return is_in


def _match(value: Value, pattern: str) -> Test:
    # Only `*` is special: `?` and `[` stand for themselves, as they do in URLs and paths.
    matches = re.compile(translate(re.sub(r"[?[]", r"[\g<0>]", pattern))).match

    def fits(args: Any) -> Truth:
        found = value(args)
        return bool(matches(found)) if isinstance(found, str) and len(found) <= MAX_TESTED_CHARS else None

    return fits
