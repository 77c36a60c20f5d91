"""What governs the calls of a port: the rules in force, the desk where calls wait for a person, what each agent sees."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from gloveport.approvals.desk import DEFAULT_EXPIRY_SECONDS, ApprovalDesk, OnApproval
from gloveport.bridge import Bridge
from gloveport.bridge.run_context import CheckCall
from gloveport.catalog import Catalog
from gloveport.catalog.tool_filter import ToolFilter
from gloveport.config import AgentConfig, Config, GovernanceConfig
from gloveport.errors import GloveportError, OptionError
from gloveport.host.runs.port_store import PortStore
from gloveport.host.snippet_source import SnippetSource
from gloveport.policy.flow import Flow
from gloveport.policy.rule_book import RuleBook
from gloveport.rules.budgets import Budget
from gloveport.rules.labels import SourceLabels
from gloveport.rules.rule import Rule
from gloveport.rules.rules import Rules, check_preset
from gloveport.rules.source_writes import SourceWrites
from gloveport.sources.fetch import FetchClient, FetchSource
from gloveport.store.snippets import Snippet
from gloveport.types import DEFAULT_AGENT

logger = logging.getLogger("gloveport")

_DEFAULT_AGENT = AgentConfig(DEFAULT_AGENT)

RulesArgument = Rules | Iterable[Rule | Budget] | str
"""What `Gloveport(rules=…)` takes: rules, or the name of a preset."""


def desk_from(settings: Config, on_approval: OnApproval | None, store: Path | None) -> ApprovalDesk | None:
    """Return the desk of a port; None where nobody can be asked."""
    if on_approval is None and store is None:
        return None
    minutes = settings.governance.expiry_minutes
    return ApprovalDesk(on_approval, DEFAULT_EXPIRY_SECONDS if minutes is None else minutes * 60)


class Governance:
    """The rule book, the desk and the bridges of one port. Each agent has its own bridge: it sees its own tools only."""

    def __init__(
        self,
        settings: Config,
        rules: RulesArgument | None,
        desk: ApprovalDesk | None,
        store: PortStore | None = None,
        *,
        client: FetchClient | None = None,
        check_call: CheckCall | None = None,
    ) -> None:
        self._settings = settings
        self._given = rules
        self._check_call = check_call
        self.desk = desk
        self.client = client or FetchClient()
        self.book = RuleBook(self._rules(settings.governance), self._changed if settings.watched else None)
        self.flow = Flow()
        if store is not None:
            self.book.counts.take_hourly = store.take_hourly
            self.flow.stored_reads = store.reads_of
            self.flow.stored_of_session = store.reads_of_session
        self._stamps = self._stamp()
        self._catalog: Catalog | None = None
        self._bridges: dict[tuple[str, tuple[str, ...]], Bridge] = {}  # by agent, and the patterns of its tools
        self._snippets: tuple[Snippet, ...] = ()

    @property
    def settings(self) -> Config:
        """The settings as their files state them now."""
        self.book.refresh()
        return self._settings

    @property
    def agents(self) -> Mapping[str, AgentConfig]:
        """The agents that the settings name now."""
        return self.settings.governance.agents

    def agent(self, name: str) -> AgentConfig:
        """Return the settings of an agent; raise OptionError for one that the settings don't name."""
        found = self.agents.get(name)
        if found is None and name != DEFAULT_AGENT:
            raise OptionError(f"there is no agent {name!r:.60}", hint=f"add [agents.{name:.40}] to gloveport.toml")
        return found or _DEFAULT_AGENT

    def connect(self, catalog: Catalog, writes: Mapping[str, SourceWrites], labels: Mapping[str, SourceLabels]) -> None:
        """Use another catalog from now on; runs keep the bridge with which they began."""
        self.book.open_sources(writes)
        self.flow.open_sources(labels)
        self._catalog = catalog
        self._bridges = {}

    def bridge(self, agent: str) -> Bridge:
        """Return the bridge for the runs of an agent that begin now."""
        tools = self.agent(agent).tools
        found = self._bridges.get((agent, tools))
        if found is None:
            assert self._catalog is not None
            seen = ToolFilter(tools)
            catalog = self._catalog if seen.takes_all else self._catalog.only(seen)
            if snippets := [one for one in self._snippets if all(map(seen.takes, one.tools))]:
                catalog = catalog.with_snippets(SnippetSource(snippets))
            requests = FetchSource(self.client, lambda url, method: self.book.rules.reaches_private(url, method, agent))
            given = self.book, self.desk, agent, requests
            found = Bridge(catalog, *given, flow=self.flow, check_call=self._check_call)
            self._bridges[agent, tools] = found
        return found

    def is_slow(self, agent: str) -> bool:
        """Return whether the agent's own catalog and bridge must still be built, which takes long."""
        tools = self.agent(agent).tools
        return (agent, tools) not in self._bridges and bool(self._snippets or not ToolFilter(tools).takes_all)

    def use_snippets(self, snippets: tuple[Snippet, ...]) -> None:
        """Offer these snippets from now on, each to the agents that see all of its tools."""
        if snippets != self._snippets:
            self._snippets = snippets
            self._bridges = {}

    def _rules(self, config: GovernanceConfig) -> Rules:
        given = self._given
        if given is None or isinstance(given, str):
            return Rules(config.rules, config.preset if given is None else check_preset(given), config.budgets)
        if isinstance(given, Rules):
            return Rules((*config.rules, *given.stated), given.preset, (*config.budgets, *given.budgets))
        rules = [one for one in given if isinstance(one, Rule)]
        budgets = [one for one in given if isinstance(one, Budget)]
        return Rules((*config.rules, *rules), config.preset, (*config.budgets, *budgets))

    def _changed(self) -> Rules | None:
        """Return the rules of the settings files if one of them has changed; those in force stay if it can't be read."""
        stamps = self._stamp()
        if stamps == self._stamps:
            return None
        self._stamps = stamps
        try:
            self._settings = self._settings.reloaded()
        except GloveportError as error:
            logger.error("the rules stay as they were: %s", error.message)
            return None
        return self._rules(self._settings.governance)

    def _stamp(self) -> tuple[tuple[int, int] | None, ...]:
        return tuple(_stamp(path) for path in self._settings.watched)


def _stamp(path: Path) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size
