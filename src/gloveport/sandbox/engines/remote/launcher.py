"""Asks a sandbox host for workers: a connection for each."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any

from gloveport.errors import CODES, SandboxError, WireError
from gloveport.sandbox.engines.engine import ProcessOptions
from gloveport.sandbox.engines.remote import messages
from gloveport.sandbox.engines.remote.messages import MAX_SHOWN_CHARS, Connect, Connection
from gloveport.sandbox.engines.remote.worker import RemoteWorker
from gloveport.sandbox.jail.strength import JailReport
from gloveport.sandbox.launcher import STRENGTH_RANK
from gloveport.types import Strength

ANSWER_SECONDS = 120.0  # a sandbox host with many runs lets us wait for one of them to end
UNREACHABLE = "sandbox-unreachable"


@dataclass(frozen=True, slots=True)
class RemoteLaunch:
    """How a sandbox host starts workers: the options of their processes there."""

    connect: Connect
    options: ProcessOptions
    idle_input: bytes = b""

    def launcher(self, minimum: Strength) -> RemoteLauncher:
        """Return a launcher that was not started yet."""
        return RemoteLauncher(self.connect, self.options, minimum)


class RemoteLauncher:
    """Takes workers of one kind from a sandbox host."""

    def __init__(self, connect: Connect, options: ProcessOptions, minimum: Strength) -> None:
        self._connect = connect
        self._options = options
        self._minimum: Strength = minimum
        self._started = False

    @property
    def alive(self) -> bool:
        """Whether the sandbox host has reported a jail that is strong enough."""
        return self._started

    async def start(self) -> JailReport:
        """Return the jail that the sandbox host reports; SandboxError if its strength is below the minimum."""
        connection, answer = await self._ask("probe")
        await connection.close()
        report = _read(messages.read_report, answer)
        if STRENGTH_RANK[report.strength] < STRENGTH_RANK[self._minimum]:
            raise SandboxError(
                f"the sandbox host has sandboxes of strength `{report.strength}`, and `{self._minimum}` is required",
                hint="run `gloveport doctor` there",
            )
        self._started = True
        return report

    async def take(self) -> RemoteWorker:
        """Return a fresh worker, which is ready for a program."""
        connection, answer = await self._ask("take")
        try:
            return RemoteWorker(connection, _read(messages.read_ready, answer))
        except SandboxError:
            await connection.close()
            raise

    async def close(self) -> None:
        """End it. Workers that were taken end with their runs."""
        self._started = False

    def abandon(self) -> None:
        """Do the same after the event loop has closed."""
        self._started = False

    async def _ask(self, kind: str) -> tuple[Connection, list[Any]]:
        connection = await self._connect()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                await connection.send(messages.request(kind, self._options))
                answer = messages.parse(await connection.receive())
            if answer[0] == "refused":
                raise _refusal(answer)
        except BaseException as error:
            await connection.close()
            if isinstance(error, (ConnectionError, TimeoutError, WireError)):
                reason = "it did not answer in time" if isinstance(error, TimeoutError) else str(error)
                raise SandboxError(f"the sandbox host gave no sandbox: {reason}", code=UNREACHABLE) from None
            raise
        return connection, answer


def _read(read: Any, answer: list[Any]) -> Any:
    try:
        return read(answer)
    except WireError as error:
        raise SandboxError(error.message, code=UNREACHABLE) from None


def _refusal(answer: list[Any]) -> SandboxError:
    """Return the refusal of a sandbox host as an error. Only a code of ours is taken over."""
    match answer:
        case ["refused", str(code), str(message), None | str() as hint]:
            known = code if code in CODES else UNREACHABLE
            shown = f"the sandbox host refused: {message[:MAX_SHOWN_CHARS]}"
            return SandboxError(shown, code=known, hint=hint and hint[:MAX_SHOWN_CHARS])
    return SandboxError("the sandbox host refused, and did not say why", code=UNREACHABLE)
