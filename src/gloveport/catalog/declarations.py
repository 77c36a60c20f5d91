"""The declarations that a type checker needs for one program: of the tools that it mentions, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from gloveport.catalog import python_stubs, typescript_stubs
from gloveport.catalog.catalog import Catalog
from gloveport.types import Language, Tool

MAX_TOOLS = 100
MAX_MENTIONS = 2000
MAX_CACHED = 64
GUEST_VARIABLES = ("input", "emit", "step", "state", "files", "fetch")
_ACCESS_CHAIN = r"\b({roots})\b((?:\s*\??\.\s*[\w$]+|\s*\[\s*[\"'][\w$]+[\"']\s*\])*)"
_NAME = re.compile(r"[\w$]+")
_PYTHON_HEAD = f"""{python_stubs.HEAD}{python_stubs.ALIASES}
class _Open(type):
    def __getattr__(self, name: str) -> Any: ...
class ToolError(Exception):
    code: str
    tool: str
    message: str
    status: int | None
    data: Any
    retryable: bool
"""


def declarations(catalog: Catalog, code: str, language: Language) -> str:
    """Return what the type checker reads before the program: whole lines of TypeScript or Python."""
    tools = list(mentioned(catalog, code))
    cache, key = catalog.declaration_cache, (language == "python", *(path for path, _ in tools))
    if key not in cache:
        if len(cache) >= MAX_CACHED:
            cache.clear()
        cache[key] = _declare(catalog, tools, language)
    return cache[key]


def _declare(catalog: Catalog, tools: Sequence[tuple[str, Tool]], language: Language) -> str:
    if language == "python":
        names = "".join(f"{name}: Any\n" for name in GUEST_VARIABLES)
        roots = "".join(f"{name}: Any = tools.{name}\n" for name in sorted(catalog.roots))
        body = python_stubs.declaration(tools, checked=True)
        return f"{_PYTHON_HEAD}{body}codemode = tools\n{roots}{names}"
    names = "".join(f"declare var {name}: any;\n" for name in (*GUEST_VARIABLES[:-1], "ToolError"))
    roots = "".join(f"declare var {name}: typeof tools[{name!r}];\n" for name in sorted(catalog.roots))
    return f"{typescript_stubs.declaration(tools, checked=True)}declare var codemode: typeof tools;\n{roots}{names}"


def mentioned(catalog: Catalog, code: str) -> Iterator[tuple[str, Tool]]:
    """Yield the tools whose names appear in the code, each with the path that programs write."""
    roots = "|".join(["tools", "codemode", *map(re.escape, sorted(catalog.roots))])
    seen: set[str] = set()
    for count, found in enumerate(re.finditer(_ACCESS_CHAIN.format(roots=roots), code)):
        names = _NAME.findall(found[2])
        names = names if found[1] in ("tools", "codemode") else [found[1], *names]
        for length in range(len(names), 0, -1):
            tool = catalog.find(".".join(names[:length]))
            if tool is not None and tool.address not in seen:
                seen.add(tool.address)
                yield catalog.path_of(tool), tool
                break
        if len(seen) >= MAX_TOOLS or count >= MAX_MENTIONS:
            return
