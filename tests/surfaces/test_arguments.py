"""The arguments of `gloveport tools call`: JSON, files, standard input and key=value."""

import io
import sys
from pathlib import Path
from typing import Any

import pytest

from gloveport.errors import OptionError
from gloveport.surfaces.cli.arguments import read_arguments


@pytest.mark.parametrize(
    ("texts", "args"),
    [
        ((), {}),
        (('{"a": 1}',), {"a": 1}),
        (("a=1", "b=text", "c=true", "d=[1, 2]", 'e="7"', "f="), {"a": 1, "b": "text", "c": True, "d": [1, 2], "e": "7", "f": ""}),
        (("q=x=y",), {"q": "x=y"}),
        (('{"a": 1, "b": 2}', "b=3"), {"a": 1, "b": 3}),
        (('{"a=b": 1}',), {"a=b": 1}),
    ],
)  # fmt: skip
def test_arguments_are_merged_in_order(texts: tuple[str, ...], args: dict[str, Any]) -> None:
    assert read_arguments(texts) == args


def test_a_file_and_standard_input_hold_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "args.json").write_text('{"a": 1}')
    assert read_arguments([f"@{tmp_path}/args.json", "b=2"]) == {"a": 1, "b": 2}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"c": 3}')))
    assert read_arguments(["-"]) == {"c": 3}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (("[1]",), "the arguments must be a JSON object"),
        (("{",), "the text of the arguments is not JSON"),
        (("@nowhere.json",), "there is no file nowhere.json"),
        (("customer", "ada"), "the text of the arguments is not JSON"),
    ],
)
def test_what_is_no_argument_is_refused_with_an_example(texts: tuple[str, ...], message: str) -> None:
    with pytest.raises(OptionError, match=message.replace("[", r"\[")) as caught:
        read_arguments(texts)
    assert caught.value.hint


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"{}")))
    with pytest.raises(OptionError, match="only once"):
        read_arguments(["-", "-"])
