"""The playground with a real browser: the editor with checks and completion, and real runs beside it."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

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
"""


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The demo's tools, and an agent that sees some of them."""
    async with serving(tmp_path_factory.mktemp("playground"), settings=SETTINGS) as started:
        yield started


async def _playground(pages: Pages, site: Site, query: str = "", **more: Any) -> Page:
    page = await pages.signed_in(site, path=f"/playground{query}", **more)
    await expect(_editor(page)).to_be_visible()
    return page


def _editor(page: Page) -> Locator:
    return page.get_by_role("textbox", name="Program")


async def _write(page: Page, code: str) -> None:
    await _editor(page).click()
    await page.keyboard.press("Control+a")
    await page.keyboard.insert_text(code)


async def test_an_example_runs_and_its_run_has_an_address(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site)
    await expect(page).to_have_url(re.compile(r"\?example=1_orders$"))
    await expect(_editor(page)).to_contain_text("tools.list_orders")
    await expect(page.get_by_text("No problems")).to_be_visible()
    await _editor(page).click()
    await page.keyboard.press("Control+Enter")
    await expect(page).to_have_url(re.compile(r"\?run=[0-9a-f]{32}$"))
    await expect(page.get_by_role("region", name="Result")).to_contain_text("A-1001")
    await expect(page.get_by_role("group", name=re.compile("^Calls and when")).locator("[data-call]")).to_have_count(10)
    await expect(page.get_by_role("region", name="Logs")).to_contain_text("3 orders")
    await page.reload()
    await expect(_editor(page)).to_contain_text("tools.list_orders")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("A-1001")
    await page.locator("[data-call]").first.click()
    await expect(page.locator(".cm-line.chosen")).to_contain_text("tools.list_orders")
    await page.get_by_role("link", name="Open the run").click()
    await page.get_by_role("button", name="Open in playground").click()
    await expect(_editor(page)).to_contain_text("tools.list_orders")


async def test_the_checker_marks_what_it_finds_at_its_place(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?new=typescript")
    await _write(page, "const customer = 'ada';\nawait tools.list_ordrs({ customer });")
    problems = page.get_by_role("list", name="Problems")
    await expect(problems).to_contain_text("2:13")
    await expect(problems).to_contain_text("list_orders")
    await expect(page.locator(".cm-lintRange-error")).to_have_text("list_ordrs")
    await problems.get_by_role("button").click()
    await expect(_editor(page)).to_be_focused()
    await page.keyboard.press("Control+Shift+ArrowRight")
    await page.keyboard.insert_text("list_orders")
    await expect(page.get_by_text("No problems")).to_be_visible()
    await expect(problems).to_be_hidden()
    await _write(page, "const n: number = 'x';\nn")  # a type that no tool depends on does not stop a run
    await expect(page.get_by_text("1 warning")).to_be_visible()
    await expect(problems).to_contain_text("1:7")


async def test_completion_offers_tools_and_their_arguments(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?new=typescript")
    await _write(page, "")
    await page.keyboard.type("await tools.list_o", delay=20)
    options = page.get_by_role("listbox")
    await expect(options.get_by_role("option")).to_have_count(1)
    await expect(options).to_contain_text("Promise<")
    await expect(page.locator(".cm-completionInfo")).to_contain_text("The open orders of a customer.")
    await options.get_by_role("option").click()
    await page.keyboard.type("({ cust", delay=20)
    await expect(options.get_by_role("option")).to_contain_text("customer")
    await options.get_by_role("option").click()
    await expect(_editor(page)).to_have_text(re.compile(r"^await tools\.list_orders\(\{ customer: \s*\}\)$"))


async def test_a_python_program_gets_its_input_also_in_another_browser(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?new=typescript")
    await page.get_by_role("group", name="Language").get_by_role("button", name="Python").click()
    await expect(page).to_have_url(re.compile(r"\?new=python$"))
    await _write(page, "orders = await tools.list_orders(customer=input['who'])\nlen(orders)")
    await page.get_by_text("Input", exact=True).click()
    field = page.get_by_label("The value of `input`, as JSON")
    await field.fill('{"who": ')
    await expect(page.get_by_text("no valid JSON")).to_be_visible()
    await field.fill('{"who": "bo"}')
    await page.get_by_role("button", name="Run", exact=False).last.click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("1")
    other = await _playground(pages, site, page.url.partition("/playground")[2])
    await expect(_editor(other)).to_contain_text("input['who']")
    await expect(other.get_by_label("The value of `input`, as JSON")).to_have_value(json.dumps({"who": "bo"}, indent=2))
    await expect(other.get_by_role("group", name="Language").get_by_role("button", name="Python")).to_have_attribute(
        "aria-pressed", "true"
    )


async def test_a_plan_lists_the_writes_and_makes_none(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?example=2_refund")
    await _editor(page).click()
    await page.keyboard.press("Control+Shift+Enter")
    plan = page.get_by_role("region", name="Plan", exact=True)
    await expect(plan).to_contain_text("demo_tools.refund")
    await expect(plan).to_contain_text("11.03")
    await plan.get_by_role("button", name="line 6").click()
    await expect(_editor(page)).to_be_focused()
    run = page.url.partition("run=")[2]
    async with site.client(site.token("planner", "admin")) as client:
        calls = (await client.get(f"/v1/runs/{run}")).json()["outcome"]["calls"]
    assert [(call["tool"], call["status"]) for call in calls if call["tool"].endswith("refund")] == [
        ("demo_tools.refund", "planned")
    ]


async def test_a_run_that_waits_shows_what_it_asks_and_can_be_cancelled(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?example=2_refund")
    await page.get_by_role("button", name="Run", exact=False).last.click()
    waiting = page.get_by_role("region", name="Waiting")
    await expect(waiting).to_contain_text("demo_tools.refund")
    await expect(waiting).to_contain_text("11.03")
    await expect(page).to_have_title(re.compile(r"^\(1\) Playground"))
    link = waiting.get_by_role("link", name="Look and answer")
    assert re.fullmatch(r"/approvals/\w+", await link.get_attribute("href") or "")
    await page.get_by_role("button", name="Cancel").click()
    await expect(page.get_by_role("region", name="Run", exact=True)).to_contain_text("cancelled")
    await expect(waiting).to_be_hidden()


async def test_an_approved_run_goes_on_beside_its_editor(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?example=2_refund")
    await page.get_by_role("button", name="Run", exact=False).last.click()
    await page.get_by_role("link", name="Look and answer").click()
    await page.get_by_role("button", name=re.compile("^Approve")).click()
    await page.get_by_text("Nothing needs you").wait_for()
    await page.go_back()
    await page.wait_for_url(re.compile("/(approvals|playground)"))
    while "/playground" not in page.url:
        await page.go_back()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("refunded 11.03 EUR of A-1001")


async def test_what_was_written_survives_a_reload_until_it_is_undone(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?example=1_orders")
    await _write(page, "'mine'")
    await page.reload()
    await expect(_editor(page)).to_have_text("'mine'")
    await page.get_by_role("button", name="Undo all").click()
    await expect(_editor(page)).to_contain_text("tools.list_orders")
    await expect(page.get_by_role("button", name="Undo all")).to_be_hidden()


async def test_a_failed_program_marks_its_line(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?new=typescript")
    await _write(page, "const orders = await tools.list_orders({ customer: 'ada' });\norders[7].city;")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("alert")).to_contain_text("line 2")
    await expect(page.locator(".cm-line.failed")).to_contain_text("orders[7].city")


async def test_hostile_text_stays_text(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?new=typescript")
    await _write(page, "const b = 'a\u202eb\u200b';\n'<img src=x onerror=\"document.title=1\">' + b + '\\u001b[31m'")
    await expect(_editor(page).locator(".mark")).to_have_text(["U+202E", "U+200B"])
    await page.keyboard.press("Control+Enter")
    result = page.get_by_role("region", name="Result")
    await expect(result).to_contain_text('<img src=x onerror="document.title=1">')
    await expect(result.locator(".mark")).to_have_text(["U+202E", "U+200B", "U+001B"])
    assert await result.locator("img").count() == 0


async def test_an_admin_checks_and_runs_as_an_agent_with_its_tools(pages: Pages, site: Site) -> None:
    page = await _playground(pages, site, "?example=2_refund")
    await expect(page.get_by_text("No problems")).to_be_visible()
    await page.get_by_role("combobox", name="Agent").select_option("reader")
    await expect(page.get_by_role("list", name="Problems")).to_contain_text("convert")
    await _write(page, "await tools.list_customers()")
    await page.keyboard.press("Control+Enter")
    await expect(page.get_by_role("region", name="Run", exact=True)).to_contain_text("reader")
    await expect(page.get_by_role("region", name="Result")).to_contain_text("ada")


async def test_who_runs_no_programs_has_no_editor(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/playground")
    await expect(page.get_by_text("Agents and admins run programs")).to_be_visible()
    await expect(page.get_by_role("link", name="Playground")).to_be_hidden()


async def test_only_the_playground_loads_the_editor(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site)
    loaded: list[str] = []
    page.on("request", lambda request: loaded.append(request.url))
    for path in ("/runs", "/policies", "/agents", "/audit"):
        await page.goto(path)
        await page.wait_for_load_state("networkidle")
    assert not [url for url in loaded if "/assets/editor-" in url]
    await page.goto("/playground")
    await expect(_editor(page)).to_be_visible()
    assert [url for url in loaded if "/assets/editor-" in url]


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_can_be_read_and_fits_a_narrow_window(pages: Pages, site: Site, scheme: str) -> None:
    page = await _playground(pages, site, "?example=1_orders", color_scheme=scheme, viewport=NARROW)
    await page.get_by_role("button", name="Run", exact=False).last.click()
    await expect(page.get_by_role("region", name="Result")).to_contain_text("A-1001")
    assert await serious_findings(page) == []
    assert await overflow(page) == 0
    await _write(page, "await tools.nothing()")
    await expect(page.get_by_role("list", name="Problems")).to_be_visible()
    assert await serious_findings(page) == []
