"""The policies with a real browser: rules with their places, the decision on a call, and changes in two steps."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest
from playwright.async_api import expect

from tests.web.accessibility import overflow, serious_findings
from tests.web.browser import NARROW, OFFICE, Pages, Site, serving

if TYPE_CHECKING:
    from playwright.async_api import Locator, Page

pytestmark = pytest.mark.integration

SETTINGS = """\
[[rules]]
deny = "demo_tools.refund"
when = 'args.amount > 500'
reason = "large refunds need the finance team"

[[rules]]
ask = "demo_tools.convert"
agent = "reader"
reason = "<b>bold</b>\\u202e"

[[rules]]
limit = "demo_tools.refund"
calls_per_run = 2

[[egress]]
allow = "https://api.example.com"
methods = ["GET"]

[agents.reader]
tools = ["demo_tools.list_*"]
"""


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The demo's tools under rules."""
    async with serving(tmp_path_factory.mktemp("policies"), settings=SETTINGS) as started:
        yield started


def _file(site: Site) -> Path:
    return site.home / ".config" / "gloveport" / "gloveport.toml"


def _row(page: Page, section: str, text: str) -> Locator:
    return page.get_by_role("region", name=section).get_by_role("row").filter(has_text=text)


def _explained(**query: str) -> str:
    return f"/policies?{urlencode({'view': 'explain', **query})}"


async def test_rules_are_shown_with_their_places(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/policies")
    await expect(page.get_by_role("region", name="Preset")).to_contain_text("standard")
    rule = _row(page, "Rules", "demo_tools.refund")
    await expect(rule).to_contain_text("deny")
    await expect(rule).to_contain_text("args.amount > 500")
    await expect(rule).to_contain_text("large refunds need the finance team")
    await expect(rule.locator(".place")).to_have_attribute("title", f"{_file(site)}:2")
    await expect(_row(page, "Requests to origins", "https://api.example.com")).to_contain_text("GET")
    await expect(_row(page, "Budgets", "demo_tools.refund")).to_contain_text("2 in a run")
    hostile = _row(page, "Rules", "demo_tools.convert")
    await expect(hostile).to_contain_text("<b>bold</b>")
    await expect(hostile.locator(".mark")).to_have_text("U+202E")
    await expect(page.get_by_role("button", name="Add a rule")).to_be_hidden()  # an approver changes nothing
    await expect(page.get_by_role("button", name=re.compile("^Remove"))).to_be_hidden()


async def test_the_decision_on_a_call_names_the_rule_that_wins(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "approver", "/policies?view=explain")
    await page.get_by_label("Tool, or a URL").fill("demo_tools.refund")
    await page.get_by_role("textbox", name="Arguments").fill(json.dumps({"order": "A-1001", "amount": 700}))
    await page.get_by_role("button", name="Explain").click()
    decision = page.get_by_role("status", name="The decision")
    await expect(decision).to_contain_text("This call would be refused")
    winner = page.get_by_role("region", name="Rules that match").locator(".wins")
    await expect(winner).to_contain_text("its condition is true, and decides")
    await expect(winner).to_contain_text("gloveport.toml:2")
    await expect(page.get_by_role("region", name="Budgets")).to_contain_text("2 in a run")
    await expect(page.get_by_role("region", name="To change it")).to_contain_text("gloveport policy set")
    await page.reload()  # the call stands in the address
    await expect(decision).to_contain_text("This call would be refused")
    await page.get_by_role("textbox", name="Arguments").fill('{"order": "A-1001", "amount": 7}')
    await page.get_by_role("button", name="Explain").click()
    await expect(decision).to_contain_text("A person would be asked")
    await expect(page.get_by_role("region", name="Rules that match")).to_contain_text("its condition is false")


async def test_a_call_that_could_send_out_what_was_read_asks_whatever_the_rules_allow(pages: Pages, tmp_path: Path) -> None:
    settings = '[[rules]]\nallow = "office_tools.send"\n'
    async with serving(tmp_path, str(OFFICE), settings=settings) as site:
        page = await pages.signed_in(site, path="/tools/office_tools.send")
        await page.get_by_role("link", name="Explain and change it").click()
        decision = page.get_by_role("status", name="The decision")
        await expect(decision).to_contain_text("This call would be made")
        await site.run("await tools.read_page({url: 'x'}); await tools.salary({name: 'ada'})")
        await page.reload()
        await expect(decision).to_contain_text("A person would be asked")
        await expect(decision).not_to_contain_text("would be made")
        await expect(page.get_by_role("region", name="Labels")).to_contain_text("office_tools.salary")


async def test_a_hypothetical_caller_sees_what_that_agent_sees(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path=_explained(tool="demo_tools.convert", agent="reader"))
    decision = page.get_by_role("status", name="The decision")
    await expect(decision).to_contain_text("A person would be asked")
    await expect(decision).to_contain_text("does not see this tool")
    await page.get_by_label("Agent").select_option("default")
    await page.get_by_role("button", name="Explain").click()
    await expect(decision).to_contain_text("This call would be made")
    await page.goto(_explained(tool="https://api.example.com/x"))
    await expect(decision).to_contain_text("This call would be made")
    pages.allow("status of 404")
    await page.goto(_explained(tool="demo_tools.nothing"))
    await expect(page.get_by_role("alert")).to_contain_text("there is no tool")


async def test_a_rule_is_written_only_after_its_change_was_shown(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/policies")
    await page.get_by_role("button", name="Add a rule").click()
    form = page.get_by_role("dialog", name="Add a rule")
    await form.get_by_label("deny").check()
    await form.get_by_label("Tools").fill("demo_tools.get_wether")
    await form.get_by_label("Agent").fill("reader")
    await form.get_by_role("button", name="Show the change").click()
    await expect(form.locator(".note")).to_contain_text("did you mean `demo_tools.get_weather`?")
    await form.get_by_role("button", name="Back").click()
    await form.get_by_label("Tools").fill("demo_tools.get_weather")
    await form.get_by_role("button", name="Show the change").click()
    await expect(form.locator(".note")).to_have_count(0)
    await expect(form.get_by_label("The change of the file")).to_contain_text('+deny = "demo_tools.get_weather"')
    assert "get_weather" not in _file(site).read_text()
    await form.get_by_role("button", name="Write the file").click()
    await expect(_row(page, "Rules", "demo_tools.get_weather")).to_contain_text("reader")
    assert 'deny = "demo_tools.get_weather"' in _file(site).read_text()
    async with site.client(site.token("changer", "admin")) as client:
        asked = {"tool": "demo_tools.get_weather", "agent": "reader"}
        assert (await client.post("/v1/policies/explain", json=asked)).json()["decision"]["verdict"] == "deny"
    await page.get_by_role("button", name="Change the rule for demo_tools.get_weather").click()
    change = page.get_by_role("dialog", name="Change a rule")
    await expect(change.get_by_label("Tools")).not_to_be_editable()
    await change.get_by_label("ask").check()
    await change.get_by_role("button", name="Show the change").click()
    await change.get_by_role("button", name="Write the file").click()
    await expect(_row(page, "Rules", "demo_tools.get_weather")).to_contain_text("ask")
    await page.get_by_role("button", name="Remove the rule for demo_tools.get_weather").click()
    removal = page.get_by_role("dialog", name="Remove a rule")
    await removal.get_by_role("button", name="Show the change").click()
    await removal.get_by_role("button", name="Write the file").click()
    await expect(_row(page, "Rules", "demo_tools.get_weather")).to_be_hidden()
    assert _file(site).read_text() == SETTINGS


async def test_a_file_that_has_changed_meanwhile_is_not_written(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/policies")
    await page.get_by_role("button", name="Add a rule").click()
    form = page.get_by_role("dialog", name="Add a rule")
    await form.get_by_label("Tools").fill("demo_tools.list_orders")
    await form.get_by_role("button", name="Show the change").click()
    await expect(form.get_by_label("The change of the file")).to_be_visible()
    edited = "# edited elsewhere\n" + SETTINGS
    _file(site).write_text(edited)
    pages.allow("status of 409")
    await form.get_by_role("button", name="Write the file").click()
    await expect(form.get_by_role("alert")).to_contain_text("was changed in the meantime")
    assert _file(site).read_text() == edited
    _file(site).write_text(SETTINGS)


async def test_a_condition_that_is_none_is_explained(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/policies")
    await page.get_by_role("button", name="Add a rule").click()
    form = page.get_by_role("dialog", name="Add a rule")
    await form.get_by_label("Tools").fill("demo_tools.refund")
    await form.get_by_label("Only when").fill("args.amount >")
    pages.allow("status of 400")
    await form.get_by_role("button", name="Show the change").click()
    await expect(form.get_by_role("alert")).to_contain_text("`when` is no condition")


async def test_an_agent_sees_no_rules(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, "agent", "/policies")
    await expect(page.get_by_text("Rules are for people")).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_it_can_be_read_and_fits_a_narrow_window(pages: Pages, site: Site, scheme: str) -> None:
    page = await pages.signed_in(site, path="/policies", color_scheme=scheme, viewport=NARROW)
    await expect(_row(page, "Rules", "demo_tools.refund")).to_be_visible()
    assert await serious_findings(page) == []
    assert await overflow(page) == 0
    await page.goto(_explained(tool="demo_tools.refund", args='{"order": "A-1001", "amount": 700}'))
    await expect(page.get_by_role("status", name="The decision")).to_be_visible()
    assert await serious_findings(page) == []
    assert await overflow(page) == 0
