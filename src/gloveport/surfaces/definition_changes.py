"""The tools whose definitions have changed since they were accepted, and accepting them as they are now (M4)."""

from __future__ import annotations

import difflib
import hashlib
from typing import Any

from gloveport.catalog import typescript_stubs
from gloveport.errors import OptionError
from gloveport.host.pinning import current_definition
from gloveport.host.port import Gloveport
from gloveport.large_values import off_loop
from gloveport.sources.pins import Pins, is_pinned
from gloveport.types import Tool


def changed_tools(port: Gloveport, source: str | None = None) -> list[dict[str, Any]]:
    """Return the suspended tools, each with the difference from its accepted definition."""
    entries = ((tool, port.catalog.entry(tool.address)) for tool in port.catalog.tools if source in (None, tool.source))
    return [{"tool": tool.address, "diff": _difference(port, tool)} for tool, entry in entries if entry and entry.suspended]


def _difference(port: Gloveport, tool: Tool) -> list[str]:
    """Return the difference between the accepted and the current declaration; all of the current one if the old is lost."""
    before, after = port.versions(tool.address)
    then = typescript_stubs.declaration([(tool.address, before)]).splitlines() if before else []
    now = typescript_stubs.declaration([(tool.address, after)]).splitlines() if after else []
    lines = [
        line for line in difflib.unified_diff(then, now, lineterm="", n=2) if not line.startswith(("---", "+++", "@@"))
    ]
    # A fingerprint covers more than the declaration: also where requests go, and what goes with them (D3).
    return lines or ["the address of its requests, their credentials, or a text too long to show has changed"]


def definition_digest(port: Gloveport, source: str) -> str:
    """Return a digest of the definition of a source as it is now; raise OptionError for one without a definition."""
    opened = port.opened_source(source)
    if opened is None or opened.config is None or not is_pinned(opened.config):
        raise _no_definition(source)
    definition = current_definition(opened)
    stated = "\n".join(
        [definition.digest, *(f"{address} {digest}" for address, digest in sorted(definition.tools.items()))]
    )
    return hashlib.sha256(stated.encode()).hexdigest()


async def accept_definition(port: Gloveport, source: str) -> None:
    """Accept the definition of a source as it is now; its tools are called again from the next program on."""
    opened = port.opened_source(source)
    if opened is None or (config := opened.config) is None:
        raise _no_definition(source)
    await off_loop(lambda: Pins.of_user().pin(config.pin_key, current_definition(opened)))
    await port.rebuild_catalog()


def _no_definition(source: str) -> OptionError:
    message, hint = f"the source {source} has no definition to accept", "`gloveport sources` lists the sources"
    return OptionError(message, code="not-found", hint=hint)
