"""Example programs to start from: those whose tools a caller can call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gloveport.catalog import Catalog
from gloveport.catalog.declarations import mentioned
from gloveport.types import Language

FOLDER = Path(__file__).parent / "examples"
LANGUAGES: dict[str, Language] = {".ts": "typescript", ".py.txt": "python"}  # no module of ours
MAX_EXAMPLES = 3
MAX_STARTING_TOOLS = 50  # that are looked at for one that needs no arguments


@dataclass(frozen=True, slots=True)
class ExampleProgram:
    """An example. Its title is its first line, which is a comment."""

    name: str
    title: str
    language: Language
    code: str


def examples_for(catalog: Catalog) -> list[ExampleProgram]:
    """Return the examples that can run with these tools, those that use tools first."""
    found = [one for one in _written() if _can_run(one, catalog)]
    specific = [one for one in found if any(mentioned(catalog, one.code))]
    general = [one for one in found if one not in specific]
    return [*specific, *_starting(catalog, skip=bool(specific)), *general][:MAX_EXAMPLES]


def _written() -> list[ExampleProgram]:
    found: list[ExampleProgram] = []
    for path in sorted(FOLDER.iterdir()):
        name, dot, ending = path.name.partition(".")
        if (language := LANGUAGES.get(dot + ending)) is not None:
            text = path.read_text(encoding="utf-8")
            found.append(ExampleProgram(name, text.splitlines()[0].lstrip("/# "), language, text))
    return found


def _can_run(example: ExampleProgram, catalog: Catalog) -> bool:
    """Return whether all tools are there that the second line of an example names, after `Tools:`."""
    _, needed, listed = example.code.splitlines()[1].partition("Tools:")
    return not needed or all(catalog.entry(name.strip()) for name in listed.split(","))


def _starting(catalog: Catalog, *, skip: bool) -> Iterator[ExampleProgram]:
    """Yield a program that makes one read of these tools without arguments."""
    for tool in () if skip else catalog.tools[:MAX_STARTING_TOOLS]:
        if not tool.writes and not tool.input_schema.get("required"):
            code = f"// Call one tool\nconst found = await tools.{catalog.path_of(tool)}();\nfound;\n"
            yield ExampleProgram("call", "Call one tool", "typescript", code)
            return
