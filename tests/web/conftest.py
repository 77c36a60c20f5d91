"""Fixtures for the tests of the pages: a browser, servers with the demo's tools, and clients with the cookie of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from gloveport import Gloveport, tool
from gloveport.policy.credentials import Secret
from gloveport.store.tokens import Role, TokenStore
from gloveport.surfaces.http.admission import Admission
from gloveport.surfaces.http.guard import ServerNames
from gloveport.surfaces.http.server import HttpServer, listen
from gloveport.surfaces.http.token import Caller, TokenCheck
from gloveport.surfaces.web.sessions import WebSessions
from tests.surfaces.agents import TOKEN, url_of
from tests.web.browser import DEMO, Pages, Site, running_browser, serving

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

SETTINGS = """
[agents.reader]
tools = ["demo_tools.list_customers"]

[[rules]]
allow = "local.*book"
"""


@tool(writes=True)
def refund(order: str, amount: float) -> str:
    """Give money back to a customer."""
    return f"refunded {amount} of {order}"


@tool(writes=True, undo="unbook(id = result)")
def book(room: str) -> str:
    """Book a room."""
    return f"booking-{room}"


@tool(writes=True)
def unbook(id: str) -> None:
    """End a booking."""


class WebServed:
    """A server of the pages, in the process of the tests."""

    def __init__(self, url: str, port: Gloveport, sessions: WebSessions, store: Path) -> None:
        self.url, self.port, self.sessions, self.store = url, port, sessions, store

    def client(self, **headers: str) -> httpx2.AsyncClient:
        """Return a client without a token."""
        return httpx2.AsyncClient(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def bearer(self, token: str) -> httpx2.AsyncClient:
        """Return a client with a token."""
        return self.client(Authorization=f"Bearer {token}")

    def add_token(self, name: str, role: Role) -> str:
        """Make a token."""
        with closing(TokenStore(self.store)) as tokens:
            return tokens.add(name, role)

    def remove_token(self, name: str, role: Role) -> None:
        """Remove a token."""
        with closing(TokenStore(self.store)) as tokens:
            tokens.remove(name, role)

    def code(self, role: Role = "admin", name: str = "ada") -> str:
        """Return a one-time code."""
        return self.sessions.new_code(Caller(name, role))[0]

    async def browser(self, role: Role = "admin", name: str = "ada", token: str | None = None) -> httpx2.AsyncClient:
        """Return a client that has signed in as a page does, with its cookie and its key."""
        given = f"Bearer {token}" if token else f"Link {self.code(role, name)}"
        async with self.client(Origin=self.url) as signing_in:
            reply = await signing_in.post("/v1/sign-in", json={}, headers={"Authorization": given})
        assert reply.status_code == 201, reply.text
        client = self.client(Origin=self.url, **{"X-Gloveport": reply.json()["key"]})
        client.cookies.update(reply.cookies)
        return client


@asynccontextmanager
async def web_serving(port: Gloveport, store: Path) -> AsyncIterator[WebServed]:
    """Yield a running server of a port."""
    listening = listen("127.0.0.1", 0, None)
    check = TokenCheck(Secret(TOKEN, "token"), store, port.agent)
    sessions = WebSessions(check)
    options: dict[str, Any] = {"sessions": sessions}
    server = HttpServer(port, ServerNames(), check, Admission(), 30, **options)
    serving = asyncio.create_task(server.serve(listening))
    try:
        yield WebServed(url_of(listening), port, sessions, store)
    finally:
        server.stop()
        server.stop()
        await serving


@pytest.fixture(scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WebServed]:
    folder = tmp_path_factory.mktemp("web")
    settings, store = folder / "gloveport.toml", folder / "store.sqlite"
    await asyncio.to_thread(settings.write_text, SETTINGS)
    port = Gloveport(tools=[refund, book, unbook], sources=[str(DEMO)], config=settings, store=store, spare=1)
    async with web_serving(port, store) as running:
        yield running


@pytest.fixture(scope="session")
async def browser(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Browser]:
    """One browser for all tests of a worker."""
    async with running_browser(tmp_path_factory.mktemp("browser")) as started:
        yield started


@pytest.fixture(scope="module")
async def site(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """`gloveport serve` with the demo's tools, one for each module."""
    async with serving(tmp_path_factory.mktemp("site")) as started:
        yield started


@pytest.fixture
async def pages(browser: Browser) -> AsyncIterator[Pages]:
    """What opens pages. The test fails if one of them reports an error."""
    opened = Pages(browser)
    yield opened
    await opened.close()


@pytest.fixture
async def signed_in_page(pages: Pages, site: Site) -> Page:
    """The runs of a server with the demo's tools, for an admin; `pages.signed_in(site, role)` opens it for others."""
    return await pages.signed_in(site)
