"""The list of modules in docs/modules.md: `python -m tests.module_map` writes it from the description in each file."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gloveport"
PAGE = ROOT / "docs" / "modules.md"
HEAD = """# Modules

Every source file with its own description. [design.md](design.md) explains how they work together.
`python -m tests.module_map` writes this page; a test compares it with the sources.
"""


def render() -> str:
    """Return the page: one section for each folder, one line for each file in it."""
    parts = [HEAD]
    folder = None
    for path in sorted(_files(), key=lambda path: (path.parent.parts, path.name)):
        if path.parent != folder:
            folder = path.parent
            parts.append(f"\n## {Path('gloveport') / folder.relative_to(SOURCE)}/\n\n")
        parts.append(f"- `{path.name}`: {_summary(path)}\n")
    return "".join(parts)


def _files() -> Iterator[Path]:
    for path in SOURCE.rglob("*"):
        if path.suffix in {".py", ".js"} and path.stat().st_size and "static" not in path.parts:  # what was built
            yield path


def _summary(path: Path) -> str:
    text = path.read_text("utf-8")
    if path.suffix == ".py" and (docstring := ast.get_docstring(ast.parse(text))):
        return _sentence(docstring)
    lines = [line[2:].strip() if path.suffix == ".js" else line[1:].strip() for line in _comment(text, path.suffix)]
    return _sentence(" ".join(line for line in lines if "noqa" not in line))


def _comment(text: str, suffix: str) -> Iterator[str]:
    mark = "//" if suffix == ".js" else "#"
    for line in text.splitlines():
        if not line.startswith(mark):
            return
        yield line


def _sentence(text: str) -> str:
    """Return the first sentence, and the second where the first is short."""
    first, *more = re.split(r"(?<=[.?!]) ", " ".join(text.split("\n\n", maxsplit=1)[0].split()))
    return f"{first} {more[0]}" if more and len(first) < 80 else first


if __name__ == "__main__":
    PAGE.write_text(render(), "utf-8")
