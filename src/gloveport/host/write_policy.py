"""Chooses the policy for a catalog: writes stay shut where there is anything that could write."""

from __future__ import annotations

from collections.abc import Iterable

from gloveport.catalog import Catalog
from gloveport.policy import AllowAll, Policy
from gloveport.policy.writes import WritesDenied
from gloveport.sources import OpenedSource


def choose_policy(catalog: Catalog, opened: Iterable[OpenedSource]) -> Policy:
    """Return `AllowAll` where only plain functions could write; else let write what the settings of its source open."""
    if not any(tool.writes and tool.kind != "function" for tool in catalog.tools):
        return AllowAll()
    present = {id(source) for source in catalog.sources}
    return WritesDenied({one.name: one.config.writes for one in opened if one.config and id(one.source) in present})
