"""What axe finds on a page: texts that are too pale, controls without a name, and the like."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tests.surfaces.command import REPOSITORY

if TYPE_CHECKING:
    from playwright.async_api import Page

AXE = REPOSITORY / "web" / "node_modules" / "axe-core" / "axe.min.js"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]


async def serious_findings(page: Page) -> list[str]:
    """Return what axe finds serious or critical in the page as it is now."""
    await page.evaluate(await asyncio.to_thread(AXE.read_text, encoding="utf-8"))
    options = {"runOnly": RULES, "resultTypes": ["violations"]}
    found = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {one['help']} — {node['html'][:160]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


async def overflow(page: Page) -> int:
    """Return by how many pixels the page is wider than its window."""
    return await page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
