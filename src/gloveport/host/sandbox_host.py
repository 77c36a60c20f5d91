"""Sandbox hosts, from both sides: the connection to another Gloveport that runs our programs, and the sandboxes we lend."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gloveport import urls
from gloveport.config.sandbox_host import SANDBOX_HOST, TOKEN_SLOT, sandbox_host_from
from gloveport.errors import OptionError, SandboxError, ToolError
from gloveport.host.engine_pools import EnginePools
from gloveport.policy.credentials import Attachment
from gloveport.policy.credentials.configured import ConfiguredCredentials
from gloveport.policy.egress import Reach
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.registry import LOCAL_ENGINES, EngineStatus, try_engines
from gloveport.sandbox.engines.remote.messages import MAX_MESSAGE_BYTES, Connect
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.run_worker import RunWorker
from gloveport.types import Language, Limits, Strength

if TYPE_CHECKING:
    from gloveport.policy.egress.websocket import WebSocket

SANDBOX_PATH = "/v1/sandbox"
CONNECT_SECONDS = 10
_PROBLEMS = {401: "it does not know the token", 403: "the role of the token may not use sandboxes"}


def connector(sandbox: Mapping[str, Any]) -> Connect | None:
    """Return what connects to the sandbox host of the settings in `[sandbox]`; None without one."""
    config = sandbox_host_from(sandbox.get("remote"))
    if config is None:
        return None
    from gloveport.policy.egress import Egress  # its libraries take time to load

    egress = Egress()
    credentials = ConfiguredCredentials({(SANDBOX_HOST, TOKEN_SLOT): config.token}, egress=egress)
    origin = config.url.origin
    url = urls.parse(origin + SANDBOX_PATH)
    reach = Reach(
        frozenset({origin}), config.allow_private, connect_seconds=CONNECT_SECONDS, total_seconds=2 * CONNECT_SECONDS
    )

    async def connect() -> WebSocket:
        try:
            secret = await credentials.find(SANDBOX_HOST, TOKEN_SLOT, origin)
            if secret is None:
                what = credentials.wanted(SANDBOX_HOST, TOKEN_SLOT)
                raise ToolError("the sandbox host needs a token", code="auth-required", setting=what)
            bearer = Attachment("header", "Authorization", secret, frozenset({origin}), "Bearer {}")
            return await egress.websocket(url, reach, (bearer,), MAX_MESSAGE_BYTES)
        except ToolError as error:
            raise _unreachable(error) from None

    return connect


def _unreachable(error: ToolError) -> SandboxError:
    hint = error.setting or error.hint
    if error.code in ("auth-required", "egress-denied"):
        return SandboxError(error.message, code=error.code, hint=hint)
    problem = _PROBLEMS.get(error.status or 0, error.message)
    return SandboxError(f"the sandbox host gave no sandbox: {problem}", code="sandbox-unreachable", hint=hint)


class SandboxLender:
    """Lends sandboxes of this machine, with limits of this port, and tells which engines and workers there are."""

    def __init__(self, pools: EnginePools, limits: Limits) -> None:
        self._pools = pools
        self.limits = limits
        self.minimum: Strength = pools.minimum

    async def engines(self, preferred: Mapping[Language, str]) -> tuple[EngineStatus, ...]:
        """Try every engine here, and those of the sandbox host that the settings name."""
        return await try_engines(self._pools.hosted, preferred)

    async def jail(self) -> JailReport:
        """Return the report on the jail of TypeScript programs; raise SandboxError below the minimum strength."""
        return await self._pools.find(self._pools.options("typescript", None, self.limits)).open()

    def states(self) -> Iterator[tuple[str, Mapping[str, int]]]:
        """Yield the engine and the states of the workers of each pool."""
        for options, pool in self._pools.open.items():
            yield options.engine, pool.states

    async def report(self, wanted: ProcessOptions) -> JailReport:
        """Return the report on the jail of an engine; raise GloveportError for one that can't be had."""
        return await self._pools.find(self._options(wanted)).open()

    @asynccontextmanager
    async def lend(self, wanted: ProcessOptions) -> AsyncIterator[RunWorker]:
        """Wait for a fresh worker, and end it after the block."""
        pool = self._pools.find(self._options(wanted))
        worker = await pool.take()
        try:
            yield worker
        finally:
            pool.replace(worker)

    def _options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the options of a process here. A caller gets what this port allows its own programs, and no more."""
        if wanted.engine not in LOCAL_ENGINES:
            raise OptionError(f"there is no engine {wanted.engine!r:.60} here")
        own = self._pools.options(LOCAL_ENGINES[wanted.engine].languages[0], wanted.engine, self.limits)
        for name in ("allow_eval", "allow_wasm"):
            if getattr(wanted, name) and not getattr(own, name):
                raise OptionError(f"this sandbox host does not grant {name}", hint=f"set {name} in [sandbox] there")
        return replace(own, allow_eval=wanted.allow_eval, allow_wasm=wanted.allow_wasm)
