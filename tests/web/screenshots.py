"""Makes the pictures of the pages in `docs/images` anew, from real runs of the demo's tools: `make screenshots`."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from playwright.async_api import Page, expect

from tests.surfaces.command import REPOSITORY
from tests.web.browser import NARROW, Pages, Site, running_browser, serving

FOLDER = REPOSITORY / "docs" / "images"
SIZE = {"width": 1120, "height": 640}
REFUND = """// Two orders came late: give something back for each.
const orders = await tools.list_orders({ customer: "ada" });
const late = orders.filter((order) => order.city !== "Lisbon");
await Promise.all(late.map((order) => tools.refund({ order: order.id, amount: 12.5 })));
"""
FAILS = """// Ask for the orders of somebody who never ordered.
const customers = await tools.list_customers();
console.log("customers:", customers.length);
await tools.list_orders({ customer: "eve" });
"""


async def _shot(page: Page, name: str) -> None:
    await expect(page.get_by_text("Loading…")).to_have_count(0)
    await page.evaluate("document.fonts.ready")
    await page.screenshot(path=FOLDER / f"{name}.png")


async def _shots(site: Site, pages: Pages) -> None:
    run = (await site.run((REPOSITORY / "examples" / "demo.ts").read_text()))["run"]
    failed = (await site.run(FAILS))["run"]
    await site.run("[1, 2, 3].map((n) => n * n)")
    await site.waiting(REFUND, 2)
    page = await pages.signed_in(site, path=f"/runs/{run}?call=2", viewport=SIZE)
    await expect(page.get_by_role("region", name="Call 2")).to_be_visible()
    await expect(page.locator("ol.code .keyword, ol.code [class]").first).to_be_visible()
    await _shot(page, "run")
    await page.goto("/runs")
    await expect(page.locator("table.list tbody tr")).to_have_count(4)
    await _shot(page, "runs")
    dark = await pages.signed_in(site, path="/approvals", viewport=SIZE, color_scheme="dark")
    await expect(dark.get_by_label("Arguments", exact=True)).to_be_visible()
    await _shot(dark, "approvals")
    narrow = await pages.signed_in(site, path=f"/runs/{failed}", viewport=NARROW)
    await expect(narrow.get_by_label("Error")).to_be_visible()
    await _shot(narrow, "narrow")


async def _main() -> None:
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as profile:
        async with serving(Path(home)) as site, running_browser(Path(profile)) as browser:
            pages = Pages(browser)
            await _shots(site, pages)
            await pages.close()


if __name__ == "__main__":
    asyncio.run(_main())
