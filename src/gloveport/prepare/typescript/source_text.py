"""The text of a program under preparation: found in the agent's text (bare or fenced), parsed, and gathering edits."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn

from gloveport.errors import ProgramError
from gloveport.prepare import fences
from gloveport.prepare.diagnostics import LINE_END, program_error
from gloveport.prepare.positions import Edit
from gloveport.prepare.typescript.lexer import in_literal, last_braces
from gloveport.prepare.typescript.parser import Parsed, ScriptTooDeepError, parse, shape_of
from gloveport.prepare.typescript.survey import MARKS, VARIABLES, NestedTooDeeplyError, ScriptSurvey, literals, survey
from gloveport.prepare.typescript.syntax_errors import explain, unterminated_string

if TYPE_CHECKING:
    from tree_sitter import Node

Ranges = list[tuple[int, int]]

NOT_CODE = frozenset({"comment", "html_comment", "empty_statement"})


@dataclass(slots=True)
class SourceText:
    """The agent's text, its tree, the statements at its top level, and the edits so far."""

    source: str
    parsed: Parsed
    found: ScriptSurvey
    items: list[Node]
    edits: list[Edit] = field(default_factory=list)

    def text(self, node: Node) -> str:
        """Return what the agent wrote for a node."""
        return self.source[node.start_byte : node.end_byte]

    def mentions(self, name: str) -> Iterator[tuple[Node, Node]]:
        """Yield each use of a name as a variable, with its parent node."""
        for node, parent in self.found.identifiers:
            if node.type in VARIABLES and self.text(node) == name:
                yield node, parent

    def insert(self, offset: int, text: str) -> None:
        """Insert text at an offset."""
        self.edits.append(Edit(offset, offset, text))

    def blank(self, start: int, end: int) -> None:
        """Remove a stretch, but keep its line ends."""
        self.edits.append(Edit(start, end, "\n" * len(LINE_END.findall(self.source, start, end))))

    def fail(
        self, node: Node, message: str, hint: str | None = None, code: str = "syntax-error", package: str | None = None
    ) -> NoReturn:
        """Refuse the program at a node. `package` is what a person could approve."""
        length = node.end_byte - node.start_byte
        error = program_error(self.source, node.start_byte, message, code=code, hint=hint, length=length)
        error.package = package
        raise error


def read(source: str, marks: Mapping[int, int] = MARKS) -> SourceText:
    """Return the source text of a program, bare or fenced; raise the diagnostic of its likeliest reading otherwise."""
    try:
        parsed, outside = _find_program(source)
        if _is_broken(parsed):
            raise _explained(source, parsed)
        found = survey(parsed.root, marks)
    except (ScriptTooDeepError, NestedTooDeeplyError) as error:
        hint = "split it into steps; keep large data in variables, or pass it as `input`"
        raise program_error(source, error.offset, "the program is nested too deeply", hint=hint) from None
    items = [node for node in parsed.root.named_children if node.type not in NOT_CODE]
    source_text = SourceText(source, parsed, found, items)
    for start, end in outside:
        source_text.blank(start, end)
    _refuse_broken_strings(source_text)
    return source_text


class LooseObjectError(Exception):
    """The text does not parse, but may if the braces at its end are an object: `{ city, temp: 3 }`."""

    def __init__(self, start: int, end: int, error: ProgramError) -> None:
        super().__init__(start, end)
        self.start, self.end, self.error = start, end, error


def _explained(source: str, parsed: Parsed) -> Exception:
    error = explain(source, parsed)
    braces = last_braces(parsed.shape) if error.message == "unexpected `:`" else None
    return LooseObjectError(*braces, error) if braces else error


def _is_broken(parsed: Parsed) -> bool:
    return parsed.root.has_error or not parsed.complete


def _find_program(source: str) -> tuple[Parsed, Ranges]:
    """Return the tree of the program, and the stretches of the text that do not belong to it."""
    shape = shape_of(source)
    blocks = fences.blocks(shape) if fences.has_fence(shape) else []
    if not blocks or in_literal(shape, blocks[0].fence):
        hashbang = _hashbang(shape, 0)
        bare = parse(_masked(shape, hashbang))
        if _is_bare(blocks, bare):
            return bare, hashbang
    chosen = fences.programs(blocks)
    if not chosen:
        raise _no_program(source, blocks[0])
    outside = _outside(shape, chosen)
    parsed = parse(_masked(shape, outside))
    if _is_broken(parsed):
        wide = fences.widest(shape, chosen[0])
        if wide:
            stretched = _outside(shape, [wide])
            second = parse(_masked(shape, stretched))
            if not _is_broken(second):
                return second, stretched
    return parsed, outside


def _is_bare(blocks: list[fences.Block], bare: Parsed) -> bool:
    """Return whether everything that looks like a fence lies in comments or, in a text that parses, in templates."""
    if not blocks:
        return True
    broken = _is_broken(bare)
    ranges = [(start, end) for start, end, comment in literals(bare.root) if comment or not broken]
    for block in blocks:
        index = bisect_left(ranges, (block.fence,)) - 1
        if index < 0 or ranges[index][1] <= block.fence:
            return False
    return True


def _no_program(source: str, block: fences.Block) -> Exception:
    hint = "label the program's fence `ts`, or send the program without a fence"
    message = f"the only code block is labelled `{block.label}`, not TypeScript or JavaScript"
    return program_error(source, block.fence, message, hint=hint, length=3 + len(block.label))


def _hashbang(shape: str, start: int) -> Ranges:
    start += shape.startswith(" ", start) and shape.startswith("#!", start + 1)
    if not shape.startswith("#!", start):
        return []
    end = shape.find("\n", start)
    return [(start, len(shape) if end < 0 else end)]


def _outside(shape: str, chosen: list[fences.Block]) -> Ranges:
    return sorted([*fences.outside(shape, chosen), *_hashbang(shape, chosen[0].start)])


def _masked(shape: str, outside: Ranges) -> str:
    if not outside:
        return shape
    pieces: list[str] = []
    position = 0
    for start, end in outside:
        lines = shape[start:end].split("\n")
        pieces += (shape[position:start], "\n".join(" " * len(line) for line in lines))
        position = end
    return "".join([*pieces, shape[position:]])


_BROKEN_LINE = re.compile(r"\\[\s\S]|(\n)")


def _refuse_broken_strings(source_text: SourceText) -> None:
    """Refuse a string that continues over the end of a line: the grammar accepts it, engines don't."""
    shape = source_text.parsed.shape
    for node in source_text.found.of("string"):
        if shape.find("\n", node.start_byte, node.end_byte) < 0:
            continue
        for match in _BROKEN_LINE.finditer(shape, node.start_byte, node.end_byte):
            if match[1] and source_text.source[match.start()] in "\r\n":
                raise unterminated_string(source_text.source, node.start_byte)
