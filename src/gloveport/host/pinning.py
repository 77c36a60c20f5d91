"""Suspends tools whose definition has changed since it was accepted, and shows them as they were accepted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import msgspec

from gloveport.catalog.fingerprint import fingerprint
from gloveport.config import SourceConfig
from gloveport.sources import OpenedSource
from gloveport.sources.mcp.tool_rows import fingerprint as mcp_fingerprint
from gloveport.sources.pins import PinnedDefinition, Pins, definition_text, is_pinned
from gloveport.types import Tool


def suspended_tools(opened: OpenedSource) -> Mapping[str, str]:
    """Return the tools that must not be called for now, each with the reason; pin a source that is seen first."""
    config = opened.config
    if config is None or not is_pinned(config):
        return {}
    pins, key = Pins.of_user(), config.pin_key
    _follow_annotations(pins, key, opened, config)
    writing = frozenset(tool.address for tool in opened.source.tools() if tool.writes)
    changed = pins.changed_tools(key, current_definition(opened), writing)
    pinned = pins.find(key)
    known = pinned.tools if pinned else {}
    return {
        address: f"the definition of `tools.{address}` has changed since it was accepted"
        if address in known
        else f"`tools.{address}` writes, and is new since the definition was accepted"
        for address in changed
    }


def _follow_annotations(pins: Pins, key: str, opened: OpenedSource, config: SourceConfig) -> None:
    """Accept what the user's own change of `trust_annotations` changed: whether a tool counts as a read, and nothing else.

    A server that changes its annotations later changes the fingerprint, and its tool is suspended.
    """
    pinned = pins.find(key)
    if config.kind != "mcp" or pinned is None or pinned.trusts_annotations == config.trust_annotations:
        return
    prints = dict(pinned.tools)
    for tool in opened.source.tools():
        if prints.get(tool.address) == mcp_fingerprint(replace(tool, writes=not tool.writes)):
            prints[tool.address] = mcp_fingerprint(tool)
    pins.pin(key, replace(pinned, tools=prints, trusts_annotations=config.trust_annotations))


def pinned_tool(opened: OpenedSource, address: str) -> Tool | None:
    """Return a tool as it was accepted; None where that is not known."""
    pinned = Pins.of_user().find(opened.config.pin_key) if opened.config else None
    return _accepted(opened, pinned, address)


def shown_while_suspended(opened: OpenedSource, addresses: Collection[str]) -> dict[str, Tool]:
    """Return what agents see of suspended tools: the accepted definitions, never the present ones (M4)."""
    if not addresses:
        return {}
    pinned = Pins.of_user().find(opened.config.pin_key) if opened.config else None
    unknown = "Suspended: it is new, or has changed, since the definition was accepted."
    return {
        address: _accepted(opened, pinned, address) or Tool(address, unknown, {}, kind="suspended") for address in addresses
    }


def _accepted(opened: OpenedSource, pinned: PinnedDefinition | None, address: str) -> Tool | None:
    if opened.config is None or pinned is None:
        return None
    if definition := pinned.definition(address):
        return Tool(address, *definition, kind=opened.config.kind)
    return opened.versions.earlier_tool(address, pinned.digest) if opened.versions else None


def current_definition(opened: OpenedSource) -> PinnedDefinition:
    """Return a source's definition as it is now, in the form that is pinned."""
    tools, info = opened.source.tools(), opened.info
    prints = {tool.address: fingerprint(tool) for tool in tools} if info.fingerprints is None else dict(info.fingerprints)
    if info.definition_digest:
        return PinnedDefinition(prints, info.definition_digest)
    definition_of = info.definition_of or _definition
    trusts = opened.config is not None and opened.config.trust_annotations
    return PinnedDefinition(prints, "", {tool.address: definition_of(tool) for tool in tools}, trusts)


def _definition(tool: Tool) -> bytes:
    gives = None if tool.output_schema is None else dict(tool.output_schema)
    return definition_text(tool.description, msgspec.json.encode(dict(tool.input_schema)), msgspec.json.encode(gives))
