"""The tools of an agent over a port: `search`, `describe`, `execute` and `resume`.

The MCP server and `code_tool` use the same implementation. Each answer is plain data and a text for the model. Both are
bounded, and nothing is cut silently: a cut answer says so, and `execute({result_id, offset})` reads on.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jsonschema_rs

from gloveport.bridge.validation_errors import describe_errors
from gloveport.catalog import Catalog, UnknownPart
from gloveport.catalog.descriptions import declare
from gloveport.errors import OptionError
from gloveport.errors.codes import HINTED_FOR_PROGRAMS
from gloveport.host.port import NO_INPUT, Gloveport, OnEvent
from gloveport.host.runs.held_runs import is_large_outcome
from gloveport.large_values import off_loop, off_loop_if
from gloveport.suggestions import did_you_mean, question
from gloveport.surfaces.agents.plan_answer import plan_answer
from gloveport.surfaces.agents.result_store import ResultStore
from gloveport.surfaces.agents.tool_descriptions import DEFAULT_SEARCH_LIMIT, INPUT_SCHEMAS, AgentTool, describe_tools
from gloveport.surfaces.documents import failure_document, to_text
from gloveport.surfaces.terminal import visible_line
from gloveport.types import DEFAULT_AGENT, Failure, Outcome, Problem, RunMode, Tool
from gloveport.values import to_json

HOW_TO_ANSWER = "gloveport approvals list"
MAX_TEXT_CHARS = 24_000
MAX_SUMMARY_CHARS = 200
MAX_ROWS = 50
MAX_WAITING_RUNS = 32
MAX_WARNING_CHARS = 1000
SIGN_IN_COMMAND = re.compile(r"`gloveport auth [^`]{1,200}`")
_SIGNED_IN_SOURCE = re.compile(r"`gloveport auth login ([A-Za-z0-9_-]+)")
# The fields of an error that stay in the data when its text is too long; the others are in the text.
_SHORT_ERROR_FIELDS = ("code", "type", "line", "column", "tool", "status", "origin")


@dataclass(frozen=True, slots=True)
class AgentAnswer:
    """An answer to an agent: data that matches the tool's output schema, the text for the model, and emitted values.

    `setting` is for the person who runs the server, and never for the agent.
    """

    data: Mapping[str, Any]
    text: str
    failed: bool = False
    emitted: tuple[Any, ...] = ()
    setting: str | None = None


class AgentTools:
    """The tools of one agent over a port. Results that are too long for one text are stored here, for this agent alone."""

    def __init__(
        self,
        port: Gloveport,
        *,
        agent: str = DEFAULT_AGENT,
        max_chars: int = MAX_TEXT_CHARS,
        reads_on: bool = True,
        pages: str = "",
    ) -> None:
        self._port = port
        self._agent = agent
        self._pages = pages  # where a person of this machine finds the web pages, if there are any
        self._max_chars = max_chars
        self._reads_on = reads_on  # whether the agent has `execute`, with which it reads on in a long result
        self._results = ResultStore()

    def descriptions(self, catalog: Catalog | None = None, *, opening: bool = False) -> tuple[AgentTool, ...]:
        """Return the tools as models see them; their descriptions name the sources of the agent's catalog."""
        return describe_tools(self._port, self._agent, catalog or self._port.catalog, opening=opening)

    async def call(self, name: str, args: Mapping[str, Any], on_event: OnEvent | None = None) -> AgentAnswer:
        """Return the answer of a tool; raises OptionError for invalid arguments."""
        _check(name, args)
        await self._port.connect(naming=" ".join([args.get("code", ""), args.get("source", ""), *args.get("paths", ())]))
        if name == "resume":
            return await self._outcome_answer(await self._port.resume(args["run"], agent=self._agent))
        if name == "execute":
            return await self._execute(args, on_event)
        catalog = await self._port.catalog_of(self._agent)
        if name == "search":
            await catalog.prepare_search()
            return await off_loop(self._search, catalog, args)
        return await off_loop(self._describe, catalog, args)

    async def run_with(self, program: str, args: Mapping[str, Any], on_event: OnEvent | None = None) -> AgentAnswer:
        """Run a program of ours with these arguments as input, for a client that writes none itself."""
        self._check_waiting()
        outcome = await self._port.run(program, input=dict(args), agent=self._agent, on_event=on_event, attach=True)
        if (error := outcome.error) is not None:  # a place in a text that the client has not seen says nothing
            hint = None if error.origin == "gloveport" and error.code in HINTED_FOR_PROGRAMS else error.hint
            outcome = replace(outcome, error=replace(error, line=None, column=None, frame=None, hint=hint))
        return await self._outcome_answer(outcome)

    def fit(self, text: str) -> tuple[str, dict[str, Any]]:
        """Return the text, or its beginning and how to read on if it is too long."""
        text = replace_surrogates(text)
        if len(text) <= self._max_chars:
            return text, {}
        if not self._reads_on:
            return text[: self._max_chars], {"length": len(text)}
        result_id = self._results.put(text)
        return text[: self._max_chars], {"result_id": result_id, "next_offset": self._max_chars, "length": len(text)}

    def _search(self, catalog: Catalog, args: Mapping[str, Any]) -> AgentAnswer:
        source = args.get("source")
        self._check_source(catalog, source)
        found = catalog.search(args["query"], source=source, limit=int(args.get("limit", DEFAULT_SEARCH_LIMIT)))
        rows = [
            {
                "path": catalog.path_of(tool),
                "description": visible_line(tool.description.strip().partition("\n")[0])[:MAX_SUMMARY_CHARS],
                "writes": tool.writes,
                "pages": tool.pages,
            }
            for tool in found.tools
        ]
        more = " (be more precise to see the others)" if found.total > len(rows) else ""
        lines = [f"{len(rows):,} of {found.total:,}{more}"]
        lines += [f"tools.{row['path']}{' [writes]' if row['writes'] else ''} - {row['description']}" for row in rows]
        if not rows:
            lines.append("Nothing matches; try other words, or an empty query for everything.")
        lines += [f"NOT connected: {visible_line(one.message)}" for one in self._problems(catalog)[:MAX_ROWS]]
        return AgentAnswer({"tools": rows, "total": found.total}, "\n".join(lines))

    def _problems(self, catalog: Catalog) -> list[Problem]:
        """Return the problems of sources that are not connected, as far as they concern the agent."""
        return [one for one in self._port.problems if one.broken and catalog.tells_of(one)]

    def _check_source(self, catalog: Catalog, source: str | None) -> None:
        names = catalog.source_names
        if source is None or source in names:
            return
        broken = next((one for one in self._problems(catalog) if one.source == source), None)
        if broken:
            message = f"the source `{source}` is not connected: {visible_line(broken.message)}"
            raise OptionError(message, hint=broken.agent_hint)
        known = f"the sources are {', '.join(names)}" if names else "no source is connected"
        raise OptionError(
            f"there is no source `{visible_line(source)[:60]}`", hint=did_you_mean(source[:60], names) or known
        )

    def _describe(self, catalog: Catalog, args: Mapping[str, Any]) -> AgentAnswer:
        is_python = args.get("language") == "python"
        found: dict[str, Tool] = {}
        missing = []
        for path in dict.fromkeys(args["paths"]):
            name = path.removeprefix("tools.")
            tool = catalog.find(name)
            if tool is None:
                missing.append({"path": path, "similar": list(catalog.suggest(name))})
            else:
                found[catalog.path_of(tool)] = tool
        try:
            parts = [declare(found.items(), "python" if is_python else "typescript", args.get("at"))] if found else []
        except UnknownPart as error:
            raise OptionError(
                f"`at`: {error}", hint='give the place of a part of the result, such as "items[].spec"'
            ) from None
        mark = "#" if is_python else "//"
        for row in missing:
            advice = f"; {question(row['similar'])}" if row["similar"] else "; use search"
            parts.append(f"{mark} no tool {visible_line(row['path'])}{advice}")
        if paged := [path for path, tool in found.items() if tool.pages]:
            how = "`async for page in ….pages(…)`" if is_python else "`for await (const page of ….pages({…}))`"
            parts.append(f"{mark} {', '.join(paged)}: {how} goes through all pages")
        shown, rest = self.fit("\n".join(parts))
        data = {"declarations": shown, "missing": missing, **rest}
        return AgentAnswer(data, shown + _read_on_text(rest), failed=bool(missing and not found))

    async def _execute(self, args: Mapping[str, Any], on_event: OnEvent | None) -> AgentAnswer:
        if ("result_id" in args) == ("code" in args):
            problem = "give either `code` or `result_id`, not both" if "code" in args else "`code` is missing"
            raise OptionError(problem, hint="`code` is the program's text; `result_id` reads on in a long result")
        if not args.get("code", "x").strip():
            raise OptionError("`code` is blank", hint="`code` is the program's text")
        if "result_id" in args:
            return self._read_on(args["result_id"], int(args.get("offset", 0)))
        self._check_waiting()
        language = args.get("language", "typescript")
        given = args.get("input", NO_INPUT)
        code, agent = args["code"], self._agent
        mode: RunMode = "plan" if args.get("plan") else "run"
        asked = {"language": language, "input": given, "agent": agent, "mode": mode, "session": args.get("session")}
        outcome = await self._port.run(code, **asked, on_event=on_event, attach=True)
        return await self._outcome_answer(outcome)

    def _check_waiting(self) -> None:
        """Refuse a further program while many wait for a person: each holds a process, and no place in the queue."""
        asked = self._port.approvals.waiting if self._port.holds_runs else ()
        if len({one.run for one in asked if one.agent == self._agent}) >= MAX_WAITING_RUNS:
            hint = f"Ask the user to answer in a terminal: {HOW_TO_ANSWER}"
            raise OptionError(f"{MAX_WAITING_RUNS} programs wait for a person already", code="busy", hint=hint)

    async def _outcome_answer(self, outcome: Outcome) -> AgentAnswer:
        if outcome.status == "waiting":
            return self._waiting_answer(outcome)
        return await off_loop_if(is_large_outcome(outcome), self._to_answer, outcome)

    def _waiting_answer(self, outcome: Outcome) -> AgentAnswer:
        """Return what an agent is told while a person is asked: what waits, and what to do. It is no failure."""
        waiting = [call for call in outcome.calls if call.status == "waiting"]
        rows = [f"tools.{call.tool} {to_text(to_json(call.args), indented=False)}" for call in waiting]
        asked = self._port.approvals.waiting if self._port.holds_runs else ()
        reads = dict.fromkeys(str(read) for one in asked if one.run == outcome.run for read in one.reads)
        count = "1 call" if len(rows) == 1 else f"{len(rows):,} calls"
        # Some clients show a model the data alone, so it has to say what to do.
        todo = (
            f"Ask the user to answer in a terminal: {HOW_TO_ANSWER}\n"
            f'Then call resume({{run: "{outcome.run}"}}). Don\'t run the program again: it goes on where it is.'
        )
        text, rest = self.fit(
            "\n".join(
                [
                    f"The program waits for a person to approve {count}:",
                    *(f"- {visible_line(row)}" for row in rows),
                    *(["It could send out private data, after these reads:"] if reads else []),
                    *(f"- {visible_line(read)}" for read in reads),
                    todo,
                ]
            )
        )
        data = {
            "status": "waiting",
            "run": outcome.run,
            "calls": _calls(outcome),
            "waiting": len(rows),
            "next": todo,
            **rest,
        }
        data["logs"], shown = self._logs(outcome)
        return AgentAnswer(data, "\n".join([text + _read_on_text(rest), *shown]), emitted=outcome.emitted)

    def _logs(self, outcome: Outcome) -> tuple[str, list[str]]:
        """Return what the program has logged, and the part of the text that shows it."""
        logs, more = self.fit("\n".join(line.text for line in outcome.logs))
        whole = logs + _read_on_text(more)
        return whole, [f"--- logs ---\n{whole}"] if logs else []

    def _to_answer(self, outcome: Outcome) -> AgentAnswer:
        data: dict[str, Any] = {"status": outcome.status, "run": outcome.run, "calls": _calls(outcome)}
        if outcome.error is not None:
            failure = with_sign_in(outcome.error, self._pages)
            outcome = replace(outcome, error=failure)
            text, rest = self.fit(_failure_text(outcome))
            # What the user could change is for the user alone: an agent must not be led to change it itself.
            hidden = {"setting"}
            document = failure_document(failure)
            error = {name: each for name, each in document.items() if each is not None and name not in hidden}
            shown = {name: error[name] for name in _SHORT_ERROR_FIELDS if name in error} if rest else error
            data["error"] = replace_surrogates(shown)
            data |= {"preview": text, **rest} if rest else {}
        else:
            value = to_json(outcome.value)
            text, rest = self.fit(value if isinstance(value, str) else to_text(value, indented=False))
            data |= {"preview": text, **rest} if rest else {"value": replace_surrogates(value)}
            text = text if value is not None else "(no value)"
        if outcome.plan is not None:
            planned, data["plan"] = plan_answer(outcome.plan, self.fit, resumes=self._port.holds_runs)
            text = f"{planned}\n--- result, with made-up values ---\n{text}"
        data["logs"], shown_logs = self._logs(outcome)
        data["warnings"] = [replace_surrogates(warning[:MAX_WARNING_CHARS]) for warning in _first_rows(outcome.warnings)]
        parts = [text + _read_on_text(rest), *shown_logs]
        parts += [f"warning: {warning}" for warning in data["warnings"]]
        setting = outcome.error.setting if outcome.error is not None else None
        return AgentAnswer(data, "\n".join(parts), failed=not outcome.ok, emitted=outcome.emitted, setting=setting)

    def _read_on(self, result_id: str, offset: int) -> AgentAnswer:
        whole = self._results.get(result_id)
        if whole is None:
            hint = "only the latest results are kept; run the program again if it only reads"
            raise OptionError(f"there is no result `{visible_line(result_id)[:60]}`", hint=hint)
        if offset > len(whole):
            raise OptionError(f"offset {offset:,} is beyond the end: the result has {len(whole):,} characters")
        part, end = whole[offset : offset + self._max_chars], offset + self._max_chars
        rest = {"result_id": result_id, "next_offset": end, "length": len(whole)} if end < len(whole) else {}
        return AgentAnswer({"status": "completed", "preview": part, **rest}, part + _read_on_text(rest))


def _check(name: str, args: Mapping[str, Any]) -> None:
    schema = INPUT_SCHEMAS.get(name)
    if schema is None:
        raise OptionError(f"there is no tool `{visible_line(name)[:60]}`", hint=f"the tools are {', '.join(INPUT_SCHEMAS)}")
    validator = _validator(name)
    if not validator.is_valid(args):
        raise OptionError(describe_errors(validator, args, Tool(f"agent.{name}", "", schema)))


@cache
def _validator(name: str) -> jsonschema_rs.Validator:
    return jsonschema_rs.validator_for(dict(INPUT_SCHEMAS[name]))


def _calls(outcome: Outcome) -> list[dict[str, Any]]:
    """Return how many calls of each tool succeeded and failed: a program may make a thousand calls."""
    ok = Counter(call.tool for call in outcome.calls if call.status == "ok")
    failed = Counter(call.tool for call in outcome.calls if call.status == "failed")
    tools = list(dict.fromkeys(call.tool for call in outcome.calls))
    rows = [{"tool": tool, "ok": ok[tool], "failed": failed[tool]} for tool in tools[:MAX_ROWS]]
    rest = len(tools) - len(rows)
    return [*rows, {"tool": f"… and {rest} more tools"}] if rest > 0 else rows


def with_sign_in(error: Failure, pages: str = "") -> Failure:
    """Return the failure with the command that signs in, and the page where there are pages.

    Of all settings an agent gets this one: it needs a person.
    """
    if (error.code, error.origin) != ("auth-required", "gloveport"):
        return error
    commands = SIGN_IN_COMMAND.findall(error.setting or "")
    if not commands:
        return error
    found = _SIGNED_IN_SOURCE.search(error.setting or "")
    page = f"sign in at {pages}/sources/{found[1]}, or to " if found and pages else ""
    return replace(error, hint=f"Ask the user to {page}run {' or '.join(commands)}.")


def _failure_text(outcome: Outcome) -> str:
    error = outcome.error
    assert error is not None
    lines = [str(replace(error, setting=None))]
    lines += [f"data: {to_text(to_json(error.data), indented=False)}"] if error.data is not None else []
    if made := Counter(call.tool for call in outcome.calls if call.status == "ok"):
        counts = [f"{tool} × {count}" for tool, count in made.items()]
        lines.append(f"calls that were made before: {', '.join(_first_rows(counts))}")
    return "\n".join(lines)


def _first_rows(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - MAX_ROWS
    return [*texts[:MAX_ROWS], f"… and {rest:,} more"] if rest > 0 else list(texts)


def _read_on_text(rest: Mapping[str, Any]) -> str:
    if not rest:
        return ""
    if "result_id" not in rest:
        return f"\n[cut: the whole has {rest['length']:,} characters; ask for less]"
    shown = f"{rest['next_offset']:,} of {rest['length']:,} characters"
    return f'\n[{shown}; read on with execute({{result_id: "{rest["result_id"]}", offset: {rest["next_offset"]}}})]'


def replace_surrogates(value: Any) -> Any:
    """Return the value with U+FFFD for lone surrogates: JavaScript strings may have them, UTF-8 can't encode them."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    elif isinstance(value, list):
        return [replace_surrogates(item) for item in value]
    elif isinstance(value, dict):
        return {replace_surrogates(key): replace_surrogates(item) for key, item in value.items()}
    return value
