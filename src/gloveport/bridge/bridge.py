"""The bridge: the catalog, the policy and the compiled schemas that all runs share."""

from __future__ import annotations

from gloveport.bridge.arguments import Contract
from gloveport.bridge.builtins import Builtins
from gloveport.bridge.runs import OnCall, RunBridge
from gloveport.catalog import Catalog
from gloveport.policy import AllowAll, Policy
from gloveport.types import Limits


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
        entry = self.catalog.entry(name) if found is None else None
        if entry is not None:
            found = self.contracts[name] = Contract(entry.tool, entry.source, self.catalog.spelled(entry.tool))
        return found
