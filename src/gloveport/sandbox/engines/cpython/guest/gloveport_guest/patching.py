"""Replace functions of the platform by ours, wherever a module of the standard library refers to one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import FunctionType
from typing import Any

OURS = __name__.partition(".")[0]


def replace_everywhere(replacements: list[tuple[Any, Any]]) -> None:
    """Replace the first of each pair by the second, as a name in any module and as the default of an argument."""
    found = {id(old): new for old, new in replacements}
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", OURS).startswith(OURS):
            continue
        space = vars(module)
        for name in [name for name, item in space.items() if id(item) in found]:
            space[name] = found[id(space[name])]
        for function in _functions(space):
            defaults = function.__defaults__ or ()
            if any(id(item) in found for item in defaults):
                function.__defaults__ = tuple(found.get(id(item), item) for item in defaults)


def _functions(space: dict[str, Any]) -> Iterator[FunctionType]:
    for item in list(space.values()):
        if isinstance(item, FunctionType):
            yield item
        elif isinstance(item, type):
            yield from (member for member in list(vars(item).values()) if isinstance(member, FunctionType))
