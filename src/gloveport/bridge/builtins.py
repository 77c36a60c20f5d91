"""Built-in tools: `tools.search`, `tools.describe`, `tools.sources`, and the questions that the guest's prelude asks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, NamedTuple

from gloveport.bridge.received_errors import ReceivedErrors
from gloveport.bridge.tool_errors import without_paths
from gloveport.catalog import Catalog, UnknownPart, typescript_stubs
from gloveport.errors import CallLimit, ToolError
from gloveport.large_values import off_loop_if
from gloveport.policy import Policy
from gloveport.suggestions import question
from gloveport.types import CallRequest, Tool

DEFAULT_SEARCH_LIMIT, MAX_SEARCH_LIMIT = 10, 100
MAX_INTERFACES_CHARS = 200_000
MAX_DESCRIPTION_CHARS = 300
MAX_LISTED_SOURCES = 20
# Questions to the catalog have a budget of their own. Those that cost more than 1 take milliseconds on 10,000 tools.
MAX_QUESTIONS = 10_000
QUESTION_COST = {"search": 10, "describe": 10, "interface": 10, "interfaces": 100}
MAX_CUT_SEARCHES = 10
PARAMETERS = {"search": ("query", "source", "limit"), "describe": ("path", "at")}


class SearchPage(NamedTuple):
    """The first rows of a search, its query, and the number of all matches."""

    rows: list[dict[str, Any]]
    query: str
    total: int


class Builtins:
    """Implements the built-ins over the catalog, without calling a source. Each returns plain data, or a SearchPage."""

    def __init__(self, catalog: Catalog, policy: Policy, agent: str) -> None:
        self._catalog = catalog
        self._policy = policy
        self._agent = agent
        calls: Mapping[str, Callable[[list[Any]], Any]] = {
            "search": self._search,
            "describe": self._describe,
            "sources": self._sources,
            "executor.sources.list": self._sources,
        }
        # A caller's own tools may have these names.
        self.calls = {name: built_in for name, built_in in calls.items() if catalog.entry(name) is None}
        self.sync_calls: Mapping[str, Callable[[list[Any]], Any]] = {
            **self.calls,
            "names": self._names,
            "parameters": self._parameters,
            "pages": self._pages,
            "interfaces": self._interfaces,
            "interface": self._interface,
        }

    def _search(self, args: list[Any]) -> SearchPage:
        options: dict[str, Any] = {}
        for value in args:
            options |= value if isinstance(value, dict) else {} if value is None else {"query": value}
        query, source, limit = options.get("query", ""), options.get("source"), options.get("limit")
        limit = DEFAULT_SEARCH_LIMIT if limit is None else limit
        if not isinstance(query, str) or not isinstance(source, (str, type(None))):
            raise _bad_arguments("search", "takes a string, or {query, source?, limit?}")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise _bad_arguments("search", "takes a limit of 1 or more")
        if source is not None and source not in self._catalog.source_names and not self._catalog.source_problem(source):
            known = ", ".join(self._catalog.source_names[:MAX_LISTED_SOURCES])
            raise _bad_arguments("search", f"has no source `{source[:60]}`; the sources are {known}")
        found = self._catalog.search(query, source=source, limit=min(limit, MAX_SEARCH_LIMIT))
        return SearchPage([self._row(tool) for tool in found.tools], query, found.total)

    def _row(self, tool: Tool) -> dict[str, Any]:
        return {
            "path": self._catalog.path_of(tool),
            "description": tool.description[:MAX_DESCRIPTION_CHARS],
            "kind": tool.kind,
            "writes": tool.writes,
            "approval": self._policy.decide(CallRequest(tool, None, self._agent)).verdict == "ask",
        }

    def _describe(self, args: list[Any]) -> dict[str, Any]:
        options: dict[str, Any] = {}
        for value in args:
            options |= value if isinstance(value, dict) else {} if value is None else {"path": value}
        name, at = options.get("path", options.get("name")), options.get("at")
        if not isinstance(name, str) or not isinstance(at, (str, type(None))):
            raise _bad_arguments(
                "describe", 'takes the path of a tool, as tools.search gives it, and {at?: "items[].spec"}'
            )
        try:
            found = self._catalog.describe(name.removeprefix("tools."), at)
        except UnknownPart as error:
            raise _bad_arguments("describe", f"can't show this part: {error}") from None
        if found is None:
            raise unknown_tool_error(self._catalog, name.removeprefix("tools."))
        return asdict(found) | {"parameters": [dict(row) for row in found.parameters]}

    def _sources(self, args: list[Any]) -> list[dict[str, Any]]:
        counts = Counter(tool.source for tool in self._catalog.tools)
        kinds = {tool.source: tool.kind for tool in reversed(self._catalog.tools)}
        names = self._catalog.source_names
        return [{"name": name, "kind": kinds.get(name, "empty"), "tools": counts[name]} for name in names]

    def _names(self, args: list[Any]) -> list[str]:
        prefix = args[0] if args and isinstance(args[0], str) else ""
        return list(self._catalog.names(prefix))

    def _parameters(self, args: list[Any]) -> list[str]:
        name = args[0] if args and isinstance(args[0], str) else ""
        if name in self.calls:
            return list(PARAMETERS.get(name, ()))
        entry = self._catalog.entry(name)
        if entry is None:
            raise unknown_tool_error(self._catalog, name)
        return list(entry.tool.parameters)

    def _pages(self, args: list[Any]) -> bool:
        return bool(args) and isinstance(args[0], str) and self._catalog.has_pages(f"{args[0]}.pages")

    def _interfaces(self, args: list[Any]) -> str:
        listed: list[tuple[str, Tool]] = []
        size = 0
        for tool in self._catalog.tools:
            size += len(typescript_stubs.signature(tool)) + len(tool.description)
            if size > MAX_INTERFACES_CHARS:
                more = len(self._catalog.tools) - len(listed)
                return typescript_stubs.declaration(listed) + f"// and {more} more tools: use tools.search\n"
            listed.append((self._catalog.path_of(tool), tool))
        return typescript_stubs.declaration(listed)

    def _interface(self, args: list[Any]) -> str | None:
        found = self._catalog.describe(args[0]) if args and isinstance(args[0], str) else None
        return found.typescript if found else None


class RunQuestions:
    """What the program of one run asks about its tools, within a budget."""

    def __init__(self, builtins: Builtins, catalog: Catalog, errors: ReceivedErrors) -> None:
        self._builtins = builtins
        self._catalog = catalog
        self._errors = errors
        self._asked = 0
        self._cut_searches: dict[str, SearchPage] = {}

    @property
    def notes(self) -> list[str]:
        """Warnings about searches whose results were cut."""
        advice = "narrow it down, or raise its limit"
        cut = ((page.query[:60], len(page.rows), page.total) for page in self._cut_searches.values())
        return [f"tools.search({query!r}) gave {shown} of {total} tools: {advice}" for query, shown, total in cut]

    async def ask(self, name: str, args: Any) -> Any:
        """Return the result of a built-in. One that goes through tools or schemas does so away from the event loop."""
        self._asked += QUESTION_COST.get(name, 1)
        if self._asked > MAX_QUESTIONS:
            raise CallLimit("the program asked about its tools too often")
        if name == "search":
            await self._catalog.prepare_search()
        try:
            return await off_loop_if(name in QUESTION_COST, self._answer, name, args)
        except ToolError as problem:
            self._errors.add(problem)
            raise

    def _answer(self, name: str, args: Any) -> Any:
        builtin = self._builtins.sync_calls.get(name)
        if builtin is None:
            raise ToolError(f"there is no synchronous built-in `{name[:100]}`", code="unknown-tool")
        answer = builtin(args if isinstance(args, list) else [args])
        if not isinstance(answer, SearchPage):
            return answer
        if answer.total > len(answer.rows) and len(self._cut_searches) < MAX_CUT_SEARCHES:
            self._cut_searches[answer.query] = answer
        return answer.rows


def unknown_tool_error(catalog: Catalog, name: str, *, guess: bool = True) -> ToolError:
    """Return the ToolError for a name that no tool has; it suggests similar names unless `guess` is False."""
    shown = name if len(name) <= 200 else f"{name[:200]}…"
    if broken := catalog.source_problem(name):
        message = without_paths(broken.refusal(f"tools.{shown}"))
        return ToolError(message, code=broken.code, tool=shown, hint=broken.agent_hint, setting=broken.hint)
    similar = catalog.suggest(name) if guess else ()
    advice = ""
    if similar:
        advice = f"; {question([f'tools.{other}' for other in similar])}"
    elif catalog.is_namespace(name):
        advice = f"; it is a group of tools: {', '.join(catalog.names(name)[:10])}"
    return ToolError(
        f"no tool `tools.{shown}`{advice}", code="unknown-tool", hint="use tools.search to find the right name"
    )


def _bad_arguments(name: str, takes: str) -> ToolError:
    return ToolError(f"bad arguments for `tools.{name}`: it {takes}", code="bad-arguments", tool=name)
