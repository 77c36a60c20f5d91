"""Secrets come from the variables that were named for them, or from ones that can be meant for one source alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from gloveport import Gloveport, SourceConfig
from gloveport.errors import ToolError
from gloveport.policy.credentials.environment import EnvironmentCredentials
from tests.sources.mcp.support import LIBRARY

EU = {"GLOVEPORT_SHOP_EU_TOKEN": "canary-eu", "OTHER": "canary-other"}


async def found(credentials: EnvironmentCredentials, source: str, slot: str) -> str | None:
    secret = await credentials.find(source, slot)
    return secret.reveal() if secret else None


async def test_a_variable_belongs_to_the_source_that_it_names_best() -> None:
    credentials = EnvironmentCredentials({}, EU, ["shop", "shop_eu"])
    assert await found(credentials, "shop_eu", "token") == "canary-eu"
    assert await found(credentials, "shop", "token") is None
    with pytest.raises(ToolError) as caught:
        await credentials.find("shop", "eu_token")
    assert caught.value.code == "auth-required"
    assert caught.value.message == "GLOVEPORT_SHOP_EU_TOKEN is set and may be meant for the source shop_eu or for shop"
    assert 'under [sources.shop]: credentials = { eu_token = "env:GLOVEPORT_SHOP_EU_TOKEN" }' in str(caught.value.setting)
    assert "canary" not in repr(vars(caught.value))


def test_what_must_be_set_is_said_with_the_clash_that_it_would_lead_to() -> None:
    credentials = EnvironmentCredentials({("shop", "card"): "env:GLOVEPORT_SHOP_EU_CARD"}, {}, ["shop", "shop_eu"])
    assert credentials.wanted("shop_eu", "token") == "set GLOVEPORT_SHOP_EU_TOKEN"
    assert credentials.wanted("shop", "card") == "set GLOVEPORT_SHOP_EU_CARD"
    named = 'set a variable that you name with credentials = { eu_token = "env:NAME" } under [sources.shop]'
    told = f"{named} (GLOVEPORT_SHOP_EU_TOKEN may be meant for the source shop_eu)"
    assert credentials.wanted("shop", "eu_token") == told


async def test_two_names_that_differ_in_case_alone_are_told_apart_by_settings_only() -> None:
    credentials = EnvironmentCredentials({}, EU, ["shop_eu", "Shop_EU"])
    for source in ("shop_eu", "Shop_EU"):
        with pytest.raises(ToolError, match="may be meant for"):
            await credentials.find(source, "token")
    said = EnvironmentCredentials({("shop_eu", "token"): "env:GLOVEPORT_SHOP_EU_TOKEN"}, EU, ["shop_eu", "Shop_EU"])
    assert await found(said, "shop_eu", "token") == "canary-eu"
    other = EnvironmentCredentials({("shop", "eu_token"): "env:OTHER"}, EU, ["shop", "shop_eu"])
    assert await found(other, "shop", "eu_token") == "canary-other"


@pytest.mark.integration
async def test_a_port_tells_both_sources_and_opens_neither(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("GLOVEPORT_SHOP_TOKEN", "canary-shop")
    urls = [SourceConfig(name, "mcp", "http://127.0.0.1:1/mcp", allow_private=True) for name in ("shop", "Shop")]
    port = Gloveport(sources=[*urls, SourceConfig("files", "mcp", LIBRARY)])
    try:
        await port.connect()
        assert [problem.source for problem in port.problems if problem.broken] == ["shop", "Shop"]
        assert all("may be meant for the source" in problem.message for problem in port.problems if problem.broken)
        assert port.catalog.entry("files.add") is not None
    finally:
        await port.close()
