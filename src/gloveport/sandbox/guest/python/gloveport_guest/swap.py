"""Putting our functions in the place of the platform's, wherever a module of the standard library holds on to one.

Looking through all modules touches most of the interpreter's memory, so it is done once, before the fork (`plan`); the
fork then only writes what was found (`Plan.carry_out`).
"""

from __future__ import annotations

import sys
from typing import Any


class Plan:
    """Where the things to replace are held: dictionaries of modules, and the default arguments of functions."""

    def __init__(self, replacements: list[tuple[Any, Any]]) -> None:
        """`replacements` pairs what is there with what shall be there."""
        found = {id(old): new for old, new in replacements}
        self._replacements = replacements  # keeps what the ids stand for alive
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        for module in list(sys.modules.values()):
            if module is None or getattr(module, "__name__", "").startswith(__package__ or "?"):
                continue
            space = vars(module)
            self._names += [(space, name, found[id(item)]) for name, item in list(space.items()) if id(item) in found]

    def carry_out(self) -> None:
        """Write the replacements."""
        for space, name, new in self._names:
            space[name] = new
