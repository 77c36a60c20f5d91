"""Bundle the prelude of a JavaScript engine, the shared modules and its own, into one script."""

from __future__ import annotations

import importlib.resources
import json
import re
from collections.abc import Mapping

OWN_MODULES = ("perf_hooks", "process", "timers", "timers/promises")
"""The modules of Node that the prelude itself has (`modules.js`)."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async function|function|class|const) (?:(\w+)|\{([^}]*)\})", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:[^*]|\*(?!/))*\*/)\n", re.MULTILINE)
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_REEXPORT = re.compile(r"^export \{ (\w+) as (\w+) \};$", re.MULTILINE)


def prelude(engine: str) -> str:
    """Return the prelude of an engine as one script without exports, so that importing it gives a program nothing."""
    engines = importlib.resources.files("gloveport.sandbox.engines")
    folders = (engines / "javascript", engines / engine / "guest")
    found = [item for folder in folders for item in folder.iterdir() if item.name.endswith(".js")]
    return _minified(bundle({item.name: item.read_text("utf-8") for item in found}, "main.js"))


def _minified(script: str) -> str:
    """Return the script in ASCII and without comment lines: every process reads it again."""
    return _NOT_ASCII.sub(lambda found: json.dumps(found[0])[1:-1], _COMMENT.sub("", script))


def bundle(texts: Mapping[str, str], entry: str) -> str:
    """Return one script made of modules in this project's style. Each becomes a function that returns its exports."""
    out: list[str] = []
    done: set[str] = set()

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        for _, needed in _IMPORT.findall(texts[name]):
            add(needed)
        body = _IMPORT.sub(lambda found: f"const {{{found[1].replace(' as ', ': ')}}} = {_scope(found[2])};", texts[name])
        exports = [plain or group for plain, group in _EXPORTED.findall(body)]
        names = [part.split(":")[-1].strip() for export in exports for part in export.split(",") if part.strip()]
        pairs = [*names, *(f"{new}: {old}" for old, new in _REEXPORT.findall(body))]
        body = re.sub(r"^export (?!\{)", "", _REEXPORT.sub("", body), flags=re.MULTILINE)
        out.append(
            body if name == entry else f"const {_scope(name)} = (() => {{\n{body}\nreturn {{ {', '.join(pairs)} }};\n}})();"
        )

    add(entry)
    return "\n".join(out)


def _scope(name: str) -> str:
    return f"module_{name.removesuffix('.js')}"
