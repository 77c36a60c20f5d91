"""What a source is given to reach the outside world with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gloveport.plugins.extension_point import ExtensionPoint
from gloveport.policy.credentials import Credentials
from gloveport.sources.kinds import KINDS, SourceKind

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress


Answer = Callable[[bytes], Awaitable[bytes | None]]
"""Answers a question that a task asks while it runs, such as the content of a file beside a definition."""


class TaskRunner(Protocol):
    """Runs functions of ours that read hostile input, each in a jailed process that is killed when it takes too long.

    A task is a pure function `function(parts: list[bytes], ask: Callable[[bytes], bytes | None]) -> Iterable[bytes]`.
    """

    async def run(self, task: str, parts: Sequence[bytes], *, answer: Answer | None = None) -> list[bytes]:
        """Return what the task `module:function` yields. The answer is untrusted: hostile input may control the process.

        Raise the SourceError that the task raises, TooComplexError when it takes too much CPU time or memory, and
        SandboxError when no jail of the required strength is available.
        """
        ...


@dataclass(frozen=True, slots=True)
class SourceContext:
    """The HTTP client, the credentials, the user's folder for compiled definitions, the runner of jailed tasks, and the
    kinds of sources that there are.
    """

    egress: Egress
    credentials: Credentials
    cache: Path
    tasks: TaskRunner
    kinds: ExtensionPoint[SourceKind] = KINDS
