"""What a session holds while a run uses it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from gloveport.errors import OptionError
from gloveport.sandbox.workspace import WorkspaceFiles
from gloveport.store.sessions import Snapshot, SnapshotFile
from gloveport.types import MIB

SESSION_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
MAX_STATE_BYTES = MIB
EMPTY_STATE = b"{}"


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


@dataclass(frozen=True, slots=True)
class SessionContents:
    """The files and the encoded state of a session. `known` has the digests of contents that are in the store already.

    Its keys are the identities of the objects: a file that no run has written is still the same object.
    """

    files: WorkspaceFiles = field(default_factory=WorkspaceFiles)
    state: bytes = EMPTY_STATE
    known: Mapping[int, str] = field(default_factory=dict)

    def listed(self) -> tuple[Snapshot, dict[str, bytes]]:
        """Return the contents as a snapshot, with those that the store may not have. Do this in a thread."""
        new: dict[str, bytes] = {}

        def name(content: bytes) -> str:
            if (known := self.known.get(id(content))) is not None:
                return known
            found = hashlib.sha256(content).hexdigest()
            new[found] = content
            return found

        files = {path: SnapshotFile(name(content), len(content)) for path, content in self.files.files.items()}
        state = "" if self.state == EMPTY_STATE else name(self.state)
        return Snapshot(files, tuple(sorted(self.files.folders)), state), new
