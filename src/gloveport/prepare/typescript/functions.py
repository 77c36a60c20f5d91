"""Which function a piece of code belongs to: top-level `return`, and `await` in functions that are not async."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gloveport.prepare.diagnostics import line_and_column
from gloveport.prepare.typescript.survey import FUNCTIONS, is_async

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText


def top_level_return(source_text: SourceText) -> Node | None:
    """Return the first `return` that belongs to no function."""
    returns = source_text.found.of("return_statement")
    owners = _owners(returns, source_text.found.of(*FUNCTIONS))
    return next((node for node, function in owners if function is None), None)


def refuse_stray_await(source_text: SourceText) -> None:
    """Refuse `await` in a function that is not async. V8 would refuse it too, with a less helpful message."""
    awaits = source_text.found.of("await")
    functions = source_text.found.of(*FUNCTIONS) if awaits else []
    if all(is_async(function) for function in functions):
        return
    for keyword, function in _owners(awaits, functions):
        if function is None or is_async(function) or not _in_body(function, keyword):
            continue
        line, _ = line_and_column(source_text.source, function.start_byte)
        what = "an arrow function" if function.type == "arrow_function" else "a function"
        hint = f"write `async` before the function that starts on line {line}"
        if function.parent and function.parent.type == "arguments":
            hint += "; to collect the results, await all of them: `await Promise.all(items.map(async …))`"
        source_text.fail(keyword, f"`await` in {what} that is not async", hint)


def _owners(nodes: list[Node], functions: list[Node]) -> Iterator[tuple[Node, Node | None]]:
    """Yield each node, in the order of the text, with the innermost function around it."""
    waiting = sorted(functions, key=_start, reverse=True)
    around: list[Node] = []
    for node in sorted(nodes, key=_start):
        start = node.start_byte
        while waiting and waiting[-1].start_byte <= start:
            function = waiting.pop()
            while around and around[-1].end_byte <= function.start_byte:
                around.pop()
            around.append(function)
        while around and around[-1].end_byte <= start:
            around.pop()
        yield node, around[-1] if around else None


def _start(node: Node) -> int:
    return node.start_byte


def _in_body(function: Node, node: Node) -> bool:
    """Return whether a node lies in a function's body, not in its computed name or its decorators."""
    body = function.child_by_field_name("body")
    return body is not None and body.start_byte <= node.start_byte < body.end_byte
