"""The bridge: the catalog, the policy and the compiled schemas that all runs share."""

from __future__ import annotations

from gloveport.approvals.desk import ApprovalDesk
from gloveport.bridge.arguments import Contract, PagedContract, contract_of
from gloveport.bridge.builtins import Builtins
from gloveport.bridge.plans import ApprovedPlan, FollowingBridge, PlanDraft, PlanningBridge
from gloveport.bridge.run_bridge import RunBridge
from gloveport.bridge.run_context import CheckCall, RunContext
from gloveport.catalog import Catalog
from gloveport.large_values import off_loop
from gloveport.policy import Policy
from gloveport.policy.flow import Flow
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.rules import Rules
from gloveport.sources import PagedSource, Source, fetch
from gloveport.sources.caller import CallerSource, LatestSources
from gloveport.types import DEFAULT_AGENT, FETCH_TOOLS, Limits

MAX_ADDED_BRIDGES = 32
PAGE_SUFFIX = "#page"
"""The guest appends this to a tool's name to fetch one page of its result."""


class Bridge:
    """Serves the tool calls of all runs of an agent; `for_run` returns the part that belongs to one run.

    Without a policy every call is allowed. Without a desk nobody can be asked: what asks is denied. `requests` makes
    those of `fetch`. `flow` has the labels of the tools, and what agents have read. `check_call` asks the plugins about a
    call that is allowed.
    """

    def __init__(
        self,
        catalog: Catalog,
        policy: Policy | None = None,
        desk: ApprovalDesk | None = None,
        agent: str = DEFAULT_AGENT,
        requests: Source | None = None,
        *,
        flow: Flow | None = None,
        check_call: CheckCall | None = None,
    ) -> None:
        self.catalog = catalog
        self.policy: Policy = policy or RuleBook(Rules(preset="open"))
        self.desk = desk
        self.agent = agent
        self.requests = requests
        self.flow = flow or Flow()
        self.check_call = check_call
        self.builtins = Builtins(catalog, self.policy, agent)
        # By the name that programs write. Only names in the catalog are added, so a guest can't make it grow.
        self.contracts: dict[str, Contract] = {}
        self._with_callers = LatestSources[Bridge]()
        self._with_added: dict[tuple[Source, ...], Bridge] = {}  # the latest last

    def for_run(self, limits: Limits, context: RunContext | None = None) -> RunBridge:
        """Return the bridge of one run: one that makes a plan or follows one, if the context has a plan."""
        context = context or RunContext()
        kinds = {PlanDraft: PlanningBridge, ApprovedPlan: FollowingBridge}
        return kinds.get(type(context.plan), RunBridge)(self, limits, context)

    async def with_caller(self, source: CallerSource) -> Bridge:
        """Return the same bridge with the tools of a caller. Raise OptionError if they do not fit in.

        Callers that bring the same tools again and again share one, with its catalog and compiled schemas.
        """
        found = self._with_callers.get(source.digest)
        if found is None:
            found = self._sibling(await off_loop(self.catalog.with_caller, source))
        self._with_callers.keep(source.digest, found, source.size)
        return found

    async def with_added(self, sources: tuple[Source, ...]) -> Bridge:
        """Return the same bridge with more sources. Raise OptionError if they do not fit in."""
        found = self._with_added.pop(sources, None)
        if found is None:
            found = self._sibling(await off_loop(self.catalog.with_added, sources))
        self._with_added[sources] = found
        while len(self._with_added) > MAX_ADDED_BRIDGES:
            del self._with_added[next(iter(self._with_added))]
        return found

    def _sibling(self, catalog: Catalog) -> Bridge:
        given = self.policy, self.desk, self.agent, self.requests
        return Bridge(catalog, *given, flow=self.flow, check_call=self.check_call)

    def finds_quickly(self, name: str) -> bool:
        """Return True for a plain function: a schema of somebody else may be large, and an unknown name is searched for."""
        entry = self.catalog.entry(name.removesuffix(PAGE_SUFFIX))
        return name in FETCH_TOOLS or (entry is not None and entry.tool.kind == "function")

    def contract(self, name: str) -> Contract | None:
        """Return the tool of exactly this name with its schema compiled (once), or None."""
        found = self.contracts.get(name)
        if found is not None:
            return found
        if self.requests is not None and (built_in := fetch.TOOLS.get(name)) is not None:
            labels = self.flow.labels_of(built_in)
            return self.contracts.setdefault(name, Contract(built_in, self.requests, name, labels=labels))
        wants_page = name.endswith(PAGE_SUFFIX)
        entry = self.catalog.entry(name.removesuffix(PAGE_SUFFIX))
        if entry is None:
            return None
        path, labels = self.catalog.path_of(entry.tool), self.flow.labels_of(entry.tool)
        if not wants_page:
            made = contract_of(entry.tool, entry.source, path, entry.suspended, labels)
        elif entry.tool.pages and isinstance(entry.source, PagedSource):
            made = PagedContract(entry.tool, entry.source, f"{path}.pages", entry.suspended, labels)
        else:
            return None
        self.contracts[name] = made
        return made
