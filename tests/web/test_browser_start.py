"""How a newcomer meets the pages: the link that `serve` prints, three runs, and one call to answer."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.surfaces.command import terminal
from tests.web.browser import DEMO, Pages, Site, serving

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.integration


async def test_the_link_that_serve_prints_leads_to_three_runs_and_one_call_to_answer(pages: Pages, tmp_path: Path) -> None:
    with terminal("serve", str(DEMO), "--examples", "--port", "0", columns=200, HOME=str(tmp_path)) as server:
        shown = await asyncio.to_thread(server.until, r"Press Ctrl-C to stop")
        link = re.findall(r"http://127.0.0.1:\d+/sign-in#[\w-]{43}", shown)[-1]
        assert shown.index(link) > shown.index("doctor")  # it is the last that is printed
        site = Site(tmp_path)
        site.port = int(link.split(":")[2].partition("/")[0])
        page = await pages.opened(site)
        await page.goto(link)
        rows = page.locator("table.list tbody tr")
        await expect(rows).to_have_count(3)
        await expect(rows.filter(has_text="completed")).to_have_count(2)
        await expect(rows.filter(has_text="needs you")).to_have_count(1)
        await expect(page).to_have_title("(1) Runs · Gloveport")
        await page.keyboard.press("g")
        await page.keyboard.press("a")
        await expect(page.get_by_label("Arguments")).to_contain_text('"order": "A-1001"')
        await page.wait_for_timeout(450)  # a key that comes sooner was meant for what was shown before
        await page.keyboard.press("y")
        await expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
        await page.goto("/runs?status=completed")
        await expect(rows).to_have_count(3)
        await page.close()
        server.press(b"\x03")
        await asyncio.to_thread(server.rest)


async def test_pages_say_that_the_server_does_not_answer(pages: Pages, tmp_path: Path) -> None:
    pages.allow("ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|status of 401|this page could not be loaded")
    async with serving(tmp_path, str(DEMO)) as site:
        shown = {path: await pages.signed_in(site, path=path) for path in ("/approvals", "/runs", "/audit", "/sources")}
        for page in shown.values():
            await expect(page.locator("h1")).to_be_visible()
            await expect(page.locator(".loading")).to_have_count(0)
        await site.stop()
        for path, page in shown.items():
            await expect(page.get_by_text("the server does not answer").first, path).to_be_visible()
            await expect(page.get_by_text("page-failed"), path).to_have_count(0)
        page = shown["/approvals"]
        await page.get_by_role("link", name="Playground").click()
        await expect(page.get_by_text("this page could not be loaded")).to_be_visible()
        await site.start()
        await expect(page.get_by_role("heading", name="Sign in to Gloveport")).to_be_visible()
        for page in shown.values():
            await page.close()  # before its server ends


async def test_examples_do_not_pile_up_while_one_waits(tmp_path: Path) -> None:
    async with serving(tmp_path, str(DEMO), "--examples") as site:
        first = await _runs(site, 3)
        await site.stop()
        await site.start()
        again = await site.run("'nothing else ran'")
        assert {one["run"] for one in await _runs(site, 4)} == {*(one["run"] for one in first), again["run"]}


async def _runs(site: Site, count: int) -> list[dict[str, str]]:
    """Return the runs once there are so many, and all that will end have ended."""
    async with asyncio.timeout(60), site.client() as client:
        while True:
            found = (await client.get("/v1/runs")).json()["runs"]
            if len(found) >= count and all(one["status"] != "running" for one in found):
                return found
            await asyncio.sleep(0.05)
