"""What `make conformance` and `make prism` are built of works without the packages that they download."""

from __future__ import annotations

import json

import pytest
from conformance.prism import _violations
from interop import server_suite
from mcp import Client

from gloveport.policy.egress import Reply


@pytest.mark.integration
async def test_the_server_of_the_suite_serves_clients_without_a_token() -> None:
    async with server_suite.serving() as url, Client(url) as client:
        assert "execute" in [tool.name for tool in (await client.list_tools()).tools]


@pytest.mark.parametrize(("wrong", "count"), [([], 0), (["oneOf"], 1), (["type", "oneOf"], 2)])
def test_every_error_that_prism_lists_for_a_request_is_a_violation(wrong: list[str], count: int) -> None:
    listed = [{"location": ["request", "body"], "severity": "Error", "code": code, "message": "m"} for code in wrong]
    reply = Reply(422, {"sl-violations": json.dumps(listed, separators=(",", ":"))}, b"", "http://127.0.0.1/")
    assert len(_violations(reply)) == count
