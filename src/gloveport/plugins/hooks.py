"""What a plugin may do: the hooks, and the values that they take and return.

A plugin is a Python file, a module, or a class that is created with its options. It marks with `@hook` what it implements:

    from gloveport.plugins import hook

    @hook
    def on_call(call):
        return "not on Sundays" if is_sunday() else None

A plugin runs in the host, with its rights. `host/plugins/` loads plugins and calls their hooks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pluggy

from gloveport.types import Language, LogLine, Outcome

if TYPE_CHECKING:
    import click

    from gloveport.policy.credentials.providers import CredentialProvider
    from gloveport.sandbox.engines.engine import Engine
    from gloveport.sources.kinds import SourceKind

PROJECT = "gloveport"
F = TypeVar("F", bound=Callable[..., Any])

hook = pluggy.HookimplMarker(PROJECT)
"""Marks a function as the implementation of the hook of its name."""
_spec = pluggy.HookspecMarker(PROJECT)


@dataclass(frozen=True, slots=True)
class StartingRun:
    """A run that begins. With `is_resumed` it goes on in this process: its environment and its input stay as they were."""

    run: str
    agent: str
    language: Language
    code: str
    env: Mapping[str, str] = field(default_factory=dict)
    input: Any = None
    session: str | None = None
    is_resumed: bool = False


@dataclass(frozen=True, slots=True)
class Additions:
    """What a plugin adds to a run. What the caller of the run has given stays as it is.

    `env` and `input` add variables and members of the input. `tools` are functions: the program calls them as
    `tools.<plugin>.<function>`, and rules, approvals, budgets and records hold for them as for any tool.
    """

    env: Mapping[str, str] = field(default_factory=dict)
    input: Mapping[str, Any] = field(default_factory=dict)
    tools: Iterable[Callable[..., Any]] = ()


@dataclass(frozen=True, slots=True)
class AllowedCall:
    """A call that the rules, or a person, have allowed. `args` are a copy: nothing that happens to it changes the call."""

    run: str
    agent: str
    tool: str
    args: Mapping[str, Any]
    writes: bool


class Hooks:
    """The hooks. A plugin implements those that it needs. `before_run`, `on_call`, `after_run` and `close` may be async."""

    @_spec
    def sources(self) -> Mapping[str, SourceKind]:
        """Return kinds of sources, by the name that stands in `[sources.NAME]`."""
        raise NotImplementedError

    @_spec
    def engines(self) -> Iterable[Engine]:
        """Return engines."""
        raise NotImplementedError

    @_spec
    def credentials(self) -> Mapping[str, CredentialProvider]:
        """Return providers of credentials, by the scheme of their references."""
        raise NotImplementedError

    @_spec
    def commands(self) -> Iterable[click.Command]:
        """Return commands of `gloveport`."""
        raise NotImplementedError

    @_spec
    def before_run(self, run: StartingRun) -> Additions | None:
        """Return what to add to a run that begins. A failure adds nothing, and is a warning of the run."""

    @_spec
    def on_call(self, call: AllowedCall) -> str | None:
        """Return the reason to deny an allowed call; None to let it through. A failure denies it."""

    @_spec
    def on_log(self, run: StartingRun, line: LogLine) -> None:
        """Note a line of a program's output."""

    @_spec
    def after_run(self, run: StartingRun, outcome: Outcome) -> None:
        """Note the end of a run."""

    @_spec
    def close(self) -> None:
        """Release what the plugin holds: the port is closed. The last plugin is closed first."""
