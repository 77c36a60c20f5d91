"""The page of tools, in a real browser: search, tree, types, rules, calls in real sandboxes, and changed definitions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from playwright.async_api import expect

from tests.surfaces.command import REPOSITORY
from tests.test_sources import ORDERS, Orders
from tests.web.accessibility import serious_findings
from tests.web.browser import DEMO, NARROW, Pages, Site, serving

pytestmark = pytest.mark.integration
SHOP = str(REPOSITORY / "examples" / "shop.json")
AREAS, THINGS = 40, 250
LONG_NAME = (
    "a_tool_with_a_name_that_is_so_long_that_it_does_not_fit_into_any_list_that_somebody_could_show_on_a_small_screen"
)
HOSTILE = f'''
from typing import Literal
def evil(name: str, how: Literal["<b>bold</b>", "\\u202eevil"] = "<b>bold</b>") -> dict:
    """."""
    return {{"html": "<img src=x onerror=alert(1)>", "ansi": "\\x1b[31mred", "rtl": "\\u202eabc", "given": name}}
evil.__doc__ = "<img src=x onerror=alert(1)><script>alert(2)</script> \\x1b[31mred \\u202etxet " + "long " * 9000
def {LONG_NAME}() -> int:
    """One."""
    return 1
'''


def _big() -> str:
    def operation(area: int, thing: int) -> dict[str, object]:
        about = f"Get thing {thing} of area {area}"
        return {"operationId": f"area{area}.get_{thing}", "summary": about, "responses": {"200": {"description": "ok"}}}

    paths = {f"/a{area}/t{n}": {"get": operation(area, n)} for area in range(AREAS) for n in range(THINGS)}
    info = {"title": "big", "version": "1"}
    return json.dumps({"openapi": "3.1.0", "info": info, "servers": [{"url": "https://big.example"}], "paths": paths})


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A server with 10,000 tools, the demo's, a shop, and hostile ones."""
    home = tmp_path_factory.mktemp("site")
    (home / "big.json").write_text(_big())
    (home / "hostile.py").write_text(HOSTILE)
    async with serving(home, str(DEMO), SHOP, str(home / "big.json"), str(home / "hostile.py")) as started:
        yield started


async def test_ten_thousand_tools_are_searched_as_somebody_types(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools")
    await expect(page.get_by_text("10,012 tools")).to_be_visible()
    await page.keyboard.press("/")
    await page.keyboard.type("thing 217 of area 23")
    await expect(page.locator(".tool-result").first).to_contain_text("big.area23.get_217")
    await expect(page.locator(".tools-count")).to_contain_text("The best 50 of")
    assert await page.locator(".tool-result").count() == 50
    await page.wait_for_url("**/tools?q=thing+217+of+area+23")
    await page.keyboard.press("ArrowDown")
    await page.keyboard.press("ArrowDown")
    await expect(page.locator(".tool-result").nth(1)).to_be_focused()
    await page.keyboard.press("ArrowUp")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="big.area23.get_217")).to_be_visible()
    assert "/tools/big.area23.get_217?q=" in page.url
    # What a search shows comes again from its address alone.
    await page.reload()
    await expect(page.locator(".tool-result[aria-current]")).to_contain_text("big.area23.get_217")


async def test_the_tree_opens_with_the_keyboard_and_loads_what_it_shows(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools")
    branch = page.get_by_role("button", name="shop")
    await branch.focus()
    for below in (page.get_by_role("button", name="orders"), page.get_by_role("link", name="create", exact=True)):
        await page.keyboard.press("ArrowRight")
        await expect(below).to_be_visible()
        await page.keyboard.press("ArrowDown")
        await expect(below).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="shop.orders.create")).to_be_visible()
    await expect(page.get_by_role("link", name="create", exact=True)).to_have_attribute("aria-current", "true")
    await page.get_by_role("link", name="get", exact=True).click()
    await expect(page.get_by_role("heading", name="shop.orders.get")).to_be_visible()
    await page.go_back()
    await expect(page.get_by_role("heading", name="shop.orders.create")).to_be_visible()
    # Opened by its address, the tree shows where the tool is.
    await page.goto("/tools/big.area39.get_249")
    await expect(page.get_by_role("link", name="get_249", exact=True)).to_have_attribute("aria-current", "true")


async def test_a_tool_shows_its_types_in_both_languages_and_its_rule(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools/shop.orders.create")
    types = page.get_by_role("region", name="Types")
    await expect(types).to_contain_text("create(args: {")
    await types.get_by_role("tab", name="Python").click()
    await expect(types).to_contain_text("async def create(")
    await page.wait_for_url("**?language=python")
    rule = page.get_by_role("region", name="Rule")
    await expect(rule).to_contain_text("Each call asks a person first by the preset standard")
    await expect(rule).to_contain_text("outbound")
    await page.goto("/tools/demo_tools.list_customers")
    await expect(rule).to_contain_text("Calls are allowed")


async def test_a_read_is_called_with_the_form_and_is_a_run(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools/demo_tools.list_orders")
    form = page.get_by_role("region", name="Call it")
    await form.get_by_label("customer").fill("ada")
    await form.get_by_role("button", name="Call", exact=True).click()
    result = page.get_by_role("region", name="The call")
    await expect(result).to_contain_text("completed")
    await expect(result.get_by_role("region", name="Result")).to_be_visible()
    await page.wait_for_url("**?run=*")
    await result.get_by_role("link", name="Run ").click()
    await page.wait_for_url("**/runs/*")
    await expect(page.get_by_text("demo_tools.list_orders").first).to_be_visible()
    await expect(page.get_by_role("region", name="Program")).to_contain_text("(input)")


async def test_arguments_that_do_not_fit_are_explained_by_the_server(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools/shop.orders.list")
    form = page.get_by_role("region", name="Call it")
    await form.get_by_label("page", exact=False).first.fill("many")
    await form.get_by_role("button", name="Call", exact=True).click()
    await expect(page.get_by_role("region", name="The call")).to_contain_text("bad-arguments")
    await expect(page.get_by_role("region", name="The call")).to_contain_text("page")
    await form.get_by_role("button", name="As JSON").click()
    await form.get_by_label("Arguments as JSON").fill("{")
    await expect(form.get_by_role("button", name="Call", exact=True)).to_be_disabled()


async def test_a_write_waits_for_a_person_and_the_page_leads_there(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools/demo_tools.refund")
    form = page.get_by_role("region", name="Call it")
    await form.get_by_label("order").fill("A-1")
    await form.get_by_label("amount").fill("5")
    await form.get_by_role("button", name="Call", exact=True).click()
    waiting = page.get_by_role("region", name="Waiting")
    await expect(waiting).to_contain_text("A call waits for a person")
    address = page.url
    await waiting.get_by_role("link", name="Look and answer").click()
    await page.wait_for_url("**/approvals/*")
    await page.get_by_role("button", name="Approve y").click()
    await expect(page.get_by_text("demo_tools.refund approved.")).to_be_visible()
    await page.goto(address)
    await expect(page.get_by_role("region", name="The call")).to_contain_text("failed")
    await expect(page.get_by_role("region", name="The call")).to_contain_text("there is no order A-1")


async def test_a_form_has_fields_for_lists_of_objects(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools/shop.orders.create")
    form = page.get_by_role("region", name="Call it")
    await form.get_by_label("customer").fill("ada")
    await form.get_by_role("button", name="Add one").click()
    await form.get_by_label("name").fill("tea")
    await form.get_by_label("price").fill("2.5")
    await form.get_by_role("button", name="Add another").click()
    await form.get_by_role("button", name="Remove item 2 of items").click()
    await form.get_by_role("button", name="As JSON").click()
    given = json.loads(await form.get_by_label("Arguments as JSON").input_value())
    assert given == {"customer": "ada", "items": [{"name": "tea", "price": 2.5}]}
    # Nobody has stored a credential for the shop: the page says so, and leads to where that is done.
    await page.goto("/tools/shop.orders.list")
    await form.get_by_role("button", name="Call", exact=True).click()
    call = page.get_by_role("region", name="The call")
    await expect(call).to_contain_text("gloveport auth add shop")
    await call.get_by_role("link", name="Sign in to shop").click()
    await expect(page.get_by_role("region", name="Source shop")).to_contain_text("missing")


async def test_hostile_descriptions_and_results_are_inert(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools/hostile.evil")
    dialogs: list[str] = []
    page.on("dialog", lambda dialog: dialogs.append(dialog.message))
    tool = page.get_by_role("article")
    await expect(tool.locator(".tool-description")).to_contain_text("<img src=x onerror=alert(1)><script>alert(2)</script>")
    await expect(tool.locator(".tool-description")).to_contain_text("U+202E")
    await expect(tool.locator(".tool-description")).to_contain_text("U+001B")
    await expect(tool.get_by_role("button", name="show all")).to_be_visible()
    await tool.get_by_label("name").fill("<script>alert(3)</script>")
    await tool.get_by_label("how").select_option(index=1)
    await tool.get_by_role("button", name="Call", exact=True).click()
    result = page.get_by_role("region", name="Result")
    await expect(result).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(result).to_contain_text("U+202E")
    assert await page.locator("main img, main script").count() == 0
    assert dialogs == []


async def test_what_does_not_exist_says_so(pages: Pages, site: Site) -> None:
    pages.allow("404")
    page = await pages.signed_in(site, path="/tools/nobody.knows")
    await expect(page.get_by_role("alert")).to_contain_text("there is no tool 'nobody.knows'")


@pytest.mark.parametrize("role", ["agent", "approver"])
async def test_each_role_sees_what_its_role_may(pages: Pages, site: Site, role: str) -> None:
    page = await pages.signed_in(site, role, "/tools/demo_tools.list_customers")
    await expect(page.get_by_role("region", name="Types")).to_be_visible()
    may_run, may_explain = role == "agent", role == "approver"
    await expect(page.get_by_role("region", name="Call it")).to_have_count(int(may_run))
    await expect(page.get_by_role("region", name="Rule")).to_have_count(int(may_explain))


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious(pages: Pages, site: Site, scheme: str) -> None:
    page = await pages.signed_in(site, color_scheme=scheme, bypass_csp=True)
    for path, shown in (
        ("/tools", "10,012 tools"),
        ("/tools?q=orders", "found"),
        ("/tools/shop.orders.create", "declare const"),
    ):
        await page.goto(path)
        await expect(page.locator("main")).to_contain_text(shown)
        assert await serious_findings(page) == []


async def test_a_narrow_screen_shows_the_list_or_the_tool(pages: Pages, site: Site) -> None:
    page = await pages.signed_in(site, path="/tools", viewport=NARROW)
    await page.get_by_role("button", name="hostile").click()
    await page.get_by_role("link", name=LONG_NAME).click()
    await expect(page.get_by_role("heading", name=LONG_NAME)).to_be_visible()
    await expect(page.get_by_label("Search the tools")).to_be_hidden()
    assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
    await page.get_by_role("link", name="← All tools").click()
    await expect(page.get_by_label("Search the tools")).to_be_visible()


async def test_a_changed_definition_is_shown_and_accepted(pages: Pages, tmp_path: Path) -> None:
    orders = Orders()
    async with await asyncio.start_server(orders.answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        settings = f'[sources.mine]\nopenapi = "{url}/openapi.json"\nbase_url = "{url}"\nallow_private = true\n'
        async with serving(tmp_path, settings=settings) as own:
            page = await pages.signed_in(own, path="/sources/mine")
            source = page.get_by_role("region", name="Source mine")
            await expect(source).to_contain_text("3 tools")
            orders.document = json.loads(json.dumps(ORDERS).replace("Get an order", "Get an order, or delete it"))
            await source.get_by_role("button", name="Refresh").click()
            await source.get_by_role("link", name="1 suspended").click()
            await page.goto("/tools")
            await page.get_by_role("link", name="Look at the changes").click()
            diff = page.get_by_label("What has changed in mine.orders.get")
            await expect(diff.locator(".gone")).to_contain_text("Get an order")
            await expect(diff.locator(".added")).to_contain_text("or delete it")
            await page.get_by_role("link", name="mine.orders.get").click()
            await expect(page.get_by_role("region", name="Suspended")).to_contain_text("It can't be called now.")
            await expect(page.get_by_role("region", name="Call it")).to_have_count(0)
            await page.get_by_role("button", name="Accept…").click()
            await page.get_by_role("dialog").get_by_role("button", name="Accept it").click()
            await expect(page.get_by_role("region", name="Call it")).to_be_visible()
            await expect(page.get_by_role("region", name="Suspended")).to_have_count(0)
            await expect(page.locator(".tool-description")).to_contain_text("delete it")
            await page.close()
