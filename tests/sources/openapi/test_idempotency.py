"""Idempotency keys: sent where an operation takes one and the program gives none (B11)."""

from __future__ import annotations

import pytest

from gloveport.sources.openapi.call.idempotency import key_parameter, with_key, with_optional_key
from gloveport.sources.openapi.operation import Operation, Parameter

from .support import Kit, tool_of


def operation(name: str = "Idempotency-Key", place: str = "header", **more: object) -> Operation:
    key = Parameter(name, "key", place, required=True)  # pyright: ignore
    return Operation("POST", "/pay", parameters=(key, Parameter("n", "n", "query")), **more)  # pyright: ignore


@pytest.mark.parametrize(
    ("name", "place", "takes"),
    [
        ("Idempotency-Key", "header", True),
        ("idempotency-key", "header", True),
        ("X-Idempotency-Key", "header", True),
        ("Idempotency_Key", "header", True),
        ("IdempotencyKey", "header", True),
        ("Idempotency-Key", "query", False),
        ("X-Api-Key", "header", False),
        ("Idempotency-Key-Scope", "header", False),
    ],
)
def test_the_usual_names_of_the_header_are_known(name: str, place: str, takes: bool) -> None:
    assert (key_parameter(operation(name, place)) is not None) == takes


def test_a_program_may_leave_the_key_out_and_its_own_key_is_kept() -> None:
    schema = {"properties": {"key": {}, "n": {}}, "required": ["key", "n"]}
    assert with_optional_key(operation(), schema)["required"] == ["n"]
    assert with_key(operation(), {"n": 1}, "ours") == {"n": 1, "key": "ours"}
    assert with_key(operation(), {"n": 1, "key": "own"}, "ours") == {"n": 1, "key": "own"}
    assert with_key(operation("X-Other"), {"n": 1}, "ours") == {"n": 1}


def test_arguments_in_groups_get_the_key_in_theirs() -> None:
    grouped = operation(grouped=True)
    header = {"properties": {"key": {}}, "required": ["key"]}
    schema = {"properties": {"header": header, "query": {}}, "required": ["header", "query"]}
    found = with_optional_key(grouped, schema)
    assert (found["required"], found["properties"]["header"]["required"]) == (["query"], [])
    assert with_key(grouped, {"query": {"n": 1}}, "ours") == {"query": {"n": 1}, "header": {"key": "ours"}}
    assert with_key(grouped, {"header": {"key": "own"}}, "ours") == {"header": {"key": "own"}}


@pytest.mark.integration
async def test_the_key_is_in_the_request_unless_the_settings_set_the_header(kit: Kit) -> None:
    source = kit.source({"it": operation()})
    assert source.takes_key(tool_of(source))
    await source.call_with_key(tool_of(source), {"n": 1}, "ours")
    assert kit.server.last.header("idempotency-key") == "ours"
    fixed = kit.source({"it": operation()}, headers={"idempotency-key": "fixed"})
    assert not fixed.takes_key(tool_of(fixed))
