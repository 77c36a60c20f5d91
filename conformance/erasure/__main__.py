"""`make erasure` erases the types in npm packages and compares the result with esbuild's.

Imports and exports are removed first, so that each file is a program. esbuild must read the result as the same program.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from gloveport.errors import ProgramError
from gloveport.prepare import prepare

HERE = Path(__file__).parent
LARGEST = 150_000
_NOT_OURS = (
    r"^import\b[^;]*?from\s*[\"'][^\"']*[\"'];?[ \t]*$",
    r"^import\s*[\"'][^\"']*[\"'];?[ \t]*$",
    r"^export\s*(?:type\s*)?(?:\*|\{[^}]*\})[^;\n]*;?[ \t]*$",
    r"^export\s+(?:default\s+)?",
)


def program_of(text: str) -> str:
    """Return a file without its imports and exports."""
    for pattern in _NOT_OURS:
        text = re.sub(pattern, "", text, flags=re.MULTILINE)
    return text


def main() -> int:
    """Print some differences and return the number of files that differ."""
    pairs: list[dict[str, str]] = []
    left: Counter[str] = Counter()
    for path in sorted((HERE / "node_modules").rglob("*.ts")):
        text = "" if path.name.endswith(".d.ts") else program_of(path.read_text("utf-8", "replace"))
        if not text.strip() or len(text) > LARGEST:
            continue
        try:
            program = prepare(text)
        except ProgramError as error:
            left[f"not read: {error.code}"] += 1
            continue
        if program.erased is None:
            left["no types" if program.dialect == "javascript" else "more than types"] += 1
            continue
        assert len(program.erased) == len(program.code), path
        pairs.append({"path": str(path.relative_to(HERE)), "typed": program.code, "erased": program.erased})
    done = subprocess.run(
        ["node", HERE / "compare.cjs"], input=json.dumps(pairs), capture_output=True, text=True, check=True
    )
    print(done.stdout, end="")
    differ = done.stdout.count("with types: ")
    print(f"{len(pairs)} files erased, {differ} differ; left out: {dict(left)}")
    return 1 if differ or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
