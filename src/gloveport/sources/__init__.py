"""Where a call goes. A source is a name, its tools, a way to call them, a way to close it; only the bridge calls it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from gloveport.types import Page, Tool

__all__ = ["Paged", "Source"]


class Source(Protocol):
    """Something that has tools. `call` gets arguments that fit the tool's schema and that nobody else holds."""

    @property
    def name(self) -> str:
        """The first part of the address of each of its tools."""
        ...

    def tools(self) -> Sequence[Tool]:
        """Its tools, in the order to list them."""
        ...

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """What the tool answered; any exception is a failed call."""
        ...

    async def close(self) -> None:
        """Lets go of what it holds; calling it twice is no error."""
        ...


class Paged(Protocol):
    """A source that can go through an answer page by page."""

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        """The first page (no cursor), or the one that the cursor of the page before names."""
        ...
