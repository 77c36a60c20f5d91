"""Makes the requests for runs: combines what a caller asks for with what the settings allow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gloveport.host.engine_pools import EnginePools
from gloveport.host.governance import Governance
from gloveport.host.options import limits_from
from gloveport.host.runs.run_request import NO_INPUT, RunRequest
from gloveport.host.sessions.sessions import Sessions
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import AUTO
from gloveport.types import Language, Limits


class NewRequests:
    """Makes the requests of a port. `engines` has the engine of each language for which the settings name one."""

    def __init__(
        self,
        pools: EnginePools,
        governance: Governance,
        sessions: Sessions,
        limits: Limits,
        engines: Mapping[Language, str],
    ) -> None:
        self._pools = pools
        self._governance = governance
        self._sessions = sessions
        self._limits = limits
        self._engines = engines
        for language, engine in engines.items():
            pools.options(language, engine, limits)  # raises OptionError for an option that the engine lacks

    def request(
        self,
        run: str,
        code: str,
        language: Language,
        *,
        agent: str,
        engine: str | None,
        limits: Limits | Mapping[str, Any] | None,
        session: str | None,
        allow_eval: bool | None,
        allow_wasm: bool | None,
        **others: Any,
    ) -> RunRequest:
        """Return the request for a run; raise OptionError for options that do not exist or are not allowed here.

        `others` are further fields of the request: every run makes one, so it is constructed at once, without copies.
        """
        wanted = limits_from(limits_from(self._limits, self._governance.agent(agent).limits), limits)
        engine = engine or self._engines.get(language)
        allowed = {"allow_eval": allow_eval, "allow_wasm": allow_wasm}
        options = self._pools.options(language, engine, wanted, **allowed, workspace=self._sessions.quota_of(session))
        any_engine, lighter = engine in (None, AUTO), self._pools.lighter(engine, options)
        return RunRequest(
            run, code, language, options, any_engine, limits=wanted, agent=agent, session=session, lighter=lighter, **others
        )

    def unrecorded(self, code: str, language: Language, agent: str) -> RunRequest:
        """Return the request for a run that is not recorded."""
        options = self.usual_options(language)
        return RunRequest("unrecorded", code, language, options, False, NO_INPUT, self._limits, {}, None, agent)

    def usual_options(self, language: Language) -> ProcessOptions:
        """Return the default process options for a language."""
        return self._pools.options(language, self._engines.get(language), self._limits)

    def later_options(self) -> list[ProcessOptions]:
        """Return the process options to start later than the default ones: Python's, and the lighter engine's."""
        lighter = self._pools.lighter(self._engines.get("typescript"), self.usual_options("typescript"))
        return [self.usual_options("python"), *(() if lighter is None else (lighter,))]
