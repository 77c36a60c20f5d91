"""The line of the program that a person sees beside a call: the only one that can be meant, or none."""

from __future__ import annotations

import pytest

from gloveport.host.failures import MAX_CALL_SITES, call_line

TWO = "const a = await tools.mail.inbox.read();\nconst b = await tools.shop?.orders\n  .read ({id: 1});"


@pytest.mark.parametrize(
    ("source", "tool", "line"),
    [
        (TWO, "mail.inbox.read", 1),
        (TWO, "shop.orders.read", 3),
        (TWO, "shop.parcels.read", None),
        (TWO, "egress.read", None),
        (TWO + "\nawait fetch('http://x.example')", "egress.read", 4),
        ("import urllib.request\nurllib.request.urlopen(url, data)", "egress.write", 2),
        ("await fetch(a)\nawait fetch(b)", "egress.read", None),
        ("const {orders} = tools.shop;\nawait orders.read()", "shop.orders.read", 2),
        ("await tools['shop']['orders'].read()", "shop.orders.read", 1),
        ("await tools.read()", "local.read", 1),
        ("await tools.a.read()\nawait tools.a.read()", "a.read", None),
        ("await tools.a.reader()", "a.read", None),
        ("x.read();" * MAX_CALL_SITES + "\ntools.a.read()", "a.read", None),
    ],
)
def test_the_line_of_a_call_is_the_only_one_that_can_be_meant(source: str, tool: str, line: int | None) -> None:
    assert call_line(source, tool) == line
