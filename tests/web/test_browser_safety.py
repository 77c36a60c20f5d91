"""What a hostile program, tool or site could do to the pages, whom the pages leave out, and what they cost."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from gloveport.surfaces.web.pages import FOLDER
from tests.surfaces.command import REPOSITORY
from tests.web.browser import DEMO, NARROW, OFFICE, Pages, Site, serving

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Page

pytestmark = pytest.mark.integration
AXE = REPOSITORY / "web" / "node_modules" / "axe-core" / "axe.min.js"
SCREENS = ("/runs", "/approvals", "/approvals?view=plans", "/approvals?view=standing", "/tools", "/sources", "/playground")
SCREENS += ("/policies", "/agents", "/audit")
MAX_FIRST_PAINT_MS, MAX_GZIPPED_BYTES = 500, 500_000
HOSTILE = (
    "<script>window.pwned = 1</script><img src=x onerror='window.pwned = 2'><svg onload='window.pwned = 3'>"
    "<iframe srcdoc='<script>parent.pwned = 4</script>'></iframe><a href='javascript:window.pwned = 5'>click</a>"
    "{{constructor.constructor('window.pwned = 6')()}} \"'><style>body{display:none}</style>"
    "\u001b[31mred\u001b]8;;http://evil\u0007link\u001b[2J \u202egnp.exe\u202c \u2066x\u2069 \u200bhidden\u0000 "
)
LONG = HOSTILE + "W" * 100_000
FOUND = """() => ({
  pwned: window.pwned ?? null,
  scripts: [...document.scripts].filter((one) => !one.src.startsWith(location.origin + "/assets/")).length,
  strangers: document.querySelectorAll("iframe, object, embed, img, base, style:not([nonce])").length,
  handlers: [...document.querySelectorAll("*")].flatMap((one) => one.getAttributeNames().filter((name) => name.startsWith("on"))).length,
  links: [...document.querySelectorAll("[href]")].filter((one) => !["http:", "https:"].includes(new URL(one.href, location).protocol)).length,
  invisible: (document.body.innerText.match(/[\\u0000-\\u0008\\u001b\\u0007\\u200b\\u202a-\\u202e\\u2066-\\u2069]/g) ?? []).length,
  wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  title: /[\\u001b\\u202e]/.test(document.title),
})"""
FIRST_PAINT = """() => new Promise((resolve) => new PerformanceObserver((list) => {
  for (const entry of list.getEntriesByName("first-contentful-paint")) resolve(entry.startTime);
}).observe({ type: "paint", buffered: true }))"""
INERT = {"pwned": None, "scripts": 0, "strangers": 0, "handlers": 0, "links": 0, "invisible": 0, "wide": 0, "title": False}


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    async with serving(tmp_path_factory.mktemp("site"), str(DEMO), str(OFFICE)) as started:
        yield started


@pytest.fixture(scope="module")
async def runs(site: Site) -> dict[str, str]:
    """Runs in which everything that a program or a tool can say is hostile, and one of each kind."""
    text, long = json.dumps(HOSTILE), json.dumps(LONG)
    code = f"""// {HOSTILE.translate({0: None, 27: None, 7: None})}
const text = {text};
console.log(text); console.error({{ [text]: text }});
emit({{ [text]: [text] }});
await step(text.slice(0, 200), () => tools.give({{ value: {{ [text]: text }} }}));
await tools.give({{ value: {long} }});
await tools.refuse({{ message: text }}).catch((error) => console.warn(error.message));
"""
    failed = await site.run(f"{code}\nawait tools.refuse({{ message: {long} }});")
    assert failed["error"]["code"] == "refused", failed["error"]
    thrown = await site.run(f"throw new Error({long})")
    gave = await site.run(f"({{ [{text}]: {long} }})")
    asks = f"await tools.send({{ to: {text}, text: {json.dumps(LONG[:20_000])} }})"
    planned = await site.run(asks, mode="plan")
    waits = await site.waiting(asks)
    return {
        one: found["run"] for one, found in {"failed": failed, "thrown": thrown, "gave": gave, "planned": planned}.items()
    } | {"waits": waits}


async def test_nothing_that_programs_and_tools_say_becomes_more_than_text(
    site: Site, runs: dict[str, str], pages: Pages
) -> None:
    for options in ({}, {"viewport": NARROW}):
        page = await pages.signed_in(site, **options)
        for path in ("/runs", *(f"/runs/{run}?call=1" for run in runs.values()), *SCREENS[1:]):
            await page.goto(path)
            await _settled(page, path)
            for label in ("Cause", "Approve all", "More"):
                if await (found := page.get_by_text(label, exact=True)).count():
                    await found.first.click()
            assert await page.evaluate(FOUND) == INERT, path


async def test_hostile_text_is_shown_with_its_invisible_characters(site: Site, runs: dict[str, str], pages: Pages) -> None:
    page = await pages.signed_in(site, path=f"/runs/{runs['failed']}")
    logs = page.get_by_role("region", name="Logs")
    await expect(logs.locator(".mark", has_text="U+202E").first).to_be_visible()
    await expect(logs.locator(".mark", has_text="U+001B").first).to_be_visible()
    await expect(logs).to_contain_text("<script>window.pwned = 1</script>")


async def _settled(page: Page, path: str) -> None:
    await expect(page.locator("h1")).to_be_visible()
    await expect(page.locator(".loading")).to_have_count(0)
    if path.startswith("/runs/"):
        await expect(page.locator(".run-facts")).to_be_visible()
        await expect(page.locator("ol.code [class]").first).to_be_visible()


async def test_scripts_of_others_do_not_run(site: Site, pages: Pages) -> None:
    page = await pages.signed_in(site)
    pages.allow("Content Security Policy|TrustedHTML|Trusted")
    tried = """async () => {
      const inline = document.createElement("script");
      try { inline.textContent = "window.pwned = 1"; document.head.append(inline); } catch {}
      const image = document.createElement("button");
      try { image.setAttribute("onclick", "window.pwned = 2"); document.body.append(image); image.click(); } catch {}
      try { document.body.innerHTML = "<p>x</p>"; window.pwned = 3; } catch {}
      const sent = await fetch("https://127.0.0.1:9/").then(() => "sent", () => "refused");
      return [window.pwned ?? null, sent];
    }"""
    assert await page.evaluate(tried) == [None, "refused"]


async def test_no_other_site_frames_the_pages_or_sends_with_their_session(site: Site, pages: Pages) -> None:
    run = await site.waiting("await tools.send({to: 'x', text: 'y'})")
    page = await pages.signed_in(site)
    async with site.person() as client:
        [asked] = [one for one in (await client.get("/v1/approvals")).json()["approvals"] if one["run"] == run]
    answer = json.dumps({"approve": True, "requests": {asked["id"]: asked["digest"]}})
    evil = f"""<iframe src="{site.url}/approvals"></iframe>
      <form method="post" enctype="text/plain" action="{site.url}/v1/approvals/answer" target="hole"><input name='{answer}'></form>
      <iframe name="hole"></iframe>"""
    pages.allow("127.0.0.1|frame|status of|CORS|ERR_FAILED")
    # Another port of the same host is another origin, and gets the cookies of this one.
    await page.context.route("http://127.0.0.1:9/", lambda route: route.fulfill(body=evil, content_type="text/html"))
    await page.goto("http://127.0.0.1:9/")
    send = f"""async () => {{
      document.forms[0].submit();
      const statuses = [];
      for (const type of ["text/plain", "application/json"])
        statuses.push(await fetch("{site.url}/v1/approvals/answer", {{method: "POST", credentials: "include",
          headers: {{"Content-Type": type, "X-Gloveport": "1"}}, body: {json.dumps(answer)}}}).then((one) => one.status, () => "refused"));
      statuses.push(await fetch("{site.url}/v1/runs", {{credentials: "include"}}).then((one) => one.status, () => "refused"));
      return statuses;
    }}"""
    assert await page.evaluate(send) == ["refused"] * 3
    framed = page.frames[1]
    assert await framed.locator("nav").count() == 0
    async with site.person() as client:
        found = (await client.get(f"/v1/approvals/{asked['id']}")).json()["approval"]
        assert found["state"] == "waiting"
        await client.post("/v1/approvals/answer", json={"approve": False, "requests": {asked["id"]: asked["digest"]}})


async def test_axe_finds_nothing_serious_on_any_screen(site: Site, runs: dict[str, str], pages: Pages) -> None:
    source = await asyncio.to_thread(AXE.read_text)
    found: dict[str, Any] = {}
    for scheme, viewport in (("light", None), ("dark", None), ("light", NARROW)):
        options: dict[str, Any] = {"color_scheme": scheme, "bypass_csp": True} | (
            {"viewport": viewport} if viewport else {}
        )
        page = await pages.signed_in(site, **options)
        for path in (
            *SCREENS,
            f"/runs/{runs['failed']}?call=1",
            f"/runs/{runs['waits']}",
            f"/runs/{runs['planned']}",
            "/sign-in",
        ):
            await page.goto(path)
            await _settled(page, path)
            await page.evaluate(source)
            result = await page.evaluate("axe.run({resultTypes: ['violations']})")
            for one in result["violations"]:
                if one["impact"] in ("serious", "critical"):
                    targets = [(node["target"], node["failureSummary"][-160:]) for node in one["nodes"][:3]]
                    found[f"{scheme} {viewport and 'narrow'} {path} {one['id']}"] = targets
    assert not found, json.dumps(found, indent=1)


async def test_the_first_paint_comes_at_once(site: Site, pages: Pages) -> None:
    page = await pages.signed_in(site)
    times: list[float] = []
    for _ in range(5):
        await page.goto("/runs")
        await expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
        times.append(await page.evaluate(FIRST_PAINT))
    assert min(times) <= MAX_FIRST_PAINT_MS, times  # the best of five: what a busy machine adds is not the page's


def test_all_pages_together_are_small() -> None:
    sizes = {path.name: path.stat().st_size for path in Path(FOLDER).rglob("*.gz")}
    assert len(sizes) > 5
    assert sum(sizes.values()) <= MAX_GZIPPED_BYTES, sizes
