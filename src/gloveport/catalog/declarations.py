"""The declarations that a type checker needs for one program: of the tools that it mentions, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from gloveport.catalog import python_stubs, typescript_stubs
from gloveport.catalog.catalog import MAX_NAME_CHARS, PAGES_SUFFIX, Catalog
from gloveport.types import Language, Tool

MAX_TOOLS = 100
MAX_MENTIONS = 2000
MAX_CACHED = 64
GUEST_VARIABLES = ("input", "emit", "state", "files")
MAX_STEPS = 32  # of a chain: tools.a.b.c
_NAME = re.compile(r"[\w$]+")
_STEP = re.compile(r"\s{0,100}(?:\??\.\s{0,100}([\w$]+)|\[\s{0,100}[\"']([\w$]+)[\"']\s{0,100}\])")
_PYTHON_HEAD = f"""{python_stubs.HEAD}from typing import Awaitable, Callable, Coroutine, TypeVar, overload
{python_stubs.ALIASES}from collections.abc import Mapping as _Mapping
class _Open(type):
    def __getattr__(self, name: str) -> Any: ...
"""
_PYTHON_PARTS = {
    "ToolError": """class ToolError(Exception):
    code: str
    origin: str
    tool: str
    message: str
    status: int | None
    data: Any
    retryable: bool
    hint: str | None
    def __init__(self, message: str = ..., **fields: Any) -> None: ...
""",
    "step": """_T = TypeVar("_T")
class _Step:
    def __enter__(self) -> None: ...
    def __exit__(self, *error: Any) -> None: ...
    async def __aenter__(self) -> None: ...
    async def __aexit__(self, *error: Any) -> None: ...
@overload
def step(name: str) -> _Step: ...
@overload
def step(name: str, fn: Callable[..., Awaitable[_T]], *args: Any) -> Coroutine[Any, Any, _T]: ...
@overload
def step(name: str, fn: Callable[..., _T], *args: Any) -> Coroutine[Any, Any, _T]: ...
""",
    "fetch": """class _Response:
    status: int
    ok: bool
    reason: str
    headers: _Mapping[str, str]
    url: str
    redirected: bool
    body: bytes
    def text(self) -> str: ...
    def json(self) -> Any: ...
async def fetch(
    url: str, *, method: str | None = ..., headers: _Mapping[str, str] | None = ...,
    body: str | bytes | _Mapping[str, Any] | None = ..., json: Any = ..., redirect: str = ...
) -> _Response: ...
""",
}
"""What the checker needs for a program that has the name: it takes most of the time that a short program takes."""
_TYPESCRIPT_PARTS = {
    "ToolError": """declare class ToolError extends Error {
  constructor(message?: string, fields?: any);
  code: string; origin: string; tool: string; status?: number; data: any; retryable: boolean; hint?: string;
}
""",
    "step": "declare function step<T>(name: string, run: () => T | PromiseLike<T>): Promise<T>;\n",
}


def declarations(catalog: Catalog, code: str, language: Language) -> str:
    """Return what the type checker reads before the program: whole lines of TypeScript or Python."""
    tools = list(mentioned(catalog, code))
    cache, key = catalog.declaration_cache, _key(tools, code, language)
    if key not in cache:
        if len(cache) >= MAX_CACHED:
            cache.clear()
        cache[key] = _declare(catalog, tools, code, language)
    return cache[key]


def known_declarations(catalog: Catalog, code: str, language: Language) -> str | None:
    """Return what `declarations` returns, if it has returned the same for another program."""
    return catalog.declaration_cache.get(_key(mentioned(catalog, code), code, language))


def mentions_types(catalog: Catalog, code: str) -> bool:
    """Return whether the code mentions a tool whose arguments or result have a type."""
    return any(tool.takes == "object" or tool.output_schema is not None for _, tool in mentioned(catalog, code))


def _key(tools: Iterable[tuple[str, Tool]], code: str, language: Language) -> tuple[object, ...]:
    return (language == "python", *(name in code for name in _PYTHON_PARTS), *(path for path, _ in tools))


def _declare(catalog: Catalog, tools: Sequence[tuple[str, Tool]], code: str, language: Language) -> str:
    known = _PYTHON_PARTS if language == "python" else _TYPESCRIPT_PARTS
    parts = "".join(part for name, part in known.items() if name in code)
    if language == "python":
        names = "".join(f"{name}: Any = tools\n" for name in GUEST_VARIABLES)
        roots = "".join(f"{name}: Any = tools.{name}\n" for name in sorted(catalog.roots))
        body = python_stubs.declaration(tools, checked=True)
        return f"{_PYTHON_HEAD}{parts}{body}codemode = tools\n{roots}{names}"
    names = "".join(f"declare var {name}: any;\n" for name in GUEST_VARIABLES)
    roots = "".join(f"declare var {name}: typeof tools[{name!r}];\n" for name in sorted(catalog.roots))
    body = typescript_stubs.declaration(tools, checked=True)
    return f"{parts}{body}declare var codemode: typeof tools;\n{roots}{names}"


def mentioned(catalog: Catalog, code: str) -> Iterator[tuple[str, Tool]]:
    """Yield the tools whose names appear in the code, each with the path that the code writes.

    It looks at each word of the code, in Python: one expression for all sources would hold the interpreter lock.
    """
    seen: set[str] = set()
    done = mentions = 0
    for word in _NAME.finditer(code):
        root = word[0]
        if word.start() < done or (root not in ("tools", "codemode") and root not in catalog.roots):
            continue
        names, done = _chain(code, word.end())
        names = names if root in ("tools", "codemode") else [root, *names]
        for length in range(len(names), 0, -1):
            name = ".".join(names[:length])
            tool = catalog.find(name)
            path = name.removesuffix(PAGES_SUFFIX) if catalog.has_pages(name) else name
            if tool is not None and path not in seen:
                seen.add(path)
                yield path, tool
                break
        mentions += 1
        if len(seen) >= MAX_TOOLS or mentions > MAX_MENTIONS:
            return


def _chain(code: str, at: int) -> tuple[list[str], int]:
    """Return the names that are read off a root one after the other, and where the last of them ends."""
    names: list[str] = []
    while len(names) < MAX_STEPS and (step := _STEP.match(code, at)):
        names.append((step[1] or step[2])[:MAX_NAME_CHARS])
        at = step.end()
    return names, at
