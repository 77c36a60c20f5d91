"""The approvals in a real browser: real programs in real sandboxes wait for what is clicked and pressed here."""

from __future__ import annotations

import asyncio
import getpass
import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import expect

from tests.surfaces.command import terminal
from tests.web.browser import DEMO, OFFICE, Pages, Site, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page

pytestmark = pytest.mark.integration
SEND = "await tools.send({to: 'ada', text: 'hello'})"
QUICK_EXPIRY_MINUTES = 0.03


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with serving(tmp_path_factory.mktemp("site"), str(DEMO), str(OFFICE)) as started:
        yield started


@pytest.fixture(autouse=True)
async def nothing_waits(site: Site) -> AsyncIterator[None]:
    """Deny what a test leaves behind."""
    yield
    async with site.person() as client:
        found = (await client.get("/v1/approvals")).json()["approvals"]
        for one in found:
            await client.post("/v1/approvals/answer", json={"approve": False, "requests": {one["id"]: one["digest"]}})
        for one in (await client.get("/v1/approvals/standing")).json()["standing"]:
            await client.delete(f"/v1/approvals/standing/{one['id']}")


async def _settled(page: Page) -> None:
    """Wait until keys count: those that come too soon after a call is shown were meant for the one before."""
    await page.wait_for_timeout(450)


async def test_keys_choose_and_answer_calls(site: Site, pages: Pages) -> None:
    first = await site.waiting("await tools.send({to: 'one', text: 'a'})")
    second = await site.waiting("await tools.send({to: 'two', text: 'b'})")
    page = await pages.signed_in(site, "approver", "/approvals")
    await expect(page).to_have_title("(2) Approvals · Gloveport")
    shown = page.get_by_label("Arguments", exact=True)
    await expect(shown).to_contain_text('"to": "one"')
    await page.keyboard.press("j")
    await expect(shown).to_contain_text('"to": "two"')
    await page.keyboard.press("k")
    await expect(shown).to_contain_text('"to": "one"')
    await _settled(page)
    await page.keyboard.press("y")
    await expect(shown).to_contain_text('"to": "two"')
    await expect(page).to_have_title("(1) Approvals · Gloveport")
    await page.get_by_label("Reason, if you deny").fill("not today")
    await page.get_by_role("button", name="Deny n").click()
    await expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    await expect(page).to_have_title("Approvals · Gloveport")
    assert (await site.outcome(first))["value"] == "sent 1 characters to one"
    denied = await site.outcome(second)
    assert denied["status"] == "failed"
    assert "not today" in denied["error"]["message"]


async def test_a_key_that_is_held_down_answers_one_call_at_most(site: Site, pages: Pages) -> None:
    await site.waiting(f"await Promise.all([{SEND}, {SEND}, {SEND}])".replace("await tools", "tools"), 3)
    page = await pages.signed_in(site, path="/approvals")
    await expect(page).to_have_title("(3) Approvals · Gloveport")
    await _settled(page)
    await page.keyboard.down("y")
    await expect(page).to_have_title("(2) Approvals · Gloveport")
    for _ in range(10):
        await page.keyboard.down("y")  # repeats
        await page.wait_for_timeout(100)
    await page.keyboard.up("y")
    await page.reload()
    await expect(page).to_have_title("(2) Approvals · Gloveport")


async def test_what_is_edited_is_what_is_sent(site: Site, pages: Pages) -> None:
    run = await site.waiting(SEND)
    page = await pages.signed_in(site, "approver", "/approvals")
    await expect(page.get_by_role("button", name="Edit e")).to_be_visible()
    await page.keyboard.press("e")
    editor = page.get_by_label("Arguments as JSON")
    await editor.fill('{"to": ')
    await expect(page.get_by_role("button", name="Use these")).to_be_disabled()
    await editor.fill('{"to": "ada", "text": 7}')
    await page.get_by_role("button", name="Use these").click()
    await expect(page.locator(".changes")).to_contain_text("hello")
    pages.allow("status of 400")
    await page.get_by_role("button", name="Approve as changed").click()
    # The host of the run checks what was sent; the call waits again, and says why.
    await expect(page.get_by_text("The last answer was not accepted")).to_be_visible()
    await page.get_by_role("button", name="Edit").click()
    await editor.fill('{"to": "bo", "text": "hello there"}')
    await page.get_by_role("button", name="Use these").click()
    await page.get_by_role("button", name="Approve as changed").click()
    await expect(page.get_by_role("heading", name="Nothing needs you")).to_be_visible()
    assert (await site.outcome(run))["value"] == "sent 11 characters to bo"
    await page.goto(f"/runs/{run}?call=1")
    details = page.get_by_role("region", name="Call 1")
    await expect(details).to_contain_text('"to": "bo", "text": "hello there"')


async def test_all_calls_of_a_run_are_answered_at_once_as_they_were_shown(site: Site, pages: Pages) -> None:
    run = await site.waiting("await Promise.all([1, 2, 3].map((n) => tools.send({to: `p${n}`, text: 'x'})))", 3)
    await site.waiting(SEND)
    page = await pages.signed_in(site, path="/approvals")
    await page.get_by_role("button", name="Approve all 3").click()
    dialog = page.get_by_role("dialog")
    for to in ("p1", "p2", "p3"):
        await expect(dialog).to_contain_text(f'"to":"{to}"')
    await dialog.get_by_role("button", name="Approve all").click()
    await expect(page).to_have_title("(1) Approvals · Gloveport")
    assert (await site.outcome(run))["value"] == [f"sent 1 characters to p{n}" for n in (1, 2, 3)]


async def test_always_is_listed_and_can_be_revoked(site: Site, pages: Pages) -> None:
    run = await site.waiting(SEND)
    page = await pages.signed_in(site, path="/approvals")
    await page.get_by_label("calls like this, always").check()
    await expect(page.get_by_text("whatever the values are")).to_be_visible()
    await page.get_by_role("button", name="Approve y").click()
    assert (await site.outcome(run))["status"] == "completed"
    assert (await site.run("await tools.send({to: 'bo', text: 'other'})"))["status"] == "completed"  # was not asked about
    await page.get_by_role("link", name="Always allowed").click()
    assert page.url.endswith("/approvals?view=standing")
    row = page.locator("tbody tr")
    await expect(row).to_contain_text("office_tools.send")
    await row.get_by_role("button", name="Revoke").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_role("heading", name="Nothing is always allowed")).to_be_visible()
    await site.waiting(SEND)


async def test_two_people_see_a_call_vanish_when_one_answers_it(site: Site, pages: Pages) -> None:
    answered = await site.waiting("await tools.send({to: 'one', text: 'a'})")
    other = await site.waiting("await tools.send({to: 'two', text: 'b'})")
    one, two = await pages.signed_in(site, "approver", "/approvals"), await pages.signed_in(site, "admin", "/approvals")
    for page in (one, two):
        await expect(page.get_by_label("Arguments", exact=True)).to_contain_text('"to": "one"')
    await one.get_by_role("button", name="Approve y").click()
    await expect(two).to_have_title("(1) Approvals · Gloveport")
    await expect(two.get_by_text(re.compile("This call was approved by"))).to_be_visible()
    await expect(two.locator("[data-request]")).to_have_count(1)
    await _settled(two)
    await two.keyboard.press("y")  # what was shown has been answered: this answers nothing else
    assert (await site.outcome(answered))["status"] == "completed"
    await two.get_by_role("link", name="Show what waits").click()
    await expect(two.get_by_label("Arguments", exact=True)).to_contain_text('"to": "two"')
    async with site.client() as client:
        assert (await client.get(f"/v1/runs/{other}")).json()["run"]["status"] in ("running", "waiting")


async def test_an_answer_in_a_terminal_makes_a_call_vanish_and_pages_say_who_gave_it(site: Site, pages: Pages) -> None:
    """One call of the server, and one that another process asks about in its own terminal."""
    run = await site.waiting("await tools.send({to: 'one', text: 'a'})")
    one, two = await pages.signed_in(site, "approver", "/approvals"), await pages.signed_in(site, "admin", "/approvals")
    user = getpass.getuser()
    with terminal("approvals", "approve", "--run", run, HOME=str(site.home)) as screen:
        await asyncio.to_thread(screen.until, r"Approve this call\? \[y/N\] ")
        screen.press(b"y\n")
        await asyncio.to_thread(screen.until, "the run goes on")
    for page in (one, two):
        await expect(page.get_by_text(f"This call was approved by {user}.")).to_be_visible()
        await expect(page).to_have_title("Approvals · Gloveport")
    await one.goto(f"/runs/{run}?call=1")
    await expect(one.get_by_role("region", name="Call 1")).to_contain_text(f"Answered by {user} after")
    await two.goto("/approvals")
    with terminal("run", "-e", SEND, "--tools", str(OFFICE), HOME=str(site.home)) as screen:
        await asyncio.to_thread(screen.until, r"Make this call\? ")
        await expect(two.get_by_label("Arguments", exact=True)).to_contain_text("hello")
        screen.press(b"n\nnot now\n")
        await expect(two.get_by_text(f"This call was denied by {user}: not now.")).to_be_visible()
    await two.get_by_role("region", name="Call of office_tools.send").get_by_role("link", name=re.compile("run ")).click()
    await two.locator('[data-call="1"]').click()
    await expect(two.get_by_role("region", name="Call 1")).to_contain_text(f"Answered by {user} after")


async def test_a_link_to_a_call_leads_to_it_also_when_it_was_answered(site: Site, pages: Pages) -> None:
    await site.waiting(SEND)
    await site.waiting("await tools.send({to: 'two', text: 'b'})")
    page = await pages.signed_in(site, path="/approvals")
    await page.locator("[data-request]").nth(1).click()
    link = page.url
    other = await pages.signed_in(site, "approver", link)
    await expect(other.get_by_label("Arguments", exact=True)).to_contain_text('"to": "two"')
    await other.get_by_role("button", name="Deny n").click()
    await expect(other.get_by_label("Arguments", exact=True)).to_contain_text('"to": "ada"')
    await other.goto(link)
    await expect(other.get_by_text(re.compile("This call was denied by"))).to_be_visible()
    await expect(other.get_by_role("button", name="Approve")).to_have_count(0)


async def test_the_reads_that_led_to_a_call_and_their_labels_stand_beside_it(site: Site, pages: Pages) -> None:
    code = "await tools.read_page({url: 'http://x'}); const much = await tools.salary({name: 'ada'}); await tools.send({to: 'x', text: String(much)})"
    await site.waiting(code)
    page = await pages.signed_in(site, path="/approvals")
    note = page.locator(".note", has_text="could send out")
    await expect(note).to_contain_text("office_tools.read_page")
    await expect(note).to_contain_text("untrusted")
    await expect(note).to_contain_text("office_tools.salary")
    await expect(note).to_contain_text("private")
    await expect(page.get_by_label("calls like this, always")).to_have_count(0)  # such an answer is for one call


async def test_exactly_what_will_be_sent_is_shown_to_its_last_and_hidden_character(site: Site, pages: Pages) -> None:
    text = "pay\u202eeur\u200b" + "x" * 30_000 + "THE END"
    await site.waiting(f"await tools.send({{to: 'ada', text: {json.dumps(text)}}})")
    page = await pages.signed_in(site, path="/approvals")
    shown = page.get_by_label("Arguments", exact=True)
    await expect(shown.locator(".mark").first).to_have_text("U+202E")
    await expect(shown.locator(".mark").nth(1)).to_have_text("U+200B")
    await page.get_by_role("button", name=re.compile("show all 30,")).click()
    await expect(shown).to_contain_text("THE END")


async def test_a_plan_is_approved_and_run_here(site: Site, pages: Pages) -> None:
    code = "await tools.send({to: 'ada', text: 'a'}); await tools.send({to: 'bo', text: 'b'}); 'done'"
    planned = await site.run(code, mode="plan")
    page = await pages.signed_in(site, "approver", "/approvals?view=plans")
    plan = page.get_by_role("region", name="Plan")
    await expect(plan).to_contain_text("Plan: 2 writes")
    await expect(plan).to_contain_text('"to": "bo"')
    await plan.get_by_role("button", name="Approve and run").click()
    await page.get_by_role("dialog").get_by_role("button", name="Approve 2 writes").click()
    await page.wait_for_url(re.compile(r"/runs/(?!" + planned["run"] + ")"))
    await expect(page.get_by_role("region", name="Result")).to_contain_text("done")
    await expect(page.locator(".call-row")).to_have_count(2)
    await page.goto("/approvals?view=plans")
    await expect(page.get_by_role("heading", name="No plan waits")).to_be_visible()


async def test_what_waits_is_loaded_whole_only_when_it_has_changed(site: Site, pages: Pages) -> None:
    planned = await site.run(SEND, mode="plan")
    await site.waiting(SEND)
    page = await pages.signed_in(site, "approver")
    seen: dict[str, list[int]] = {"/v1/approvals": [], "/v1/plans": []}

    def note(response: Any) -> None:
        if (path := urlsplit(response.url).path) in seen:
            seen[path].append(response.status)

    await page.goto("/approvals?view=plans")
    page.on("response", note)
    await expect(page.get_by_role("region", name="Plan")).to_contain_text("hello")
    for path in seen:
        await page.wait_for_event("response", lambda one, path=path: urlsplit(one.url).path == path and one.status == 304)
    for statuses in seen.values():
        statuses.clear()
    await site.waiting("await tools.send({to: 'bo', text: 'more'})")
    await expect(page).to_have_title("(2) Approvals · Gloveport")
    async with site.person() as client:
        await client.post(f"/v1/runs/{planned['run']}/apply", json={})
    await expect(page.get_by_role("heading", name="No plan waits")).to_be_visible()
    for path, statuses in seen.items():
        assert statuses.count(200) == 1, (path, statuses)


async def test_a_call_that_has_expired_cannot_be_answered(pages: Pages, tmp_path: Any) -> None:
    settings = f"[approvals]\nexpiry_minutes = {QUICK_EXPIRY_MINUTES}\n"
    async with serving(tmp_path, str(OFFICE), settings=settings) as site:
        page = await pages.signed_in(site, path="/approvals")
        run = (await site.run(SEND, wait=False))["run"]
        await expect(page.get_by_text(re.compile("expires in|expired"))).to_be_visible()
        await expect(page.get_by_text("This call has expired, and was not made.")).to_be_visible()
        outcome = await site.outcome(run)
        assert "nobody answered" in outcome["error"]["message"]
        await page.close()  # before its server ends


RECORDED = """
window.notices = [];
window.Notification = class { static permission = "granted"; constructor(title, given) { window.notices.push([title, given.body]); } };
Object.defineProperty(document, "hidden", {get: () => window.isHidden ?? false});
"""


async def test_the_browser_shows_a_notice_while_nobody_looks(site: Site, pages: Pages) -> None:
    page = await pages.signed_in(site, path="/approvals")
    await page.add_init_script(RECORDED)  # the place where notices of the system would appear, and a tab in the background
    await page.goto("/runs")
    await expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    await page.evaluate("window.isHidden = true")
    await site.waiting("await tools.send({to: 'eve\u202e', text: 'x'})")
    await expect(page).to_have_title("(1) Runs · Gloveport")
    assert await page.evaluate("window.notices") == [["A call waits for you", "office_tools.send · default"]]


async def test_an_agent_can_answer_nothing(site: Site, pages: Pages) -> None:
    await site.waiting(SEND)
    page = await pages.signed_in(site, "agent", "/approvals")
    await expect(page.get_by_role("heading", name="Only people answer here")).to_be_visible()
    await expect(page.get_by_role("link", name="Approvals")).to_have_count(0)
    pages.allow("status of 403")
    key = "localStorage.getItem('gloveport-session-key')"
    asked = f"fetch('/v1/approvals', {{headers: {{'X-Gloveport': {key}}}}}).then((reply) => reply.status)"
    assert await page.evaluate(asked) == 403
