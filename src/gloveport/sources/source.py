"""What a source is, what it may do besides, and the value that an opened source is resolved into.

`Source` is all that a user's own source needs. Each further ability is a Protocol of its own; `OpenedSource.of` looks for
them once, when the source is opened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

from gloveport.sources.inverses import inverses
from gloveport.types import Page, Tool
from gloveport.undo import Undo

if TYPE_CHECKING:
    from gloveport.config import SourceConfig
    from gloveport.sources.compiled_definition import CredentialSlot


@runtime_checkable
class Source(Protocol):
    """A set of tools that calls go to. Only the bridge calls it."""

    @property
    def name(self) -> str:
        """The first part of the address of each of its tools."""
        ...

    def tools(self) -> Sequence[Tool]:
        """Return the tools, in the order to list them."""
        ...

    async def call(self, tool: Tool, args: dict[str, Any]) -> Any:
        """Return what the tool answered; any exception is a failed call.

        `args` fit the tool's schema, and nobody else holds them.
        """
        ...

    async def close(self) -> None:
        """Release what the source holds; calling it twice is no error."""
        ...


@runtime_checkable
class PagedSource(Protocol):
    """A source that can return an answer page by page."""

    async def page(self, tool: Tool, args: dict[str, Any], cursor: str | None) -> Page:
        """Return the first page (no cursor), or the page that the cursor of the previous one names."""
        ...


@runtime_checkable
class PageDescribingSource(Protocol):
    """A paged source that can say what a cursor stands for."""

    def page_arguments(self, tool: Tool, args: dict[str, Any], cursor: str) -> dict[str, Any]:
        """Return the arguments of the request for a page, for records and rules; raises ToolError for a wrong cursor."""
        ...


@runtime_checkable
class KeyedSource(Protocol):
    """A source whose writes may take an idempotency key: the service makes a write with the same key once."""

    def takes_key(self, tool: Tool) -> bool:
        """Return whether a tool takes one."""
        ...

    async def call_with_key(self, tool: Tool, args: dict[str, Any], key: str) -> Any:
        """Return what the tool answered. It got the key, unless the arguments have one."""
        ...


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Facts about an open source beside its tools."""

    title: str = ""
    """What the source calls itself; untrusted text."""
    server: str = ""
    """The URL that its calls go to, where that is one place and known before a call."""
    server_problem: str = ""
    """Why that URL could not be determined."""
    slots: tuple[CredentialSlot, ...] = ()
    """The credentials that its tools may need."""
    warnings: tuple[str, ...] = ()
    """What its owner should know, such as operations that were left out."""
    fingerprints: Mapping[str, str] | None = None
    """The fingerprint of each tool by address; None where the host computes them from the tools."""
    definition_digest: str = ""
    """The key of its compiled definition in the definition cache; empty where it has none."""
    definition_of: Callable[[Tool], bytes] | None = None
    """Returns the definition of a tool as `pins` stores it; None where the host writes it from the tool's schemas."""
    read_only: tuple[str, ...] = ()
    """The addresses of the tools that an MCP server itself calls read-only, whether it is trusted about that or not."""
    undo: Mapping[str, str] = field(default_factory=dict)
    """The declared inverse of each tool, by its path in the source."""


@runtime_checkable
class DescribedSource(Protocol):
    """A source that states facts about itself."""

    def source_info(self) -> SourceInfo:
        """Return the facts as they are now."""
        ...


@runtime_checkable
class ChangingSource(Protocol):
    """A source whose tools may change while it is open."""

    def subscribe_to_changes(self, on_change: Callable[[], None]) -> None:
        """Call `on_change`, in the event loop, each time that the tools have changed."""
        ...


@runtime_checkable
class VersionedSource(Protocol):
    """A source that can still show a tool as an earlier definition had it."""

    def earlier_tool(self, address: str, digest: str) -> Tool | None:
        """Return the tool as the definition of this digest has it; None where that definition is gone."""
        ...


@runtime_checkable
class AttributingSource(Protocol):
    """A source of ours: its ToolErrors state their `origin`. Every error of any other source is the tool's own."""

    attributes_errors: Literal[True]


@dataclass(frozen=True, slots=True)
class OpenedSource:
    """An open source with its optional abilities resolved. `config` is None for a source object that a caller made."""

    source: Source
    config: SourceConfig | None = None
    info: SourceInfo = field(default_factory=SourceInfo)
    versions: VersionedSource | None = None
    changes: ChangingSource | None = None
    inverses: Mapping[str, Undo] = field(default_factory=dict)
    """The inverse of each tool that declares one, by address."""

    @classmethod
    def of(cls, source: Source, config: SourceConfig | None = None) -> OpenedSource:
        """Return the opened source, with what it can do beyond the four members of `Source`."""
        info = source.source_info() if isinstance(source, DescribedSource) else SourceInfo()
        declared = {**info.undo, **(config.undo if config is not None else {})}
        return cls(
            source,
            config,
            info,
            source if isinstance(source, VersionedSource) else None,
            source if isinstance(source, ChangingSource) else None,
            inverses(source.name, source.tools(), declared) if declared else {},
        )

    @property
    def name(self) -> str:
        """The name of the source."""
        return self.source.name

    def refreshed(self) -> OpenedSource:
        """Return the same source with its facts as they are now."""
        return replace(self, info=self.source.source_info()) if isinstance(self.source, DescribedSource) else self
