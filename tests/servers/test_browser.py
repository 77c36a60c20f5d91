"""`@playwright/mcp` with a real Chromium: a form is filled in and sent, and nothing of the browser is left."""

import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest

from gloveport.errors import ToolError
from tests.conftest import children_of
from tests.servers.support import CHROMIUM, npm
from tests.sources.mcp.support import call, eventually, lives, on_stdio, opened, served

FORM = b"""<!doctype html><title>Sign up</title>
<form method=post><label>Name <input name=name></label><button>Send</button></form>"""
SENT: list[dict[str, list[str]]] = []


async def page(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] != "http":
        return
    if scope["method"] == "POST":
        SENT.append(parse_qs((await receive())["body"].decode()))
    body = b"<title>Thanks</title>Thank you" if scope["method"] == "POST" else FORM
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": body})


def target(snapshot: str, what: str) -> str:
    """The reference of an element, from the page's accessibility tree."""
    found = re.search(rf"{what}.*?\[ref=(\w+)\]", snapshot)
    assert found, snapshot
    return found[1]


async def test_a_form_is_filled_in_and_sent(tmp_path: Path) -> None:
    before = children_of(os.getpid())
    options = ("--headless", "--no-sandbox", "--isolated", "--executable-path", CHROMIUM, "--output-dir", str(tmp_path))
    async with served(page) as url, opened(on_stdio(*npm("playwright-mcp", *options))) as source:
        await call(source, "browser_navigate", url=url)
        snapshot = str(await call(source, "browser_snapshot"))
        await call(source, "browser_type", element="name", target=target(snapshot, "textbox"), text="Ada")
        await call(source, "browser_click", element="send", target=target(snapshot, "button"))
        assert "Thank you" in str(await call(source, "browser_snapshot"))
        assert SENT == [{"name": ["Ada"]}]
        shot = await call(source, "browser_take_screenshot")
        images = [each for each in shot if isinstance(each, dict) and each.get("type") == "image"]
        assert images[0]["data"][:4] == b"\x89PNG"
        started = children_of(os.getpid()) - before
        with pytest.raises(ToolError):
            await call(source, "browser_click", element="nothing", target="e9999")
        assert "Thanks" in str(await call(source, "browser_evaluate", function="() => document.title"))
    assert len(started) > 3  # Node, and the processes of a browser
    await eventually(lambda: not any(map(lives, started)))
