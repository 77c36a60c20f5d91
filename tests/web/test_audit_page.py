"""The audit with a real browser: the record with its verification, its filters and pages, and the metrics of real runs."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from tests.web.accessibility import overflow, serious_findings
from tests.web.browser import NARROW, Pages, Site, serving

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.integration

SETTINGS = """
[[rules]]
deny = "demo_tools.refund"
reason = "not today"
"""
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The demo's tools, and what some runs of them have left."""
    async with serving(tmp_path_factory.mktemp("audit"), settings=SETTINGS) as started:
        for n in range(20):
            await started.run(f"await tools.convert({{amount: {n}, source: 'NOK'}})")
        await started.run("await tools.refund({order: 'A-1001', amount: 1})")
        await started.run("throw new Error('no')")
        await started.run("await tools.list_orders({customer: input})", input=HOSTILE, id="hostile")
        yield started


def _events(page: Page) -> Locator:
    return (
        page.get_by_role("list", name="Events, the latest first")
        .get_by_role("listitem")
        .filter(has=page.locator(".event-row"))
    )


def _tile(page: Page, title: str) -> Locator:
    return page.locator(".tile").filter(has=page.get_by_text(title, exact=True))


async def test_the_record_is_verified_and_its_events_are_listed(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/audit")
    await expect(page.get_by_role("status", name="Verification")).to_contain_text("The record is intact")
    await expect(_events(page).first).to_contain_text("run-ended")
    await expect(_events(page)).to_have_count(50)
    first = await _events(page).first.inner_text()
    await page.get_by_role("button", name="Older").click()
    await expect(page).to_have_url(re.compile("cursor="))
    await expect(page.get_by_text(first.splitlines()[-1]).first).to_be_hidden()
    await expect(_events(page)).to_have_count(50)
    await page.reload()
    await expect(_events(page)).to_have_count(50)
    await page.get_by_role("button", name="Latest").click()
    await expect(_events(page).first).to_contain_text("run-ended")


async def test_a_filtered_event_opens_to_what_is_recorded_of_it(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/audit")
    await page.get_by_role("combobox", name="Kind").select_option("Denied calls")
    await expect(_events(page)).to_have_count(1)
    await expect(_events(page)).to_contain_text("demo_tools.refund")
    await _events(page).get_by_role("button").first.click()
    await expect(page).to_have_url(re.compile(r"kind=call-denied&event="))
    await expect(_events(page)).to_contain_text('"order": "A-1001"')
    await expect(_events(page)).to_contain_text("Hash")
    await page.reload()  # the filter and the event stand in the address
    await _events(page).get_by_role("link").click()
    await expect(page).to_have_url(re.compile(r"/runs/[0-9a-f]{32}$"))


async def test_events_are_found_by_tool_and_run(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/audit")
    await page.get_by_role("searchbox", name="Tool").fill("*.convert")
    await expect(_events(page)).to_have_count(40)
    await page.get_by_role("textbox", name="Run").fill("hostile")
    await expect(page.get_by_text("No event fits")).to_be_visible()
    await page.get_by_role("link", name="Show all events").click()
    await expect(_events(page)).to_have_count(50)


async def test_hostile_arguments_stay_text(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/audit?run=hostile&kind=call-started")
    await _events(page).get_by_role("button").first.click()
    await expect(_events(page)).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(_events(page).locator(".mark").first).to_have_text("U+202E")
    assert await page.locator("img").count() == 0


async def test_the_metrics_count_real_runs(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/audit")
    await expect(_tile(page, "Runs")).to_contain_text("20 completed")
    await expect(_tile(page, "Runs")).to_contain_text("3 failed")
    await expect(_tile(page, "Calls")).to_contain_text("20 ok")
    await expect(_tile(page, "Needs you")).to_contain_text("no call waits")
    await expect(_tile(page, "Runs that failed")).to_contain_text("13 %")
    await expect(_tile(page, "Runs that failed")).to_contain_text("program-failed")
    await expect(_tile(page, "Time of a run")).to_contain_text(re.compile(r"≈ [0-9.]+ (ms|s)"))


async def test_an_agent_sees_no_record(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "agent", "/audit")
    await expect(page.get_by_text("The record is for people")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_can_be_read_and_fits_a_narrow_window(pages: Pages, site: Site, scheme: str) -> None:
    page = await pages.signed_in(site, path="/audit?run=hostile", color_scheme=scheme, viewport=NARROW)
    await _events(page).get_by_role("button").first.click()
    await expect(page.get_by_role("status", name="Verification")).to_contain_text("intact")
    assert await serious_findings(page) == []
    assert await overflow(page) == 0


async def test_a_record_that_was_edited_is_reported(pages: Pages, tmp_path_factory: pytest.TempPathFactory) -> None:
    async with serving(tmp_path_factory.mktemp("edited")) as site:
        await site.run("1")
        async with site.client(site.token("reader", "approver")) as client:
            assert (await client.get("/v1/audit/verification")).json()["intact"]
            kinds = [event["kind"] for event in (await client.get("/v1/audit")).json()["events"]]
        assert "run-ended" in kinds  # it is in the file
        with closing(sqlite3.connect(site.home / ".local" / "share" / "gloveport" / "store.sqlite")) as store, store:
            store.execute("UPDATE events SET body = replace(body, 'completed', 'failed') WHERE kind = 'run-ended'")
        page = await pages.signed_in(site, path="/audit")
        report = page.get_by_role("status", name="Verification")
        await expect(report).to_contain_text("The record was changed")
        await page.close()
