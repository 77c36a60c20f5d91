"""The inverses that tools declare: what is read, what is refused, and which arguments they get."""

from __future__ import annotations

from typing import Any

import pytest

from gloveport.errors import OptionError
from gloveport.sources.inverses import inverse_arguments, inverses
from gloveport.types import Tool
from gloveport.undo import Undo

SCHEMA = {"type": "object", "properties": {"id": {}, "owner": {}, "why": {}}}
TOOLS = [
    Tool("shop.orders.create", "Create.", SCHEMA, writes=True),
    Tool("shop.orders.delete", "Delete.", SCHEMA, writes=True),
    Tool("shop.orders.read", "Read.", SCHEMA),
]


def inverse(text: str, of: str = "orders.create") -> Undo:
    return inverses("shop", TOOLS, {of: text})[f"shop.{of}"]


def test_an_inverse_names_a_tool_and_where_its_arguments_come_from() -> None:
    text = ' shop.orders.delete( id = result.items[0].id , owner=args.owner, why = "undo, (of) \\"it\\"" ) '
    found = inverse(text)
    assert found.tool == "shop.orders.delete"
    assert found.places == {"id": ("result", "items", 0, "id"), "owner": ("args", "owner")}
    assert found.constants == {"why": 'undo, (of) "it"'}
    args = inverse_arguments(found, {"owner": "ada"}, {"items": [{"id": 7}]})
    assert args == {"id": 7, "owner": "ada", "why": 'undo, (of) "it"'}


def test_no_arguments_and_whole_values_can_be_used() -> None:
    assert inverse_arguments(inverse("orders.delete()"), {}, None) == {}
    assert inverse_arguments(inverse("orders.delete(id=result, why=true, owner=3)"), {}, "x") == {
        "id": "x",
        "why": True,
        "owner": 3,
    }


@pytest.mark.parametrize(
    ("text", "problem", "hint"),
    [
        ("orders.delet(id=result.id)", "has no tool `orders.delet`", "orders.delete"),
        ("orders.delete(idd=result.id)", "has no argument `idd`", "id"),
        ("orders.delete(id=reslt.id)", "is no place and no constant", "begin with"),
        ("orders.delete(id=__import__('os'))", "is no place and no constant", "begin with"),
        ("orders.delete id", "must be a call", "for example"),
        ("orders.delete(id)", "is no argument", "for example"),
        ("orders.delete(" + "id=1," * 1000 + ")", "must be a call", "for example"),
        ("orders.read(id=result.id)", "shop.orders.read does not write", "only writes"),
    ],
)
def test_a_declaration_that_cannot_be_followed_is_refused(text: str, problem: str, hint: str) -> None:
    with pytest.raises(OptionError) as caught:
        inverse(text)
    assert problem in caught.value.message
    assert hint in (caught.value.hint or "")


def test_an_inverse_of_a_tool_that_does_not_exist_or_reads_is_refused() -> None:
    with pytest.raises(OptionError, match=r"has no tool `orders.crate`"):
        inverse("orders.delete()", of="orders.crate")
    with pytest.raises(OptionError, match="does not write"):
        inverse("orders.delete()", of="orders.read")


@pytest.mark.parametrize(
    "result", [None, {}, {"items": []}, {"items": {"0": 1}}, {"items": [3]}, {"items": [{"id": None}]}]
)
def test_a_place_that_a_call_does_not_have_is_named(result: Any) -> None:
    with pytest.raises(LookupError, match=r"result\.items\[0\]\.id"):
        inverse_arguments(inverse("orders.delete(id=result.items[0].id)"), {}, result)
