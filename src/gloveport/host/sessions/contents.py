"""What a session holds, and where sessions are kept: in memory, for as long as the port is open."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass, field
from typing import Protocol

from gloveport.errors import OptionError, WorkspaceError
from gloveport.sandbox.jail.workspace import WorkspaceQuota
from gloveport.sandbox.workspace import WorkspaceFiles
from gloveport.types import MIB

SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
DEFAULT_QUOTA = WorkspaceQuota(32 * MIB, 1000)
MAX_STATE_BYTES = MIB
MAX_SESSIONS = 100
"""Of one agent, where sessions are kept in memory."""
MAX_IDLE_SECONDS = 30 * 86400.0


@dataclass(frozen=True, slots=True)
class SessionContents:
    """The files and the encoded state of a session. `generation` counts its changes."""

    files: WorkspaceFiles = field(default_factory=WorkspaceFiles)
    state: bytes = b"{}"
    generation: int = 0


@dataclass(frozen=True, slots=True)
class SessionKey:
    """A session: its name, and the agent that it belongs to. Another agent's session of this name is another one."""

    agent: str
    name: str

    @classmethod
    def of(cls, agent: str, name: object) -> SessionKey:
        """Return the key of a session; raise OptionError for a name that none can have."""
        if not isinstance(name, str) or not SESSION_NAME.fullmatch(name):
            hint = "a name has letters, digits, `_`, `-` and `.`, at most 64, with a letter or a digit first"
            raise OptionError(f"a session can't be called {name!r:.80}", hint=hint)
        return cls(agent, name)


class SessionShelf(Protocol):
    """Where sessions are kept."""

    async def load(self, key: SessionKey) -> SessionContents:
        """Return what a session holds; nothing if there is none."""
        ...

    async def save(self, key: SessionKey, contents: SessionContents) -> None:
        """Replace what a session holds, as a whole or not at all."""
        ...

    async def names(self, agent: str) -> tuple[str, ...]:
        """Return the names of an agent's sessions."""
        ...

    async def remove(self, key: SessionKey) -> None:
        """Delete a session."""
        ...


class MemoryShelf:
    """Keeps sessions in memory."""

    def __init__(self) -> None:
        self._kept: dict[SessionKey, tuple[float, SessionContents]] = {}

    async def load(self, key: SessionKey) -> SessionContents:
        """Return what a session holds; nothing if there is none."""
        self._forget_old()
        return self._kept[key][1] if key in self._kept else SessionContents()

    async def save(self, key: SessionKey, contents: SessionContents) -> None:
        """Replace what a session holds."""
        if key not in self._kept and len(await self.names(key.agent)) >= MAX_SESSIONS:
            raise WorkspaceError(f"an agent has at most {MAX_SESSIONS} sessions here", hint="remove one")
        self._kept[key] = time.monotonic(), contents

    async def names(self, agent: str) -> tuple[str, ...]:
        """Return the names of an agent's sessions."""
        self._forget_old()
        return tuple(sorted(key.name for key in self._kept if key.agent == agent))

    async def remove(self, key: SessionKey) -> None:
        """Delete a session."""
        self._kept.pop(key, None)

    def _forget_old(self) -> None:
        oldest = time.monotonic() - MAX_IDLE_SECONDS
        self._kept = {key: kept for key, kept in self._kept.items() if kept[0] > oldest}
