"""The bridge: the catalog, the policy and the compiled schemas that all runs share."""

from __future__ import annotations

from typing import cast

from gloveport.bridge.arguments import Contract, PagedContract
from gloveport.bridge.builtins import Builtins
from gloveport.bridge.run_bridge import OnCall, RunBridge
from gloveport.catalog import Catalog
from gloveport.policy import AllowAll, Policy
from gloveport.sources import Paged
from gloveport.types import Limits

PAGE = "#page"
"""What the guest adds to the name of a tool to get one page of its answer."""


class Bridge:
    """Makes the calls of runs; `for_run` gives the port of one run."""

    def __init__(self, catalog: Catalog, policy: Policy | None = None) -> None:
        self.catalog = catalog
        self.policy: Policy = policy or AllowAll()
        self.builtins = Builtins(catalog, self.policy)
        # By the name as programs spell it; only names that the catalog knows get in, so it can't be made to grow.
        self.contracts: dict[str, Contract] = {}

    def for_run(self, limits: Limits, on_call: OnCall | None = None, *, began: float | None = None) -> RunBridge:
        """The port of one run, which began at `began` (`time.monotonic()`; now, if not given)."""
        return RunBridge(self, limits, on_call, began)

    def contract(self, name: str) -> Contract | None:
        """The tool of exactly this name, its schema compiled once; None when there is none."""
        found = self.contracts.get(name)
        if found is not None:
            return found
        wants_page = name.endswith(PAGE)
        entry = self.catalog.entry(name.removesuffix(PAGE))
        if entry is None or (wants_page and not entry.tool.pages):
            return None
        path = self.catalog.path_of(entry.tool)
        if wants_page:
            made = PagedContract(entry.tool, cast("Paged", entry.source), f"{path}.pages", entry.suspended)
        else:
            made = Contract(entry.tool, entry.source, path, entry.suspended)
        self.contracts[name] = made
        return made
