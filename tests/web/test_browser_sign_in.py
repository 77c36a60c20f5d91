"""Signing in and out with a real browser, and what each role sees then."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

if TYPE_CHECKING:
    from playwright.async_api import Page

pytestmark = pytest.mark.integration


async def test_a_link_signs_in_and_shows_the_runs(signed_in_page: Page) -> None:
    await expect(signed_in_page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
    assert "#" not in signed_in_page.url
