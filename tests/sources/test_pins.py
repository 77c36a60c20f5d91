"""Accepted definitions: what is written is read back, whichever version wrote it, and nothing damaged is accepted anew."""

import json
from pathlib import Path

import pytest

from gloveport.errors import OptionError
from gloveport.sources.pins import PinnedDefinition, Pins, definition_text

PRINTS = {"shop.list": "1", "shop.send": "2"}
TEXTS = {
    "shop.list": definition_text("Lists\nthings.", b'{"type":"object"}', b"null"),
    "shop.send": definition_text("Sends.", b"{}", b'{"type":"string"}'),
}


def test_a_pinned_definition_is_read_back(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    pins.pin("shop", PinnedDefinition(PRINTS, "digest", TEXTS))
    found = pins.find("shop")
    assert found is not None
    assert found == PinnedDefinition(PRINTS, "digest", TEXTS)
    assert found.definition("shop.list") == ("Lists\nthings.", {"type": "object"}, None)
    assert found.definition("shop.send") == ("Sends.", {}, {"type": "string"})
    assert found.definition("shop.other") is None
    assert pins.find("another source") is None


def test_each_definition_is_a_line_of_its_own_so_that_none_is_decoded_in_one_step_with_others(tmp_path: Path) -> None:
    Pins(tmp_path).pin("shop", PinnedDefinition(PRINTS, definitions=TEXTS))
    head, *lines = (json.loads(line) for line in next(tmp_path.iterdir()).read_text().splitlines())
    assert head["tools"] == PRINTS
    assert [address for address, _ in lines] == list(TEXTS)


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    pins.pin("shop", PinnedDefinition({}))
    document = {"tools": PRINTS, "shelf": "digest", "definitions": {name: json.loads(TEXTS[name]) for name in TEXTS}}
    next(tmp_path.iterdir()).write_text(json.dumps(document, separators=(",", ":")))
    assert pins.find("shop") == PinnedDefinition(PRINTS, "digest", TEXTS)


@pytest.mark.parametrize("line", [0, 1, 2])
def test_a_damaged_file_is_an_error_and_is_not_accepted_anew(tmp_path: Path, line: int) -> None:
    pins = Pins(tmp_path)
    pins.pin("shop", PinnedDefinition(PRINTS, definitions=TEXTS))
    path = next(tmp_path.iterdir())
    lines = path.read_bytes().split(b"\n")
    lines[line] = lines[line][:-3]
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(OptionError, match="an accepted definition can't be read"):
        pins.changed_tools("shop", PinnedDefinition(PRINTS, definitions=TEXTS))


def test_new_tools_are_pinned_with_their_definitions_and_those_that_are_gone_stay(tmp_path: Path) -> None:
    pins = Pins(tmp_path)
    first, second = ({name: of[name]} for of, name in ((PRINTS, "shop.list"), (PRINTS, "shop.send")))
    assert not pins.changed_tools("shop", PinnedDefinition(first, definitions={"shop.list": TEXTS["shop.list"]}))
    assert not pins.changed_tools("shop", PinnedDefinition(second, definitions={"shop.send": TEXTS["shop.send"]}))
    assert pins.find("shop") == PinnedDefinition(PRINTS, definitions=TEXTS)
    assert pins.changed_tools("shop", PinnedDefinition({"shop.list": "3"})) == {"shop.list"}
