"""Texts from outside: what hides or reorders is gone, what is long is cut."""

import time

import pytest

from gloveport.sources.texts import clean


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", "plain"),
        ("  two\r\nlines \n", "two\nlines"),
        ("a\u200bb\u2060c\ufeffd", "abcd"),
        ("safe\u202eevil", "safeevil"),
        ("bell\x07 escape\x1b[31m", "bell escape[31m"),
        ("tag\U000e0041\U000e0042", "tag"),
        ("a\n\n\n\n\nb", "a\n\nb"),
        ("filler\u3164\u2800", "filler"),
        ("naïve 漢字 🙂", "naïve 漢字 🙂"),
        (None, ""),
        (7, ""),
    ],
)
def test_hidden_characters_are_removed(text: object, expected: str) -> None:
    assert clean(text) == expected


def test_long_texts_are_cut_with_a_mark() -> None:
    assert clean("x" * 50, max_chars=10) == "x" * 9 + "…"
    assert len(clean("\u200b" * 10_000_000 + "hidden", max_chars=10)) == 0


@pytest.mark.parametrize(
    "text",
    [
        " \t" * 500_000,
        "\n" * 1_000_000,
        "\r" * 1_000_000,
        "a" + "\u0301\u0316" * 500_000,
        "\u200b" * 1_000_000,
        " \n" * 500_000,
    ],
)
def test_no_text_takes_long_to_clean(text: str) -> None:
    began = time.process_time()
    assert len(clean(text)) <= 2000
    assert time.process_time() - began < 0.05
