"""Agents and tokens with a real browser: making one, using it, what its programs see, and removing it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.web.accessibility import overflow, serious_findings
from tests.web.browser import NARROW, Pages, Site, serving

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.integration

SETTINGS = """
[agents.reader]
tools = ["demo_tools.list_*"]
limits = { max_calls = 7 }

[[rules]]
ask = "demo_tools.list_orders"
agent = "rea*"

[[rules]]
deny = "demo_tools.refund"
agent = "default"
"""


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The demo's tools, and an agent that sees some of them."""
    async with serving(tmp_path_factory.mktemp("agents"), settings=SETTINGS) as started:
        yield started


def _row(page: Page, name: str) -> Locator:
    return page.get_by_role("listitem").filter(has=page.get_by_role("link")).filter(has_text=name)


async def _make(page: Page, name: str, role: str = "agent") -> str:
    """Make a token on the page, and return it."""
    await page.get_by_role("button", name="Make a token").click()
    form = page.get_by_role("dialog", name="Make a token")
    await form.get_by_label("Name").fill(name)
    await form.get_by_role("radio", name=re.compile(f"^{role} ")).check()
    await form.get_by_role("button", name="Make the token").click()
    shown = page.get_by_role("dialog", name=f"The token of {name}")
    return await shown.locator("code.token").inner_text()


async def test_a_token_is_shown_once_and_works_until_it_is_removed(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/agents")
    await expect(_row(page, "reader")).to_contain_text("no token")
    token = await _make(page, "reader")
    assert token.startswith("gp_")
    shown = page.get_by_role("dialog", name="The token of reader")
    entry = json.loads(await shown.locator(".use-token pre").inner_text())["mcpServers"]["gloveport"]
    assert entry == {
        "type": "http",
        "url": f"{site.url}/mcp",
        "headers": {"Authorization": "Bearer ${GLOVEPORT_TOKEN:-}"},
    }
    await expect(shown.get_by_text(f"export GLOVEPORT_TOKEN={token}")).to_be_visible()
    await shown.get_by_role("button", name="Close").click()
    await expect(page.get_by_text(token)).to_have_count(0)
    await expect(_row(page, "reader")).to_contain_text("token made")
    async with site.client(token) as client:
        assert (await client.get("/v1/me")).json()["name"] == "reader"
        await _row(page, "reader").get_by_role("link").click()
        await page.get_by_role("button", name="Remove the token…").click()
        confirm = page.get_by_role("dialog", name="Remove this token?")
        await confirm.get_by_role("button", name="Remove the token").click()
        await expect(_row(page, "reader")).to_contain_text("no token")
        async with asyncio.timeout(30):
            while (await client.get("/v1/me")).status_code != 401:  # noqa: ASYNC110 - over HTTP
                await asyncio.sleep(0.05)


async def test_a_new_token_is_copied_by_its_button(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/agents", permissions=["clipboard-read", "clipboard-write"])
    token = await _make(page, "scraper", "monitor")
    await page.get_by_role("button", name="Copy the token").click()
    assert await page.evaluate("navigator.clipboard.readText()") == token
    await expect(page.get_by_role("dialog")).to_contain_text("scrape_configs")
    async with site.client(token) as client:
        assert (await client.get("/metrics")).status_code == 200
        assert (await client.get("/v1/runs")).status_code == 403


async def test_what_an_agent_sees_is_shown(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/agents?name=reader")
    details = page.get_by_role("region", name="The agent reader")
    await expect(details).to_contain_text("Tools that its programs see 2")
    await expect(details).to_contain_text("demo_tools.list_*")
    await expect(details).to_contain_text("max_calls 7")
    rules = details.locator(".agent-rules li")
    await expect(rules).to_have_count(1)
    await expect(rules).to_contain_text("demo_tools.list_orders")
    await details.get_by_role("link", name="Explain a call of it").click()
    await expect(page.get_by_label("Agent")).to_have_value("reader")
    await page.goto("/agents?name=default")
    await expect(page.get_by_role("region", name="The agent default").locator(".agent-rules li")).to_contain_text("refund")


async def test_a_token_whose_agent_is_not_in_the_settings_says_so(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/agents")
    await _make(page, "stranger")
    shown = page.get_by_role("dialog", name="The token of stranger")
    await expect(shown).to_contain_text("[agents.stranger]")
    await shown.get_by_role("button", name="Close").click()
    await expect(_row(page, "stranger")).to_contain_text("refused: not in the settings")
    pages.allow("status of 40")
    await page.get_by_role("button", name="Make a token").click()
    form = page.get_by_role("dialog", name="Make a token")
    await form.get_by_label("Name").fill("stranger")
    await form.get_by_role("button", name="Make the token").click()
    await expect(form.get_by_role("alert")).to_contain_text("has a token already")


async def test_only_an_admin_sees_tokens(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/agents")
    await expect(page.get_by_text("Tokens are for admins")).to_be_visible()
    await expect(page.get_by_role("link", name="Agents")).to_be_hidden()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_can_be_read_and_fits_a_narrow_window(pages: Pages, site: Site, scheme: str) -> None:
    page = await pages.signed_in(site, path="/agents?name=reader", color_scheme=scheme, viewport=NARROW)
    await expect(page.locator(".agent-rules li")).to_have_count(1)
    assert await serious_findings(page) == []
    assert await overflow(page) == 0
    await _make(page, f"narrow-{scheme}")
    assert await serious_findings(page) == []
    assert await overflow(page) == 0
