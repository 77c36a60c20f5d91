"""What `check` needs of a catalog."""

from __future__ import annotations

from typing import Protocol

from gloveport.types import Problem, Tool


class ToolIndex(Protocol):
    """What `check` needs of a catalog."""

    @property
    def roots(self) -> frozenset[str]:
        """Global names that are also sources: `github`."""
        ...

    def find(self, name: str) -> Tool | None:
        """The tool of a name as written after `tools.`."""
        ...

    def suggest(self, name: str) -> tuple[str, ...]:
        """Up to three addresses that the name may have meant, best first, without `tools.`."""
        ...

    def source_problem(self, name: str) -> Problem | None:
        """What is wrong with the source that a tool of this name would belong to; None if it is open."""
        ...

    def is_namespace(self, name: str) -> bool:
        """True for a source or a path prefix: `github.issues`."""
        ...
