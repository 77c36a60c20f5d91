"""Python, in every form that agents write it → a module for the guest, in which lines keep their numbers.

    layout          finds the code in the text: fences, margins, prompts
    parser          bounded parse into CPython's syntax tree; `lexer` measures large texts before
    syntax_errors   the diagnostic of code that does not parse; `mistakes` supplies hints
    scopes          what CPython refuses only when it compiles; fills the `survey`
    imports, foreign_names   refuse packages that are not there, and names of other languages (`null`)
    entry           finds the function to call
    tool_access     whether the program can reach tools
    calls           the tool calls that can be read off the text
    findings        what a person should look at before they approve a call

The guest runs a "body" with top-level `await` and `return`, and a trailing expression is the result. In a program of
definitions it calls the function `main`: a program with one function gets `main` as a second name for it. For an engine
with a subset of Python, that subset refuses what the engine lacks, and rewrites a little.
"""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import NoReturn

from gloveport.errors import ProgramError
from gloveport.prepare.diagnostics import program_error
from gloveport.prepare.mistakes import name_character
from gloveport.prepare.positions import Edit, compose_spans, nearest_source_offset, rewrite
from gloveport.prepare.python.entry import entry_function, guarded_result, takes_arguments
from gloveport.prepare.python.foreign_names import foreign_name
from gloveport.prepare.python.imports import imported, refused
from gloveport.prepare.python.layout import Layout, layouts, too_long
from gloveport.prepare.python.parser import LineIndex, PythonTooDeepError, TooLargeError, parse
from gloveport.prepare.python.scopes import survey
from gloveport.prepare.python.survey import PythonSurvey, place_of
from gloveport.prepare.python.syntax_errors import TOO_DEEP, TOO_DEEP_HINT, explain
from gloveport.prepare.python.tool_access import tool_access
from gloveport.prepare.subset import PythonSubset
from gloveport.types import Importable, Program, ToolAccess


def prepare_python(source: str, subset: PythonSubset | None = None, importable: Importable | None = None) -> Program:
    """Return the program of a text, for an engine of this subset: find it, and refuse what can't run."""
    packages = importable.packages if importable is not None else frozenset[str]()
    layout, tree = _read(source)
    if result := guarded_result(tree):
        layout = _with_return(layout, result)
        tree = _parse(layout)
    found = survey(tree, subset.node_kinds if subset else ())
    if found.faults:
        lines = LineIndex(layout.code)
        fault = min(found.faults, key=lambda fault: place_of(fault.node))
        start = lines.start(fault.node)
        _fail(layout, start, fault.message, fault.hint, length=lines.end(fault.node) - start)
    refusal = refused(found.imports, layout.code, packages if subset is None else None)
    if refusal:
        try:
            _fail(layout, refusal.start, refusal.message, refusal.hint, code="import-refused", length=refusal.length)
        except ProgramError as error:
            error.package = refusal.package
            raise
    foreign = foreign_name(tree, layout.code)
    if foreign:
        start = LineIndex(layout.code).start(foreign.node)
        _fail(layout, start, foreign.message, foreign.hint, length=len(foreign.node.id))
    function = entry_function(tree, layout.code)
    access = tool_access(tree, found.names, given=function is not None and takes_arguments(tree, function))
    if subset is not None:
        return replace(_program_in(subset, layout, tree, found, function), tool_access=access)
    imports = imported([*found.imports, *found.optional_imports], packages)
    access = ToolAccess() if imports else access  # a package may call tools, too
    return replace(_program(layout, function, _tail(tree), access), imports=imports)


def parses(source: str) -> bool:
    """Return whether the text is a Python program that does something."""
    try:
        _, tree = _read(source)
    except ProgramError:
        return False
    return bool(tree.body)


def _with_return(layout: Layout, expression: ast.expr) -> Layout:
    """Return the layout with a `return` before an expression statement of the top level."""
    start = LineIndex(layout.code).start(expression)
    code, spans = rewrite(layout.code, [Edit(start, start, "return ")])
    return Layout(layout.source, code, compose_spans(spans, layout.spans))


def _program_in(
    subset: PythonSubset, layout: Layout, tree: ast.Module, found: PythonSurvey, function: str | None
) -> Program:
    unsupported = subset.find_unsupported(found, tree)
    if unsupported:
        lines = LineIndex(layout.code)
        start = lines.start(unsupported.node)
        length = lines.end(unsupported.node) - start
        message = f"the engine `{subset.engine}` has no {unsupported.what}"
        _fail(layout, start, message, subset.hint, code="engine-lacks", length=length)
    code, spans = rewrite(layout.code, subset.edits(found, tree, layout.code))
    if function:
        code += subset.entry_calls(tree, function)
    entry = "function" if function else "body"
    return Program("python", layout.source, code, "python", entry, compose_spans(spans, layout.spans))


def _program(layout: Layout, function: str | None, tail: int | None, access: ToolAccess) -> Program:
    code = layout.code
    if function not in {None, "main"}:
        code += f"\nmain = {function}\n"
    entry = "function" if function else "body"
    return Program("python", layout.source, code, "python", entry, layout.spans, tail, tool_access=access)


def _tail(tree: ast.Module) -> int | None:
    """Return the line where a trailing expression starts; 0 without one, None if something stands before it."""
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        return 0
    return last.lineno if last.col_offset == 0 else None


def _read(source: str) -> tuple[Layout, ast.Module]:
    """Return the layout that parses; raise the diagnostic of the likeliest one otherwise."""
    first: Exception | None = None
    for layout in layouts(source):
        try:
            return layout, _parse(layout)
        except ProgramError as error:
            first = first or error
    assert first
    raise first


def _parse(layout: Layout) -> ast.Module:
    hidden = layout.code.find("\0")
    if hidden >= 0:
        _fail(layout, hidden, *name_character("\0"))
    try:
        return parse(layout.code)
    except SyntaxError as error:
        raise explain(layout, error) from None
    except PythonTooDeepError as error:
        _fail(layout, error.offset, TOO_DEEP, TOO_DEEP_HINT)
    except TooLargeError as error:
        raise too_long(layout.source, nearest_source_offset(layout.spans, error.offset), error.what) from None


def _fail(
    layout: Layout, offset: int, message: str, hint: str | None, *, code: str = "syntax-error", length: int = 1
) -> NoReturn:
    where = nearest_source_offset(layout.spans, offset)
    raise program_error(layout.source, where, message, code=code, hint=hint, length=length)
