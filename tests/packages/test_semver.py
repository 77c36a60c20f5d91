"""Versions and ranges of npm: what they match, as npm's documentation of ranges states it."""

from __future__ import annotations

import pytest

from gloveport.packages.semver import matches, newest, parse_range, parse_version


@pytest.mark.parametrize(
    ("range", "inside", "outside"),
    [
        ("1.2.3", "1.2.3", "1.2.4"),
        ("=1.2.3", "1.2.3", "1.2.2"),
        ("^1.2.3", "1.2.3 1.9.0", "1.2.2 2.0.0 2.0.0-beta.1"),
        ("^0.2.3", "0.2.3 0.2.9", "0.3.0 0.2.2"),
        ("^0.0.3", "0.0.3", "0.0.4"),
        ("^0.0", "0.0.9", "0.1.0"),
        ("^0", "0.9.9", "1.0.0"),
        ("^1.x", "1.0.0 1.9.9", "2.0.0"),
        ("~1.2.3", "1.2.3 1.2.9", "1.3.0"),
        ("~1.2", "1.2.0 1.2.9", "1.3.0"),
        ("~1", "1.0.0 1.9.9", "2.0.0"),
        ("4", "4.0.0 4.9.9", "3.9.9 5.0.0"),
        ("1.2.x", "1.2.0", "1.3.0"),
        ("*", "0.0.1 99.0.0", "1.0.0-beta"),
        ("", "1.0.0", "1.0.0-beta"),
        (">=1 <3", "1.0.0 2.9.9", "0.9.9 3.0.0"),
        (">= 1.2.0", "1.2.0 9.0.0", "1.1.9"),
        (">1.2", "1.3.0", "1.2.9"),
        ("<=1.2", "1.2.9", "1.3.0"),
        ("1.2 - 1.4", "1.2.0 1.4.9", "1.5.0"),
        ("1.2.3 - 2.3.4", "2.3.4", "2.3.5"),
        ("^1.0.0 || ~2.1.0", "1.5.0 2.1.3", "2.2.0"),
        (">=1.0.0-beta.2", "1.0.0-beta.10 1.0.0 2.0.0", "1.0.0-beta.1 1.0.0-alpha 2.0.0-rc.1"),
        ("v1.2.3", "1.2.3+build", "1.2.4"),
    ],
)
def test_a_range_has_these_versions_and_not_those(range: str, inside: str, outside: str) -> None:
    parsed = parse_range(range)
    assert parsed is not None
    for text, expected in [(text, True) for text in inside.split()] + [(text, False) for text in outside.split()]:
        version = parse_version(text)
        assert version is not None
        assert matches(version, parsed) is expected, text


@pytest.mark.parametrize("text", ["latest", "git+https://a.example/x", "file:../x", "1.2.3.4", "^^1", "01.2.3", "1" * 500])
def test_a_text_that_is_no_range_is_none(text: str) -> None:
    assert parse_range(text) is None


def test_the_newest_version_is_found_by_number_not_by_text() -> None:
    range = parse_range("^1")
    assert range is not None
    assert newest(["1.9.0", "1.10.0", "2.0.0", "1.11.0-beta", "junk"], range) == "1.10.0"
    assert newest(["2.0.0"], range) is None
