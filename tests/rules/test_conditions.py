"""Conditions of rules: what they mean, and what is refused with its place."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.rules.conditions import MAX_CONDITION_CHARS, ConditionError, compile_condition

ARGS: dict[str, Any] = {
    "amount": 250,
    "rate": 0.5,
    "currency": "EUR",
    "force": True,
    "nothing": None,
    "repo": "acme/shop",
    "labels": ["bug", "p1"],
    "to": [{"email": "ada@example.com"}],
    "odd name": 1,
    "text": "250",
}


def holds(text: str, args: dict[str, Any] = ARGS) -> bool | None:
    return compile_condition(text).holds(args)


@pytest.mark.parametrize(
    "text",
    [
        'args.amount > 100 and args.currency == "EUR"',
        "args.amount >= 250",
        "args.amount != 100",
        "args.rate == 0.5",
        "args.rate < 1e3 and args.rate > -1",
        "args.force",
        "args.force == true",
        "not args.missing",
        "args.missing == null and args.nothing == null",
        "args.amount == null or args.force",
        'args.currency in ["EUR", "USD"]',
        'args.currency not in ["CHF"]',
        '"bug" in args.labels',
        '"shop" in args.repo',
        'args.repo matches "acme/*"',
        "args.to[0].email == 'ada@example.com'",
        'args["odd name"] == 1',
        "len(args.labels) == 2 and len(args.repo) > 3",
        "not (args.amount < 100 or args.currency == 'USD')",
        'args.currency < "F"',
        r'"\"" != args.currency',
    ],
)
def test_a_condition_that_holds(text: str) -> None:
    assert holds(text) is True
    assert holds(f"not ({text})") is False


@pytest.mark.parametrize(
    "text",
    [
        "args.text > 100",
        "args.text == 250",
        "args.missing > 100",
        "args.missing <= 100",
        "args.force > 0",
        "args.force == 1",
        "args.labels == ['bug', 'p1']",
        "args.labels > 1",
        "args.currency",
        "args.amount in args.text",
        "args.amount in ['250']",
        "args.amount matches '2*'",
        "args.text > 100 and args.force",
        "args.text > 100 or args.missing == 1",
        "len(args.amount) > 1",
    ],
)
def test_a_test_that_makes_no_sense_for_its_values_is_neither_true_nor_false(text: str) -> None:
    assert holds(text) is None
    assert holds(f"not ({text})") is None


def test_what_is_certain_does_not_depend_on_what_is_not() -> None:
    assert holds("args.text > 100 and args.amount < 10") is False
    assert holds("args.text > 100 or args.amount > 10") is True


def test_truth_is_not_a_number_and_nan_is_nothing() -> None:
    assert holds("args.x == true", {"x": 1}) is None
    assert holds("args.x > 0", {"x": True}) is None
    assert holds("args.x != 1", {"x": float("nan")}) is None


@pytest.mark.parametrize(
    ("pattern", "text", "matches"),
    [
        ("https://x/v1?q=*", "https://x/v1?q=a", True),
        ("https://x/v1?q=*", "https://x/v1/q=a", False),
        ("a[b]/*", "a[b]/c", True),
        ("a[b]/*", "ab/c", False),
        ("acme/*", "acme/x\nevil", True),
        ("acme/*", "ACME/x", False),
        ("acme/*", "\u0430cme/x", False),
        ("acme/*", "acme", False),
    ],
)
def test_only_a_star_is_special_in_a_pattern(pattern: str, text: str, matches: bool) -> None:
    assert holds(f'args.x matches "{pattern}"', {"x": text}) is matches


@pytest.mark.parametrize("value", ["10", [10], {"a": 10}, True, None, float("nan")])
def test_what_is_no_number_is_neither_above_nor_below_one(value: Any) -> None:
    assert holds("args.x > 5", {"x": value}) is None
    assert holds("args.x.y[0] > 5", {"x": value}) is None


def test_numbers_of_any_size_are_compared_exactly() -> None:
    assert holds("args.x > 1e308", {"x": 10**4000}) is True
    assert holds("args.x < 9007199254740993", {"x": 9007199254740992}) is True
    assert holds("args.x > 5", {"x": float("inf")}) is True


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("", 1, "the condition ends where a value should stand", None),
        ("args.amount >", 14, "the condition ends where a value should stand", None),
        ("args.amount = 1", 13, "'=' is not part of a condition", "write == to compare"),
        ("args.a && args.b", 8, "'&' is not part of a condition", "write and"),
        ("amount > 100", 1, "there is no `amount`", 'write args.amount, or "amount" for a text'),
        ("args.a == 1 adn args.b", 13, "there is `adn` where the end should stand", "did you mean `and`?"),
        ("args.a == 1 args.b == 2", 13, "there is `args` where the end should stand", None),
        ("(args.a == 1", 13, "the condition ends where `)` should stand", None),
        ("args[x]", 6, "there is `x` where a position or a name in quotes should stand", None),
        ("args[-1] == 1", 6, "there is `-1` where a position or a name in quotes should stand", None),
        ("args.a matches args.b", 16, 'there is `args` where a pattern such as "acme/*" should stand', None),
        ("args.a == 'x", 11, "the text has no end", None),
        (r"args.a == '\d'", 12, r"\d has no meaning in a text", "write \\\\ for a backslash"),
        ("args.__class__.x()", 17, "there is `(` where the end should stand", None),
        ("(" * 40 + "args.a" + ")" * 40, 32, "it is nested too deeply", None),
        ("not " * 40 + "args.a", 125, "it is nested too deeply", None),
        ("args.a or " * 200, 1, "it has more than 1,000 characters", "split the rule"),
    ],
)
def test_a_text_that_is_no_condition_is_refused_with_its_place(
    text: str, column: int, message: str, hint: str | None
) -> None:
    with pytest.raises(ConditionError) as caught:
        compile_condition(text)
    assert (caught.value.column, caught.value.message) == (column, message)
    if hint:
        assert caught.value.hint == hint


def test_names_of_python_are_only_names_of_arguments() -> None:
    assert holds("args.__class__ == null", {}) is True
    assert holds("args.items == null", {}) is True
    assert holds("args.keys == 1", {"keys": 1}) is True


@given(st.text(st.sampled_from(" ()[].,<>=!\"'\\argslenotdi01x-"), max_size=60), st.dictionaries(st.text(), st.integers()))
def test_any_text_is_a_condition_or_refused(text: str, args: dict[str, Any]) -> None:
    try:
        condition = compile_condition(text)
    except ConditionError as error:
        assert 1 <= error.column <= len(text) + 1
    else:
        assert condition.holds(args) in (True, False, None)


def test_hostile_arguments_take_linear_time() -> None:
    stars = compile_condition(f'args.a matches "{"*a" * 200}*b"')
    nested = compile_condition("args.a" + ".a" * 400 + " == 1")
    assert len(nested.text) <= MAX_CONDITION_CHARS
    began = time.process_time()
    assert stars.holds({"a": "a" * 60_000}) is False
    assert stars.holds({"a": "a" * 100_000}) is None
    deep: dict[str, Any] = {}
    for _ in range(1000):
        deep = {"a": deep}
    assert nested.holds(deep) is None
    assert time.process_time() - began < 1.0
