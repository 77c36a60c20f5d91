"""Putting our functions in the place of the platform's, wherever a module of the standard library holds on to one.

Looking through all modules touches most of the interpreter's memory, so it is done once, before the fork (`Plan`); the
fork then only writes what was found (`carry_out`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

OURS = __name__.partition(".")[0]


class Plan:
    """Where the things to replace are held: the names of modules, and the default arguments of functions."""

    def __init__(self, replacements: list[tuple[Any, Any]]) -> None:
        """`replacements` pairs what is there with what shall be there."""
        found = {id(old): new for old, new in replacements}
        self._replacements = replacements  # keeps what the ids stand for alive
        self._names: list[tuple[dict[str, Any], str, Any]] = []
        self._defaults: list[tuple[FunctionType, tuple[Any, ...]]] = []
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", OURS).startswith(OURS):
                continue
            space = vars(module)
            self._names += [(space, name, found[id(item)]) for name, item in list(space.items()) if id(item) in found]
            for function in _functions(space):
                defaults = function.__defaults__ or ()
                if any(id(item) in found for item in defaults):
                    self._defaults.append((function, tuple(found.get(id(item), item) for item in defaults)))

    def carry_out(self) -> None:
        """Write the replacements."""
        for space, name, new in self._names:
            space[name] = new
        for function, defaults in self._defaults:
            function.__defaults__ = defaults


def _functions(space: dict[str, Any]) -> Iterator[FunctionType]:
    for item in list(space.values()):
        if isinstance(item, FunctionType):
            yield item
        elif isinstance(item, type):
            yield from (member for member in list(vars(item).values()) if isinstance(member, FunctionType))
