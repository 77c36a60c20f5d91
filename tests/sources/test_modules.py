"""A module or a file gives its public functions as tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from gloveport.errors import OptionError
from gloveport.sources.functions import functions
from gloveport.sources.functions.modules import load_module


def write(folder: Path, text: str, name: str = "shop_tools.py") -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def names(spec: str) -> list[str]:
    return [tool.address for tool in functions(load_module(spec)).tools()]


def test_public_functions_defined_in_the_file_are_its_tools(tmp_path: Path) -> None:
    text = "from os.path import join\nfrom json import dumps\nclass Cart: ...\ndef buy(n: int): ...\nasync def pay(): ...\ndef _own(): ...\n"
    assert names(write(tmp_path, text)) == ["local.buy", "local.pay"]


def test_all_says_what_is_public(tmp_path: Path) -> None:
    text = "from json import dumps\n__all__ = ['_own']\ndef buy(): ...\ndef _own(): ...\n"
    assert names(write(tmp_path, text)) == ["local._own"]


def test_a_file_imports_its_neighbours_and_dataclasses_work_in_it(tmp_path: Path) -> None:
    write(tmp_path, "PRICE = 3\n", "gloveport_neighbour.py")
    text = (
        "from __future__ import annotations\nfrom dataclasses import dataclass\nfrom gloveport_neighbour import PRICE\n"
        "@dataclass\nclass Item:\n    n: int = PRICE\ndef buy(item: Item): ...\n"
    )
    assert names(write(tmp_path, text)) == ["local.buy"]


def test_a_module_is_loaded_by_its_name() -> None:
    assert "local.dumps" in names("json") or "local.dump" in names("json")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("import nothing_of_this_name\n", ("ModuleNotFoundError", "line 1")),
        ("x = 1\n1 / 0\n", ("ZeroDivisionError", "line 2")),
        ("def broken(:\n", ("SyntaxError",)),
        ("import sys\nsys.exit(3)\n", ("SystemExit",)),
        ("x = 1\n", ("no functions",)),
        ("__all__ = ['gone']\n", ("gone", "__all__")),
    ],
)
def test_a_file_that_does_not_import_is_an_error_that_says_where(tmp_path: Path, text: str, told: tuple[str, ...]) -> None:
    spec = write(tmp_path, text, "odd.py")
    with pytest.raises(OptionError) as refusal:
        load_module(spec)
    assert "odd.py" in refusal.value.message
    for word in told:
        assert word in refusal.value.message


@pytest.mark.parametrize("spec", ["no/such/file.py", "no_such_module_here", "~nobody-here/file.py", "{" * 1600 + "file.py"])
def test_what_is_not_there_is_an_error(spec: str) -> None:
    with pytest.raises(OptionError, match=r"file\.py|no_such_module_here"):
        load_module(spec)
