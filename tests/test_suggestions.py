"""Did you mean …? The words that are suggested, and how the question is worded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.suggestions import MAX_WORD_CHARS, did_you_mean, distance, question, similar
from tests.holding import MAX_HOLD_MS, cpu_ms

KEYS = ("base_url", "allow_private", "timeout_seconds", "max_response_bytes", "writes", "claude-code", "repo")


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("basurl", "base_url"),
        ("baseUrl", "base_url"),
        ("wirtes", "writes"),
        ("claude", "claude-code"),
        ("timeout", "timeout_seconds"),
        ("private", "allow_private"),
        ("max_bytes", "max_response_bytes"),
        ("maxBytes", "max_response_bytes"),
        ("repo_name", "repo"),
    ],
)
def test_a_misspelt_a_short_and_an_incomplete_word_are_recognized(word: str, meant: str) -> None:
    assert similar(word, KEYS) == (meant,)


@pytest.mark.parametrize("word", ["", "x", "ti", "address", "x" * (MAX_WORD_CHARS + 1), "writes" * MAX_WORD_CHARS])
def test_nothing_is_suggested_for_an_unrelated_or_very_long_word(word: str) -> None:
    assert similar(word, KEYS) == ()
    assert did_you_mean(word, KEYS) is None


def test_at_most_three_words_are_suggested_the_closest_first() -> None:
    assert similar("name1", ["name22", "name", "names", "name12", "other"]) == ("name", "name12", "names")


def test_the_question_names_each_word_in_backticks() -> None:
    assert question(["a"]) == "did you mean `a`?"
    assert question(["a", "b"]) == "did you mean `a` or `b`?"
    assert question(["a", "b", "c"]) == "did you mean `a`, `b` or `c`?"


@pytest.mark.parametrize("word", ["aB" * 32, "a" * 64, "ab_" * 21])
def test_no_words_make_the_comparison_take_long(word: str) -> None:
    known = [f"{'bA' * 30}{number:04}" for number in range(5000)] + [word[:-1] + "z"] * 5000 + ["x" * 1_000_000]
    assert cpu_ms(similar, word, known) < MAX_HOLD_MS


@given(st.text("abc", max_size=12), st.text("abc", max_size=12), st.integers(1, 12))
def test_the_distance_counts_edits_and_swaps_up_to_the_bound(one: str, other: str, most: int) -> None:
    assert distance(one, other, most) == min(_edits(one, other), most + 1)


def _edits(one: str, other: str) -> int:
    """Return the edit distance as the textbook defines it."""
    rows = [list(range(len(other) + 1))]
    for i, letter in enumerate(one, 1):
        row = [i]
        for j, against in enumerate(other, 1):
            cost = min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + (letter != against))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == against:
                cost = min(cost, rows[i - 2][j - 2] + 1)
            row.append(cost)
        rows.append(row)
    return rows[-1][-1]
