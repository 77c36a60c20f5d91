"""Which tools an agent sees: patterns over tool addresses."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import translate


class ToolFilter:
    """Patterns over tool addresses. `*` crosses dots."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._compiled = re.compile("|".join(translate(pattern) for pattern in self._patterns) or r"(?!)")

    @property
    def takes_all(self) -> bool:
        """Whether every tool is seen."""
        return "*" in self._patterns

    def takes(self, address: str) -> bool:
        """Return whether a tool of this address is seen."""
        return self._compiled.match(address) is not None

    def takes_source(self, name: str) -> bool:
        """Return whether an agent may see some tool of this source, whatever tools it has."""
        return any(pattern.startswith(f"{name}.") for pattern in self._patterns) or self.takes(f"{name}.")
