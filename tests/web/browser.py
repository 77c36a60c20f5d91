"""A real browser, and `gloveport serve` as a process of its own, for the tests of the pages."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch
from urllib.parse import urlsplit

import httpx2
import pytest

from gloveport.store.tokens import Role, TokenStore
from gloveport.surfaces.web.links import asked_link
from gloveport.surfaces.web.views import is_view
from tests.surfaces.command import COMMAND, DEADLINE, REPOSITORY, Finished, environment, gloveport, read_until
from tests.web.chromium import MISSING, chromium

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

DEMO = REPOSITORY / "examples" / "demo_tools.py"
OFFICE = Path(__file__).with_name("office_tools.py")
# Debian's chromium has no sandbox that works in every container; it opens the pages of our own server alone.
BROWSER_OPTIONS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking")
PERSON = "bo"
PATIENCE_MS = DEADLINE * 1000 / 2
WIDE, NARROW = {"width": 1280, "height": 800}, {"width": 360, "height": 740}


class Site:
    """`gloveport serve`, with a HOME of its own."""

    def __init__(self, home: Path, *args: str, settings: str = "") -> None:
        self.home, self.args, self.port = home, args, 0
        self._process: subprocess.Popen[bytes] | None = None
        self._tokens: dict[tuple[str, Role], str] = {}
        folder = home / ".config" / "gloveport"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "gloveport.toml").write_text(settings)

    @property
    def url(self) -> str:
        """The address of the pages."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Start the server, at the same port as before."""
        for role in ("approver", "admin"):
            self.token(PERSON, role)  # a server looks for new tokens once a second
        self._process = self._launched()
        assert self._process.stdout is not None
        shown = await asyncio.to_thread(read_until, self._process.stdout.fileno(), r"signs you in")
        found = re.search(r"pages are at http://127\.0\.0\.1:(\d+)", shown)
        assert found, shown
        self.port = int(found[1])

    def _launched(self) -> subprocess.Popen[bytes]:
        with (self.home / "serve.log").open("ab") as log:
            return subprocess.Popen(
                [*COMMAND, "serve", *self.args, "--port", str(self.port), "--grace", "0"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                env=environment(HOME=str(self.home)),
                cwd=self.home,
            )

    async def stop(self, how: signal.Signals = signal.SIGTERM) -> None:
        """End the server, or kill it."""
        if (process := self._process) is not None:
            process.send_signal(how)
            await asyncio.to_thread(process.wait, DEADLINE)
            assert process.stdout is not None
            process.stdout.close()
            self._process = None

    def link(self, role: Role = "admin", agent: str = "default") -> str:
        """Return a link that signs in once, as `gloveport open` prints it."""
        with patch.dict(os.environ, {"HOME": str(self.home)}), asked_link(role, agent, self.port) as (answer, _):
            return answer["url"]

    def token(self, name: str, role: Role) -> str:
        """Return the token of a name in a role; make it when it is first asked for."""
        if (name, role) not in self._tokens:
            path = self.home / ".local" / "share" / "gloveport" / "store.sqlite"
            with contextlib.closing(TokenStore(path)) as tokens:
                self._tokens[name, role] = tokens.add(name, role)
        return self._tokens[name, role]

    def client(self, token: str | None = None) -> httpx2.AsyncClient:
        """Return a client of the API, with a token: that of the server if no other is given, which is an agent's."""
        if token is None:
            token = (self.home / ".local" / "share" / "gloveport" / "token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=DEADLINE, trust_env=False)

    async def run(self, code: str, **more: Any) -> dict[str, Any]:
        """Run a program as an agent does, and return the outcome; with `wait=False`, of a run that goes on."""
        async with self.client() as client:
            reply = await client.post("/v1/runs", json={"code": code, **more})
        assert reply.status_code in (200, 202), reply.text
        return reply.json()

    def person(self, role: Role = "approver") -> httpx2.AsyncClient:
        """Return a client of the API with the token of a person."""
        return self.client(self.token(PERSON, role))

    async def waiting(self, code: str, calls: int = 1, **more: Any) -> str:
        """Start a program that asks, and return its run once so many of its calls wait."""
        run = (await self.run(code, wait=False, **more))["run"]
        async with asyncio.timeout(DEADLINE), self.person() as client:
            while True:
                found = (await client.get("/v1/approvals")).json()["approvals"]
                if sum(one["run"] == run for one in found) == calls:
                    return run
                await asyncio.sleep(0.05)

    async def outcome(self, run: str) -> dict[str, Any]:
        """Return the outcome of a run once it has ended."""
        async with asyncio.timeout(DEADLINE), self.person() as client:
            while True:
                found = (await client.get(f"/v1/runs/{run}")).json()
                if found["run"]["status"] not in ("running", "waiting"):
                    return found["outcome"]
                await asyncio.sleep(0.05)

    def command(self, *args: str) -> Finished:
        """Run another command of the same user."""
        return gloveport(*args, cwd=self.home, HOME=str(self.home))


@contextlib.asynccontextmanager
async def serving(home: Path, *args: str, settings: str = "") -> AsyncIterator[Site]:
    """Yield a running server; without arguments, of the demo's tools."""
    site = Site(home, *(args or (str(DEMO),)), settings=settings)
    try:
        await site.start()
        yield site
    finally:
        await site.stop()


@contextlib.asynccontextmanager
async def running_browser(home: Path) -> AsyncIterator[Browser]:
    """Yield a browser."""
    from playwright.async_api import async_playwright, expect

    path = chromium()
    if path is None:
        pytest.fail(MISSING)
    expect.set_options(timeout=PATIENCE_MS)
    async with async_playwright() as playwright:
        started = await playwright.chromium.launch(
            executable_path=path, args=list(BROWSER_OPTIONS), env={**os.environ, "HOME": str(home)}
        )
        try:
            yield started
        finally:
            await started.close()


class Pages:
    """The open pages of one test. They fail it if one logs an error, violates its policy, or asks for more than `/v1`."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._allowed: list[str] = []
        self._problems: list[str] = []
        self._closing = contextlib.AsyncExitStack()

    def allow(self, pattern: str) -> None:
        """Take it for granted that pages report what a pattern matches, such as a status that a test provokes."""
        self._allowed.append(pattern)

    async def signed_in(
        self, site: Site, role: Role = "admin", path: str = "/runs", agent: str = "default", **context: Any
    ) -> Page:
        """Open a page of somebody who has just signed in, in a browser profile of its own."""
        page = await self.opened(site, **context)
        await page.goto(site.link(role, agent))
        await page.wait_for_url("**/runs")
        if path != "/runs":
            await page.goto(path)
        return page

    async def opened(self, site: Site, **context: Any) -> Page:
        """Open an empty page of somebody who has not signed in. Options are those of Playwright's contexts."""
        given = {"base_url": site.url, "viewport": WIDE, "color_scheme": "light", "locale": "en-GB", **context}
        opened = await self._browser.new_context(**given)
        self._closing.push_async_callback(opened.close)
        opened.set_default_timeout(PATIENCE_MS)
        opened.on("page", lambda page: self._watch(page, site))
        return await opened.new_page()

    def _watch(self, page: Page, site: Site) -> None:
        def on_request(url: str) -> None:
            if url.startswith(("data:", "blob:")):
                return
            parts = urlsplit(url)
            path = parts.path
            known = is_view(path) or path.startswith(("/v1/", "/assets/")) or path in ("/favicon.svg", "/metrics")
            if f"{parts.scheme}://{parts.netloc}" != site.url or not known:
                self._problems.append(f"a request to {url}")

        page.on("request", lambda request: on_request(request.url))
        page.on("pageerror", lambda error: self._problems.append(f"an exception: {error}"))
        page.on(
            "console",
            lambda line: self._problems.append(f"{line.type}: {line.text}") if line.type in ("error", "warning") else None,
        )

    async def close(self) -> None:
        """Close the pages, and fail if they reported anything that is not taken for granted."""
        await self._closing.aclose()
        found = [one for one in self._problems if not any(re.search(pattern, one) for pattern in self._allowed)]
        assert not found, "\n".join(found)
