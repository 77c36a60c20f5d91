"""The list of runs and the page of a run in a real browser, with real programs in real sandboxes."""

from __future__ import annotations

import asyncio
import json
import re
import signal
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from tests.test_sources import SECRET, Orders
from tests.web.browser import DEMO, OFFICE, PERSON, Pages, Site, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from playwright.async_api import CDPSession, Page

pytestmark = pytest.mark.integration
STEPS = """const names = ["a", "b"];
await Promise.all(names.map((name) => step(name, async () => {
  await tools.slow({ seconds: 0.3, name });
  await step("after", () => tools.give({ value: name }));
})));
console.log("a line"); console.warn("a warning");
emit({ half: true });
return { done: names };"""
FAILS = """const first = await tools.give({ value: 1 });
await tools.refuse({ message: "we are closed" });"""
ENDLESS = "await tools.slow({ seconds: 600 })"
MAX_FRAME_CPU_MS = 16.6  # of the page's main thread: one that takes longer is late at 60 frames a second


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with serving(tmp_path_factory.mktemp("site"), str(DEMO), str(OFFICE)) as started:
        yield started


def _rows(page: Page) -> Any:
    return page.locator("table.list tbody tr")


def _call(page: Page, number: int) -> Any:
    return page.locator(f'[data-call="{number}"]')


async def test_the_list_shows_how_runs_go_on_and_narrows_to_what_is_asked_for(site: Site, pages: Pages) -> None:
    page = await pages.signed_in(site)
    await site.run("1 + 1")
    failed = (await site.run(FAILS))["run"]
    running = (await site.run(ENDLESS, wait=False))["run"]
    row = _rows(page).filter(has_text=running[:8])
    await expect(row).to_contain_text("running")
    await expect(row).to_contain_text(ENDLESS)
    async with site.client() as client:
        await client.post(f"/v1/runs/{running}/cancel", json={})
    await expect(row).to_contain_text("cancelled")  # without a reload
    await page.get_by_role("button", name="failed", exact=True).click()
    await expect(_rows(page)).to_have_count(1)
    await expect(_rows(page)).to_contain_text(failed[:8])
    assert page.url.endswith("/runs?status=failed")
    await page.get_by_role("button", name="All").click()
    await page.get_by_label("Tool", exact=True).fill("*.refuse")
    await expect(_rows(page)).to_have_count(1)
    await page.reload()  # the address has it all
    await expect(_rows(page)).to_have_count(1)
    await expect(page.get_by_label("Tool", exact=True)).to_have_value("*.refuse")
    await page.get_by_label("Agent", exact=True).fill("nobody")
    await expect(page.get_by_role("heading", name="No run fits")).to_be_visible()
    await page.get_by_role("button", name="Show all runs").click()
    await page.keyboard.press("/")
    await page.keyboard.type(failed[:10])
    await expect(_rows(page)).to_have_count(1)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name=f"Run {failed[:8]}")).to_be_visible()
    pages.allow("status of 404")
    await page.goto(f"/runs/{failed[:8]}")  # as lists show it
    await page.wait_for_url(f"**/runs/{failed}")
    await page.goto("/runs/none")
    await expect(page.get_by_role("heading", name="There is no such run")).to_be_visible()
    async with site.client() as client:
        twin = await client.get("/runs.json?status=failed")
        assert [one["run"] for one in twin.json()["runs"]] == [failed]


async def test_a_run_shows_its_calls_as_a_tree_and_side_by_side_in_time(site: Site, pages: Pages) -> None:
    run = (await site.run(STEPS))["run"]
    page = await pages.signed_in(site, path=f"/runs/{run}")
    await expect(page.get_by_role("region", name="Result")).to_contain_text('done: ["a", "b"]')
    await expect(page.get_by_role("region", name="Logs")).to_contain_text("a warning")
    await expect(page.get_by_role("region", name="Emitted")).to_contain_text("half")
    await expect(page.get_by_label("Usage")).to_contain_text("computing")
    await expect(page.locator(".call-row")).to_have_count(8)  # two steps, in each a call and a step with a call
    first, second = [await _call(page, n).locator(".bar.ok").bounding_box() for n in (1, 2)]
    assert first
    assert second
    assert first["x"] < second["x"] + second["width"]
    assert second["x"] < first["x"] + first["width"]  # at the same time
    await page.locator(".call-row.step", has_text="a").first.click()
    await expect(page.locator(".call-row")).to_have_count(5)


async def test_a_bar_leads_to_its_line_and_a_line_to_its_bars(site: Site, pages: Pages) -> None:
    run = (await site.run(STEPS))["run"]
    page = await pages.signed_in(site, path=f"/runs/{run}")
    await _call(page, 1).click()
    await expect(page.locator("[data-line].chosen")).to_have_attribute("data-line", "3")
    details = page.get_by_role("region", name="Call 1")
    await expect(details).to_contain_text('"name": "a"')
    assert page.url.endswith("?call=1")
    await page.reload()
    await expect(details).to_be_visible()
    await page.get_by_role("button", name="Line 4: show its calls").click()
    await expect(page.locator(".call-row.marked")).to_have_count(2)
    assert "line=4" in page.url
    await page.keyboard.press("Escape")
    await expect(page.locator(".call-row.marked")).to_have_count(0)


async def test_a_secret_that_a_service_sends_back_stands_there_by_its_name(pages: Pages, tmp_path: Path) -> None:
    """A service echoes its credential, and the program hands it on wherever it can."""
    orders = Orders()
    listening = await asyncio.start_server(orders.answer, "127.0.0.1", 0)
    url = "http://{}:{}".format(*listening.sockets[0].getsockname())
    settings = f"""[sources.shop]
openapi = "{url}/openapi.json"
base_url = "{url}"
allow_private = true
credentials = {{ key = "command:printf {SECRET}" }}
"""
    code = """const order = await tools.shop.orders.get({ id: 1 });
const same = await tools.give({ value: order.echo });
console.log(order.echo, same);
emit(order);
await tools.send({ to: "ada", text: order.echo });"""
    async with listening, serving(tmp_path, str(OFFICE), settings=settings) as site:
        run = await site.waiting(code)
        page = await pages.signed_in(site, path="/approvals")
        shown = "Bearer •••(shop.key)"
        await expect(page.get_by_label("Arguments", exact=True)).to_contain_text(shown)
        await page.get_by_role("button", name="Approve y").click()
        await site.outcome(run)
        for call, part in ((1, "Result"), (2, "Arguments"), (3, "Arguments")):
            await page.goto(f"/runs/{run}?call={call}")
            values = page.get_by_role("region", name=f"Call {call}").locator(".call-values > div")
            await expect(values.filter(has_text=part)).to_contain_text(shown)
        for name in ("Logs", "Emitted"):
            await expect(page.get_by_role("region", name=name)).to_contain_text(shown)
        assert orders.seen == ["GET /orders/1"]  # with the credential: without it, there is no order
        assert SECRET not in await page.content()
        async with site.person("admin") as client:
            for what in ("", "/export"):
                assert SECRET not in (await client.get(f"/v1/runs/{run}{what}")).text
        await page.goto("/sources/shop")
        await expect(page.get_by_role("region", name="Source shop")).to_contain_text("from a command")
        assert SECRET not in await page.content()
        await page.close()  # before its server ends


async def test_an_error_stands_at_its_line(site: Site, pages: Pages) -> None:
    run = (await site.run(FAILS))["run"]
    page = await pages.signed_in(site, path=f"/runs/{run}?call=2")
    await expect(page.locator("[data-line].failed")).to_have_attribute("data-line", "2")
    await expect(page.locator("[data-line].failed")).to_contain_text("we are closed")
    await expect(page.get_by_label("Error")).to_contain_text("line 2")
    await expect(_call(page, 2).locator(".bar.failed")).to_have_count(1)
    await expect(page.get_by_role("region", name="Call 2")).to_contain_text("refused: we are closed")
    await expect(page).to_have_title(f"failed · {run[:8]} · Gloveport")


async def test_a_run_is_followed_while_the_connection_breaks_and_the_server_is_killed(pages: Pages, tmp_path: Path) -> None:
    code = """for (let i = 0; i < 4; i++) {
  await tools.give({ value: `part ${i}` });
  console.log(`line ${i}`);
  await tools.book({ room: `room ${i}` });
}"""
    async with serving(tmp_path, str(OFFICE), settings='[[rules]]\nallow = "office_tools.post"\n') as site:
        page = await pages.signed_in(site, "admin")
        posts = (await site.run("await tools.post({ letter: 'A' })", wait=False))["run"]
        run = await site.waiting(code)
        await page.goto(f"/runs/{run}")
        logs = page.get_by_role("region", name="Logs").locator("li")
        await expect(logs).to_have_count(1)
        await expect(_call(page, 2).locator(".bar.asking")).to_have_count(1)
        pages.allow("ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED|ERR_CONNECTION|ERR_INCOMPLETE|ERR_EMPTY|status of 401")
        await page.context.set_offline(True)
        await _approve(site)
        async with site.person() as client:
            await _until_asked(client, "room 1")
            await _until_started(client, posts)
        await page.context.set_offline(False)
        await expect(logs).to_have_count(2)
        await site.stop(signal.SIGKILL)
        await expect(page.get_by_text("Connection lost, trying again")).to_be_visible()
        await site.start()
        # Sessions end with their server: whoever looked signs in again, and finds the run as it was.
        await expect(page.get_by_role("heading", name="Sign in to Gloveport")).to_be_visible()
        await page.get_by_label("Or paste the link or its code").fill(site.link())
        await page.get_by_role("button", name="Sign in").click()
        await expect(logs).to_have_count(2)
        await page.get_by_role("link", name="Look and answer").click()
        await expect(page.get_by_text("The server that ran this has ended.")).to_be_visible()
        await page.get_by_role("button", name="Approve y").click()
        await page.goto(f"/runs/{run}")
        await page.get_by_role("region", name="Answered").get_by_role("button", name="Resume").click()
        await page.get_by_role("link", name="Look and answer").click()
        for room in ("room 2", "room 3"):
            await expect(page.get_by_label("Arguments", exact=True)).to_contain_text(room)
            await page.get_by_role("button", name="Approve y").click()
        await page.goto(f"/runs/{run}?call=2")
        await expect(logs).to_have_count(4)
        await expect(page.get_by_role("region", name="Result")).to_be_visible()
        # What was answered before the server was killed is still known, and the waiting is no time of the call.
        await expect(page.get_by_role("region", name="Call 2")).to_contain_text(f"Answered by {PERSON} after")
        await expect(_call(page, 2).locator(".bar.asking")).to_have_count(1)
        called = [one["tool"] for one in (await site.outcome(run))["calls"]]
        assert called == ["office_tools.give", "office_tools.book"] * 4
        # The write that was under way may have been made. It is not made again without an answer.
        await page.goto(f"/runs/{posts}?call=1")
        await expect(page.get_by_role("region", name="Call 1")).to_contain_text("unknown")
        await expect(_call(page, 1).locator(".bar.unknown")).to_have_count(1)
        await page.get_by_role("button", name="Resume").click()
        await page.get_by_role("link", name="Look and answer").click()
        await page.get_by_role("button", name="It has happened…").click()
        await page.get_by_label("What it returned").fill('{"answer": [7]}')
        await page.get_by_role("button", name="Go on with this").click()
        assert (await site.outcome(posts))["value"] == {"answer": [7]}


async def _approve(site: Site) -> None:
    async with site.person() as client:
        [one] = (await client.get("/v1/approvals")).json()["approvals"]
        await client.post("/v1/approvals/answer", json={"approve": True, "requests": {one["id"]: one["digest"]}})


async def _until_started(client: Any, run: str) -> None:
    async with asyncio.timeout(60):
        while True:
            if (await client.get("/v1/audit", params={"run": run, "kind": "call-started"})).json()["events"]:
                return
            await asyncio.sleep(0.05)


async def _until_asked(client: Any, text: str) -> None:
    async with asyncio.timeout(60):
        while True:
            if text in (await client.get("/v1/approvals")).text:
                return
            await asyncio.sleep(0.05)


async def test_calls_appear_as_they_happen_before_the_record_is_loaded_again(site: Site, pages: Pages) -> None:
    code = """await tools.book({ room: "one" });
await tools.give({ value: 1 });
await tools.refuse({}).catch(() => null);
await tools.book({ room: "two" });"""
    run = await site.waiting(code)
    page = await pages.signed_in(site, path=f"/runs/{run}")
    await expect(_call(page, 1).locator(".bar.asking")).to_have_count(1)
    await page.route(f"**/v1/runs/{run}", lambda route: asyncio.Event().wait())  # the record is never loaded again
    await _approve(site)
    for call, state in ((2, "ok"), (3, "failed"), (4, "queued")):
        await expect(_call(page, call)).to_contain_text(f"{state}: ")
    await page.unroute_all(behavior="ignoreErrors")
    await page.reload()
    await expect(_call(page, 4).locator(".bar.asking")).to_have_count(1)
    await _approve(site)


async def test_people_cancel_replay_save_export_and_undo_a_run(site: Site, pages: Pages, tmp_path: Path) -> None:
    page = await pages.signed_in(site)
    three = f"await Promise.all([1, 2, 3].map(() => {ENDLESS.removeprefix('await ')}))"
    endless = (await site.run(three, wait=False, limits={"max_concurrent_calls": 2}))["run"]
    await page.goto(f"/runs/{endless}")
    for call, state in ((1, "running"), (2, "running"), (3, "queued")):
        await expect(_call(page, call).locator(f".bar.{state}")).to_have_count(1)
    await page.get_by_role("button", name="Cancel").click()
    await page.get_by_role("button", name="Cancel the run").click()
    await expect(page.locator(".run-facts")).to_contain_text("cancelled")
    run = await site.waiting("await tools.book({room: 'blue'})")
    await _approve(site)
    await site.outcome(run)
    await page.goto(f"/runs/{run}")
    await page.get_by_role("button", name="Replay").click()
    await expect(page.get_by_text("nothing differs")).to_be_visible()
    await page.get_by_text("More", exact=True).click()
    async with page.expect_download() as downloading:
        await page.get_by_role("button", name="Export").click()
    download = await downloading.value
    assert download.suggested_filename == f"{run}.json"
    await download.save_as(tmp_path / "run.json")
    assert json.loads((tmp_path / "run.json").read_text())["run"] == run
    await page.get_by_text("More", exact=True).click()
    await page.get_by_role("button", name="Save as snippet").click()
    await page.get_by_label("Name").fill("book_blue")
    await page.get_by_label("What it does").fill("Books the blue room")
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("programs can call it as tools.snippets.book_blue")).to_be_visible()
    await page.get_by_text("More", exact=True).click()
    await page.get_by_role("button", name="Roll back…").click()
    await page.get_by_role("button", name="Undo its writes").click()
    async with site.person() as client:
        await _until_asked(client, "unbook")
    await _approve(site)
    await expect(page.get_by_role("dialog", name="All writes are undone")).to_contain_text("unbook")
    await page.goto(f"/runs/{run}")
    await page.get_by_role("button", name="Open in playground").click()
    await page.wait_for_url(f"**/playground?run={run}")


async def test_a_call_and_a_program_can_be_made_again_with_curl(site: Site, pages: Pages) -> None:
    code = 'await tools.give({ value: "it\'s $HOME" })'
    run = (await site.run(code))["run"]
    page = await pages.signed_in(site, path=f"/runs/{run}?call=1", permissions=["clipboard-read", "clipboard-write"])
    token = (site.home / ".local" / "share" / "gloveport" / "token").read_text().strip()
    await page.get_by_text("More", exact=True).click()
    call = page.get_by_role("region", name="Call 1")
    says = page.get_by_text("Copied. The token is a variable of your shell.")
    for where, shown in ((page.locator(".menu-items"), says), (call, call.get_by_role("button", name="Copied"))):
        await where.get_by_role("button", name="Copy as curl").click()
        await expect(shown).to_be_visible()
        command = await page.evaluate("navigator.clipboard.readText()")
        assert "$GLOVEPORT_TOKEN" in command
        made = await asyncio.create_subprocess_exec(
            "bash", "-c", command, env={"GLOVEPORT_TOKEN": token, "PATH": "/usr/bin:/bin"}, stdout=asyncio.subprocess.PIPE
        )
        out, _ = await made.communicate()
        assert json.loads(out)["value"] == "it's $HOME", command


async def test_an_hour_of_waiting_takes_little_room_on_the_axis(site: Site, pages: Pages) -> None:
    run = await site.waiting("await tools.slow({seconds: 0.2}); await tools.book({room: 'x'}); 1")
    page = await pages.opened(site)
    await page.clock.install()
    await page.goto(site.link())
    await page.wait_for_url("**/runs")
    await page.goto(f"/runs/{run}")
    await expect(_call(page, 2).locator(".bar.asking")).to_have_count(1)
    await page.clock.fast_forward("03:00:00")
    await expect(page.locator(".wait")).to_contain_text(re.compile(r"3 h|2 h 59"))
    wait, done, panel = [
        await page.locator(one).first.bounding_box() for one in (".wait", '[data-call="1"] .bar.ok', ".call-row .bars")
    ]
    assert wait
    assert done
    assert panel
    assert wait["width"] < panel["width"] / 5
    assert done["width"] > panel["width"] / 2
    await _approve(site)


async def _busy_seconds(session: CDPSession) -> float:
    found = await session.send("Performance.getMetrics")
    return next(metric["value"] for metric in found["metrics"] if metric["name"] == "TaskDuration")


async def test_a_thousand_calls_stay_smooth(site: Site, pages: Pages) -> None:
    many = "for (let i = 0; i < 20; i++) await Promise.all(Array.from({ length: 50 }, (_, k) => tools.give({ value: k })));"
    run = (await site.run(many))["run"]
    page = await pages.signed_in(site, path=f"/runs/{run}")
    await expect(page.get_by_role("heading", name="Calls 1,000")).to_be_visible()
    assert await page.locator(".call-row").count() < 60
    session = await page.context.new_cdp_session(page)
    await session.send("Performance.enable", {"timeDomain": "threadTicks"})  # a busy machine makes frames late, not dear
    before = await _busy_seconds(session)
    frames = await page.evaluate("""async () => {
      const scroller = document.querySelector(".calls-scroll");
      let frames = 0;
      for (; scroller.scrollTop < scroller.scrollHeight - scroller.clientHeight - 1; frames++) {
        scroller.scrollTop += 300;
        await new Promise(requestAnimationFrame);
      }
      return frames;
    }""")
    assert frames > 50
    assert (await _busy_seconds(session) - before) / frames * 1000 <= MAX_FRAME_CPU_MS
    await _call(page, 1000).click()
    await expect(page.get_by_role("region", name="Call 1000")).to_be_visible()
