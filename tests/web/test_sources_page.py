"""The page of sources, in a real browser: adding, removing, refreshing, signing in, and connecting clients."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from playwright.async_api import expect

from tests.policy.oauth_server import OAuthServer, authorizing
from tests.surfaces.command import REPOSITORY
from tests.surfaces.test_auth_command import definition
from tests.web.accessibility import serious_findings
from tests.web.browser import NARROW, Pages, Site, serving

pytestmark = pytest.mark.integration
SHOP = str(REPOSITORY / "examples" / "shop.json")
SERVER = """
import pathlib, sys
pathlib.Path(sys.argv[1]).write_text("started")
from mcp.server.mcpserver import MCPServer
mcp = MCPServer("notes")
@mcp.tool()
def take(text: str) -> str:
    return text
mcp.run()
"""


@asynccontextmanager
async def opened(home: Path, settings: str = "") -> AsyncIterator[Site]:
    """Yield a server of the demo's tools, whose settings the test may change."""
    async with serving(home, settings=settings) as site:
        yield site


async def _settings(site: Site) -> str:
    return await asyncio.to_thread((site.home / ".config" / "gloveport" / "gloveport.toml").read_text)


async def test_a_source_is_pasted_looked_at_added_called_and_removed(pages: Pages, tmp_path: Path) -> None:
    async with opened(tmp_path, "# mine\n") as site:
        page = await pages.signed_in(site, path="/sources")
        await page.get_by_role("textbox", name="Add a source").fill(SHOP)
        await page.keyboard.press("Enter")
        preview = page.get_by_role("region", name="What would be added")
        await expect(preview).to_contain_text("4 tools: 2 read, 2 write, and ask a person first.")
        await expect(preview.get_by_label("The change of the settings")).to_contain_text("+[sources.shop]")
        await expect(preview).to_contain_text("gloveport auth add shop")
        assert await _settings(site) == "# mine\n"
        await preview.get_by_role("button", name="Add it").click()
        await expect(page.get_by_text("shop is added.")).to_be_visible()
        await page.wait_for_url("**/sources/shop")
        source = page.get_by_role("region", name="Source shop")
        await expect(source).to_contain_text("open")
        await expect(source).to_contain_text("missing")
        assert "[sources.shop]" in await _settings(site)
        # A program of an agent has its tools at once.
        ran = await site.run("(await tools.search('orders', {source: 'shop'})).length")
        assert ran["value"] > 0
        await source.get_by_role("link", name="4 tools").click()
        await expect(page.get_by_role("navigation", name="All tools")).to_contain_text("4 tools")
        await page.get_by_role("button", name="orders").click()
        await expect(page.get_by_role("link", name="create", exact=True)).to_be_visible()
        await page.goto("/sources/shop")
        await source.get_by_role("button", name="Remove…").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_label("The change")).to_contain_text("-[sources.shop]")
        await dialog.get_by_role("button", name="Remove it").click()
        await expect(page.get_by_text("shop is removed.")).to_be_visible()
        await expect(source).to_have_count(0)
        assert (await _settings(site)).strip() == "# mine"
        await page.close()


async def test_a_command_is_shown_word_by_word_before_it_starts(pages: Pages, tmp_path: Path) -> None:
    script, canary = tmp_path / "server.py", tmp_path / "canary"
    await asyncio.to_thread(script.write_text, SERVER)
    async with opened(tmp_path) as site:
        page = await pages.signed_in(site, path="/sources")
        await page.get_by_role("textbox", name="Add a source").fill(f"{sys.executable} {script} {canary} 'two words'")
        await page.get_by_text("Options").click()
        await page.get_by_role("textbox", name="Name").fill("notes")
        await page.get_by_role("button", name="Look at it").click()
        words = page.get_by_label("The words of the command").get_by_role("listitem")
        await expect(words).to_have_text([sys.executable, str(script), str(canary), "two words"])
        await expect(page.get_by_text("Nothing has run so far.")).to_be_visible()
        assert not await asyncio.to_thread(canary.exists)
        await page.get_by_role("button", name="Start it to see what it offers").click()
        preview = page.get_by_role("region", name="What would be added")
        await expect(preview).to_contain_text("notes.take")
        assert await asyncio.to_thread(canary.exists)
        assert "notes" not in await _settings(site)
        await preview.get_by_role("button", name="Add it").click()
        await expect(page.get_by_role("region", name="Source notes")).to_contain_text("open")
        await page.close()


async def test_other_words_in_the_field_are_looked_at_anew(pages: Pages, tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        page = await pages.signed_in(site, path="/sources")
        field = page.get_by_role("textbox", name="Add a source")
        await field.fill(SHOP)
        await field.press("Enter")
        await expect(page.get_by_role("button", name="Add it")).to_be_visible()
        await field.fill(f"{SHOP}x")
        await expect(page.get_by_role("button", name="Add it")).to_have_count(0)
        pages.allow("status of 404")
        await field.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("there is no file")
        await page.close()


async def test_a_private_address_is_refused_without_its_option(pages: Pages, tmp_path: Path) -> None:
    pages.allow("502")
    async with opened(tmp_path) as site:
        page = await pages.signed_in(site, path="/sources")
        await page.get_by_role("textbox", name="Add a source").fill(f"{site.url}/openapi.json")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("alert")).to_contain_text("allow_private")
        await page.close()


def allow_sign_in(pages: Pages, server: OAuthServer) -> None:
    """Expect the pages of a sign-in."""
    pages.allow(f"a request to {server.origin}/authorize|a request to http://127.0.0.1:[0-9]+/callback")


async def _told_to_agents(site: Site) -> str:
    """Return what an MCP client reads when a call needs a sign-in."""
    async with site.client() as http:
        async with Client(streamable_http_client(f"{site.url}/mcp", http_client=http), mode="auto") as client:
            failed = await client.call_tool("execute", {"code": "await tools.it.x({})"})
    assert failed.structured_content is not None and failed.structured_content["error"]["code"] == "auth-required"
    return failed.structured_content["error"]["hint"]


async def _signs_in(pages: Pages, site: Site, server: OAuthServer) -> None:
    allow_sign_in(pages, server)
    page = await pages.signed_in(site, path="/runs")
    failed = await site.run("await tools.it.x({})")
    assert failed["error"]["code"] == "auth-required"
    await page.goto(f"/runs/{failed['run']}")
    error = page.get_by_role("alert")
    await expect(error).to_contain_text("gloveport auth login it")
    await error.get_by_role("link", name="Sign in to it").click()
    source = page.get_by_role("region", name="Source it")
    await expect(source).to_contain_text("sign-in needed")
    await expect(source).to_contain_text("gloveport auth login it")
    told = await _told_to_agents(site)
    assert told.startswith(f"Ask the user to sign in at {page.url}, or to run `gloveport auth login it`")
    await source.get_by_role("button", name="Sign in…").click()
    await expect(source).to_contain_text(f"it signs in at {server.origin} (tokens come from {server.origin}).")
    assert server.registered == []
    await source.get_by_role("button", name="Go on").click()
    # The page of the server answers with a redirect to the loopback address, which the browser follows.
    async with page.context.expect_page() as opening:
        await source.get_by_role("link", name="Open the sign-in page").click()
    other = await opening.value
    await expect(other.locator("body")).to_contain_text("You are signed in")
    assert await other.evaluate("[window.opener, document.referrer]") == [None, ""]
    await expect(source.get_by_text("You are signed in.")).to_be_visible()
    await expect(source.get_by_label("Credentials")).to_contain_text("set")
    await expect(source.get_by_label("Credentials")).to_contain_text(server.origin)
    assert "canary" not in await page.content()
    await page.close()


async def test_a_person_signs_in_from_a_run_that_needed_it(pages: Pages, tmp_path: Path) -> None:
    """The same page is offered by the run and to its agent over MCP."""
    async with authorizing() as server:
        settings = f'[sources.it]\nmcp = "{server.origin}/mcp"\nallow_private = true\n'
        async with opened(tmp_path, settings) as site:
            await _signs_in(pages, site, server)


async def test_a_person_signs_in_where_only_a_definition_names_the_server(pages: Pages, tmp_path: Path) -> None:
    async with authorizing() as server:
        server.described = server.challenge = False
        allow_sign_in(pages, server)
        file = tmp_path / "it.json"
        text = definition(server.origin, f"{server.origin}/authorize", f"{server.origin}/token")
        await asyncio.to_thread(file.write_text, text)
        async with opened(tmp_path, f'[sources.it]\nopenapi = "{file}"\nallow_private = true\n') as site:
            page = await pages.signed_in(site, path="/sources/it")
            source = page.get_by_role("region", name="Source it")
            for client in ("", "me"):
                await source.get_by_role("button", name=re.compile("^(Sign in|Try again)")).click()
                named = f"the definition of it alone names the page {server.origin}/authorize, and tokens from"
                await expect(source).to_contain_text(named)
                await source.get_by_role("textbox", name="Client id").fill(client)
                await source.get_by_role("button", name="Go on").click()
                if not client:
                    await expect(source.get_by_role("alert")).to_contain_text("registers no clients by itself")
            async with page.context.expect_page() as opening:
                await source.get_by_role("link", name="Open the sign-in page").click()
            await expect((await opening.value).locator("body")).to_contain_text("You are signed in")
            await expect(source.get_by_text("You are signed in.")).to_be_visible()
            called = await asyncio.to_thread(site.command, "tools", "call", "it.mcp.hello")
            assert (called.code, "canary" in called.out + called.err) == (0, False), called.err
            await page.close()


async def test_a_broken_source_says_why_and_is_opened_again(pages: Pages, tmp_path: Path) -> None:
    definition = tmp_path / "later.json"
    async with opened(tmp_path, f'[sources.later]\nopenapi = "{definition}"\n') as site:
        page = await pages.signed_in(site, path="/sources")
        source = page.get_by_role("region", name="Source later")
        await expect(source).to_contain_text("can't be used")
        await expect(source).to_contain_text("does not exist")
        await source.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_text("later could not be opened again.")).to_be_visible()
        await asyncio.to_thread(definition.write_text, await asyncio.to_thread(Path(SHOP).read_text))
        await source.get_by_role("button", name="Refresh").click()
        await expect(page.get_by_text("later was opened again: 4 tools.")).to_be_visible()
        await expect(source.locator(".badge").first).to_contain_text("open")
        await page.close()


async def test_clients_get_the_text_that_the_command_line_prints(pages: Pages, tmp_path: Path) -> None:
    async with opened(tmp_path) as site:
        page = await pages.signed_in(site, path="/sources?view=clients")
        for name, title in (
            ("claude-code", "Claude Code"),
            ("vscode", "VS Code"),
            ("codex", "Codex"),
            ("gemini", "Gemini CLI"),
        ):
            await page.get_by_role("tab", name=title).click()
            shown = await page.get_by_label("The configuration").inner_text()
            printed = await asyncio.to_thread(site.command, "connect", name, "--url", f"{site.url}/mcp", "--print")
            assert shown.strip() == printed.out.strip(), name
            token = await asyncio.to_thread((tmp_path / ".local" / "share" / "gloveport" / "token").read_text)
            assert token.strip() not in await page.content()
        await page.get_by_role("tab", name="Zed").click()
        await expect(page.get_by_role("tabpanel")).to_contain_text("can't read a token from a variable")
        await page.get_by_role("button", name="Starts its own").click()
        shown = json.loads(await page.get_by_label("The configuration").inner_text())
        assert shown["context_servers"]["gloveport"]["args"] == ["mcp"]
        await page.close()


@pytest.mark.parametrize("role", ["agent", "approver"])
async def test_only_an_admin_can_change_something(pages: Pages, tmp_path: Path, role: str) -> None:
    async with opened(tmp_path, f'[sources.shop]\nopenapi = "{SHOP}"\n') as site:
        page = await pages.signed_in(site, role, "/sources")
        source = page.get_by_role("region", name="Source shop")
        await expect(source).to_contain_text("4 tools")
        assert await page.get_by_role("button", name=re.compile("Refresh|Remove|Sign in|Look at it")).count() == 0
        assert (await source.get_by_label("Credentials").count() == 0) == (role == "agent")
        await page.close()


async def test_hostile_words_and_names_are_inert(pages: Pages, tmp_path: Path) -> None:
    words = f"{sys.executable} -c '\u202e<img src=x onerror=alert(1)>' '{'x' * 3000}'"
    async with opened(tmp_path) as site:
        page = await pages.signed_in(site, path="/sources", viewport=NARROW)
        await page.get_by_role("textbox", name="Add a source").fill(words)
        await page.get_by_text("Options").click()
        await page.get_by_role("textbox", name="Name").fill("evil")
        await page.get_by_role("button", name="Look at it").click()
        shown = page.get_by_label("The words of the command")
        await expect(shown).to_contain_text("U+202E<img src=x onerror=alert(1)>")
        await expect(shown).to_contain_text("x" * 3000)
        assert await page.locator("main img").count() == 0
        assert await page.evaluate("document.documentElement.scrollWidth") <= NARROW["width"]
        await page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_axe_finds_nothing_serious(pages: Pages, tmp_path: Path, scheme: str) -> None:
    async with opened(
        tmp_path, f'[sources.gone]\nopenapi = "{tmp_path}/gone.json"\n[sources.shop]\nopenapi = "{SHOP}"\n'
    ) as site:
        page = await pages.signed_in(site, color_scheme=scheme, bypass_csp=True)
        for path, text in (("/sources/gone", "does not exist"), ("/sources?view=clients", "GLOVEPORT_TOKEN")):
            await page.goto(path)
            await expect(page.locator("main")).to_contain_text(text)
            assert await serious_findings(page) == []
        await page.close()
