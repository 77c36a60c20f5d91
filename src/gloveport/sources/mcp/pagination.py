"""The pages of a server's list → all its items, within bounds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import mcp_types as mcp

MAX_LIST_ITEMS = 10_000
MAX_LIST_PAGES = 1_000

ItemT = TypeVar("ItemT")
PageT = TypeVar("PageT", bound=mcp.PaginatedResult)


async def all_pages(
    fetch: Callable[[mcp.PaginatedRequestParams], Awaitable[PageT]],
    items: Callable[[PageT], list[ItemT]],
    size: Callable[[PageT, list[ItemT]], int],
    max_bytes: int,
    warn: Callable[[str], None],
) -> list[ItemT]:
    """Return the items of all pages of a list, up to bounds that no honest server reaches. `size` is that of a page."""
    found: list[ItemT] = []
    cursor: str | None = None
    seen: set[str] = set()
    for _ in range(MAX_LIST_PAGES):
        page = await fetch(mcp.PaginatedRequestParams(cursor=cursor))
        new = items(page)
        found += new
        max_bytes -= size(page, new)
        cursor = page.next_cursor
        if cursor is None:
            return found
        if cursor in seen:
            warn("the list repeats a cursor; the items before it are used")
            return found
        seen.add(cursor)
        if len(found) > MAX_LIST_ITEMS or max_bytes < 0:
            break
    warn(f"the list is too long; its first {min(len(found), MAX_LIST_ITEMS):,} items are used")
    return found[:MAX_LIST_ITEMS]


def json_size(page: mcp.PaginatedResult, _: object) -> int:
    """Return the size of a page as JSON."""
    return len(page.model_dump_json())
