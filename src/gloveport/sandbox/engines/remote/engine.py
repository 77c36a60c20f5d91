"""The engines of a sandbox host: each is a local engine's description, and its workers are elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from gloveport.errors import SandboxError
from gloveport.sandbox.engines.engine import Engine, ProcessOptions
from gloveport.sandbox.engines.remote.launcher import RemoteLaunch, RemoteLauncher
from gloveport.sandbox.engines.remote.messages import Connect
from gloveport.sandbox.engines.remote.worker import RemoteWorker

PREFIX = "remote-"
NOT_SET = SandboxError("no sandbox host is set", hint="set url and token in [sandbox.remote]")


class RemoteEngine:
    """An engine at a sandbox host. Without `connect`, no sandbox host is set, and it only describes itself."""

    distribution: str | None = None
    substitute: str | None = None

    def __init__(self, hosted: Engine, connect: Connect | None = None) -> None:
        self._hosted = hosted
        self._connect = connect
        self.name = PREFIX + hosted.name
        self.languages = hosted.languages
        self.capabilities = hosted.capabilities
        self.subset = hosted.subset
        self.builtin_modules = hosted.builtin_modules

    def connected(self, connect: Connect) -> RemoteEngine:
        """Return the same engine at a sandbox host."""
        return RemoteEngine(self._hosted, connect)

    def version(self) -> str:
        """Return that the version is the sandbox host's; raise SandboxError when none is set."""
        if self._connect is None:
            raise NOT_SET
        return "(at the sandbox host)"

    def process_options(self, wanted: ProcessOptions) -> ProcessOptions:
        """Return the options of the hosted engine. Its memory limit is set when a run begins."""
        found = self._hosted.process_options(replace(wanted, engine=self._hosted.name))
        return replace(found, engine=self.name, memory_mb=0, workspace=None)

    def launch(self, options: ProcessOptions) -> RemoteLaunch:
        """Return how to get a worker from the sandbox host."""
        if self._connect is None:
            raise NOT_SET
        return RemoteLaunch(self._connect, replace(options, engine=self._hosted.name))

    async def start(self, launcher: RemoteLauncher) -> RemoteWorker:
        """Return a fresh worker of the sandbox host."""
        return await launcher.take()


def remote_engines(hosted: Iterable[Engine]) -> dict[str, RemoteEngine]:
    """Return the engines that a sandbox host may have, by name."""
    return {engine.name: engine for engine in map(RemoteEngine, hosted)}
