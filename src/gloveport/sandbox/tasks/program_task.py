"""The tasks that read programs, in the jail: prepare one, explain a type checker's findings, or find what to look at."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any

from gloveport.errors import ProgramError
from gloveport.prepare import check, check_types, find_findings, prepare
from gloveport.prepare.subset import Subset
from gloveport.types import Importable, Problem, Program, Tool, TypeFinding

PREPARE = f"{__name__}:prepare_program"
REPORT_TYPES = f"{__name__}:report_types"
REPORT_FINDINGS = f"{__name__}:report_findings"
MAX_SPANS = 20_000
PACKAGES = ("tree_sitter", "tree_sitter_typescript")

Ask = Callable[[bytes], bytes | None]


def prepare_program(parts: list[bytes], ask: Ask) -> Iterator[bytes]:
    """Yield a prepared program: its facts as JSON, its code, and its code without types if it has types."""
    request, code = json.loads(parts[0]), parts[1].decode()
    program = _prepare(request, code)
    if request["roots"] is not None:
        check(program, _RemoteTools(request, ask))
    if len(program.spans) > MAX_SPANS or len(program.tool_access.names) > MAX_SPANS:
        message = f"the program is too complex: it has more than {MAX_SPANS:,} names or fenced parts"
        raise ProgramError(message, code="program-too-complex", hint="split the program")
    access = program.tool_access
    facts = {
        "dialect": program.dialect,
        "entry": program.entry,
        "spans": [[span.code, span.source, span.length] for span in program.spans],
        "tail": program.tail,
        "possible": access.possible,
        "names": [] if access.possible else sorted(access.names),
        "imports": [[found.name, found.kind, found.form] for found in program.imports],
        "is_light": program.is_light,
    }
    yield json.dumps(facts).encode()
    yield program.code.encode()
    if program.erased is not None:
        yield program.erased.encode()


def report_types(parts: list[bytes], ask: Ask) -> Iterator[bytes]:
    """Yield the advice that follows from the findings of a type checker; raise the ProgramError that stops the program."""
    request, code = json.loads(parts[0]), parts[1].decode()
    findings = [TypeFinding(*finding) for finding in request["findings"]]
    report = check_types(_prepare(request, code), _RemoteTools(request, ask), findings, request["lines_before"])
    if report.error is not None:
        raise report.error
    yield json.dumps(report.advice).encode()


def report_findings(parts: list[bytes], _ask: Ask) -> Iterator[bytes]:
    """Yield what a person should look at in a program: kinds and lines."""
    request, code = json.loads(parts[0]), parts[1].decode()
    yield json.dumps(find_findings(_prepare(request, code))).encode()


def rehearse() -> None:
    """Read a few small programs, so that the modules are loaded and the parsers are warm."""
    schema = {"type": "object", "properties": {"c": {"type": "string"}}}
    tools = {"a.b": {"tool": {"address": "a.b", "named": ["c"], "schema": schema, "pages": False}}}
    programs = {
        "typescript": "const x: number = await tools.a.b({c: 'd'}); for (const y of [x]) { console.log(y); } ({x})",
        "python": "x = await tools.a.b(c='d')\nfor y in [x]:\n    print(f'{y}')\n{'x': x}",
    }
    for language, code in programs.items():
        request = {"language": language, "subset": None, "max_code_bytes": 1000, "roots": ["a"], "tools": tools}
        findings = {"findings": [[1, 1, 1, 2, "Expected `str`, found `int`", ""]], "lines_before": 0}
        for task in (prepare_program, report_types, report_findings):
            for text in (code, f"```\n{code}\n```", "(", "tools.q()"):
                try:
                    list(task([json.dumps(request | findings).encode(), text.encode()], _know_nothing))
                except ProgramError:
                    continue


def _know_nothing(_question: bytes) -> bytes:
    return b'{"tool": null, "namespace": false, "problem": null, "similar": []}'


def _prepare(request: dict[str, Any], code: str) -> Program:
    subset, lighter = _subset(request["subset"]), _subset(request.get("lighter"))
    limit, given = request["max_code_bytes"], request.get("importable")
    importable = None
    if given:
        builtins, packages, files = (frozenset(given[name]) for name in ("builtins", "packages", "files"))
        importable = Importable(builtins, packages, files, given["folder"], given["beside"])
    subsets = {"subset": subset, "lighter": lighter}
    return prepare(code, language=request["language"], max_code_bytes=limit, importable=importable, **subsets)


def _subset(module: str | None) -> Subset | None:
    return sys.modules[module].SUBSET if module else None


class _RemoteTools:
    """The catalog as a task sees it: what the host sent along about the names in the text, and what it answers."""

    def __init__(self, request: dict[str, Any], ask: Ask) -> None:
        self.roots: frozenset[str] = frozenset(request["roots"])
        self._known: dict[str, Any] = request["tools"]
        self._ask = ask

    def find(self, name: str) -> Tool | None:
        found = self._look_up(name)["tool"]
        if not found:
            return None
        return Tool(found["address"], "", found["schema"], pages=found["pages"], named=tuple(found["named"]))

    def suggest(self, name: str) -> tuple[str, ...]:
        return tuple(self._look_up(name)["similar"])

    def source_problem(self, name: str) -> Problem | None:
        found = self._look_up(name)["problem"]
        return Problem(**found) if found else None

    def is_namespace(self, name: str) -> bool:
        return self._look_up(name)["namespace"]

    def _look_up(self, name: str) -> dict[str, Any]:
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = json.loads(self._ask(name.encode()) or b"null")
        return found
