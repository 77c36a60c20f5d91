"""TypeScript and JavaScript, in every form that agents write them → one ES module.

    bare statements, trailing expression   export default async () => { … return (expression) }     entry "body"
    a lone function, or `main`             export default (function) · …; export default main       entry "function"
    a module with `export default`         unchanged                                                "function", "value"

    source_text     finds the program in the text and gathers edits; `parser` parses it, `lexer` reads what does not parse
    survey          one walk over the tree; collects what the other modules ask about
    syntax_errors   the diagnostic of a text that does not parse
    functions       refuses stray `await`
    imports         resolves imports, by the names that `module_names` understands
    entry           turns the form that the agent chose into a module
    erasure         blanks the types
    tool_access     whether the program can reach tools
    workload        whether the program computes little
    calls           the tool calls that can be read off the text
    findings        what a person should look at before they approve a call

No line is added before the agent's text, so lines keep their numbers. This package only interprets the text: the sandbox
decides what a program may do, whatever was understood here.
"""

from __future__ import annotations

from dataclasses import replace

from gloveport.errors import ProgramError
from gloveport.prepare.positions import Edit, compose_spans, rewrite
from gloveport.prepare.subset import ScriptSubset
from gloveport.prepare.typescript.entry import Entry, shape_entry, top_level
from gloveport.prepare.typescript.erasure import erase
from gloveport.prepare.typescript.functions import refuse_stray_await
from gloveport.prepare.typescript.imports import take_imports
from gloveport.prepare.typescript.source_text import LooseObjectError, SourceText, read
from gloveport.prepare.typescript.tool_access import tool_access
from gloveport.prepare.typescript.workload import MARKS
from gloveport.types import Importable, Language, Program, ToolAccess

NOTHING = Importable()
META = 'Object({url:"file://%s/program.ts",filename:"%s/program.ts",dirname:"%s",main:true})'
"""The replacement of `import.meta`, whose URL is random. It starts with a name, so that no line before can call it."""


def prepare_typescript(
    source: str,
    language: Language,
    subset: ScriptSubset | None = None,
    importable: Importable = NOTHING,
    lighter: ScriptSubset | None = None,
) -> Program:
    """Return the program of a text: find it, refuse what can't run, and turn it into a module."""
    try:
        return _prepare(source, language, subset, importable, lighter)
    except LooseObjectError as loose:
        text, inner = rewrite(source, [Edit(loose.start, loose.start, ";("), Edit(loose.end, loose.end, ")")])
        try:
            program = _prepare(text, language, subset, importable, lighter)
        except (ProgramError, LooseObjectError):
            raise loose.error from None
        return replace(program, source=source, spans=compose_spans(program.spans, inner))


def _prepare(
    source: str, language: Language, subset: ScriptSubset | None, importable: Importable, lighter: ScriptSubset | None
) -> Program:
    source_text = read(source) if lighter is None else read(source, MARKS)
    refuse_stray_await(source_text)
    imports = take_imports(source_text, importable)
    for node in source_text.found.of("meta_property"):
        if source_text.parsed.shape.startswith("import", node.start_byte):
            source_text.edits.append(Edit(node.start_byte, node.end_byte, META.replace("%s", importable.beside)))
    for node in top_level(source_text, "ambient_declaration"):
        source_text.blank(node.start_byte, node.end_byte)
    entry = shape_entry(source_text)
    if subset is not None:
        subset.refuse_unsupported(source_text)
    code, spans = rewrite(source, source_text.edits)
    dialect = "javascript" if source_text.found.plain else "typescript"
    erased = None if source_text.found.plain else _erased(source_text, entry, required=subset is not None)
    runs_as_it_is = source_text.found.plain or erased is not None
    # A module may call tools, too.
    access = ToolAccess() if imports.modules else tool_access(source_text, entry)
    return Program(
        language,
        source,
        code,
        dialect,
        entry,
        spans,
        erased=erased,
        tool_access=access,
        imports=imports.modules,
        imported_names=imports.names,
        is_light=lighter is not None and runs_as_it_is and not imports.modules and lighter.suits(source_text),
    )


def _erased(source_text: SourceText, entry: Entry, *, required: bool) -> str | None:
    """Return the program without types, where the engine needs that, or where it saves Deno its compiler."""
    if required:
        return rewrite(source_text.source, source_text.edits + erase(source_text))[0]
    try:
        return rewrite(source_text.source, source_text.edits + erase(source_text))[0] if entry != "value" else None
    except ProgramError:  # the program holds more than types, such as an enum
        return None
