"""The engine for TypeScript and JavaScript: Deno, without permissions, inside the jail."""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Mapping
from dataclasses import dataclass

from gloveport.errors import SandboxError
from gloveport.sandbox.launcher import Launch

GUEST_FOLDER = "/guest"
# Below a file, so that Deno can't make it and keeps its caches in memory: the jail needs nothing writable.
DENO_DIR = f"{GUEST_FOLDER}/main.js/none"

# No allow flag at all, and every way to load code from elsewhere closed: the default list of import hosts is a way out.
FLAGS = (
    "--no-prompt",
    "--no-config",
    "--no-lock",
    "--no-remote",
    "--no-npm",
    "--cached-only",
    "--deny-import",
    "--no-code-cache",
)
ENVIRONMENT = {
    "DENO_DIR": DENO_DIR,
    "DENO_EMIT_CACHE_MODE": "disable",  # it can't be written here, and trying costs the first TypeScript import 150 ms
    "DENO_NO_UPDATE_CHECK": "1",
    "NO_COLOR": "1",
    "TZ": "UTC",
    "LANG": "C.UTF-8",
}

# To format a stack, Deno compiles the program's TypeScript once more, on its main thread, and asks the C library how far
# its stack reaches; that one reads this file, and without it the engine aborts. The line says: as far as you like.
STACK_MAP = {"/proc/self/maps": b"1000-ffffffffffffffff rw-p 00000000 00:00 0 [stack]\n"}


@dataclass(frozen=True, slots=True)
class DenoOptions:
    """What is fixed when a Deno process starts, so that it is part of the pool's key."""

    allow_eval: bool = False
    allow_wasm: bool = False
    memory_mb: int = 256


def deno_launch(options: DenoOptions) -> Launch:
    """How to start a Deno that waits for a program."""
    return Launch(
        executable=find_deno(),
        argv=(
            "deno",
            "run",
            *FLAGS,
            f"--v8-flags={','.join(_v8_flags(options))}",
            f"{GUEST_FOLDER}/main.js",
            *_arguments(options),
        ),
        env=ENVIRONMENT,
        files={**prelude(), **STACK_MAP},
    )


def _v8_flags(options: DenoOptions) -> list[str]:
    # The seed makes the engine's own Math.random (form boundaries and the like) the same everywhere; the guest's is ours.
    flags = ["--random-seed=1", f"--max-old-space-size={options.memory_mb}"]
    if not options.allow_eval:
        flags.append("--disallow-code-generation-from-strings")
    return flags


def _arguments(options: DenoOptions) -> list[str]:
    return ["wasm"] if options.allow_wasm else []


def prelude() -> dict[str, bytes]:
    """The guest's own source as one module without exports: a program that manages to import it gets nothing from it."""
    folder = importlib.resources.files("gloveport.sandbox") / "guest" / "deno"
    texts = {item.name: item.read_text("utf-8") for item in folder.iterdir() if item.name.endswith(".js")}
    return {f"{GUEST_FOLDER}/main.js": bundle(texts, "main.js").encode()}


_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";$', re.MULTILINE)
_EXPORTED = re.compile(r"^export (?:async function|function|class|const) (?:(\w+)|\{([^}]*)\})", re.MULTILINE)
_REEXPORT = re.compile(r"^export \{ (\w+) as (\w+) \};$", re.MULTILINE)


def bundle(texts: Mapping[str, str], entry: str) -> str:
    """One script out of modules in the house's own style: each becomes a function that gives its exports."""
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


def find_deno() -> str:
    """The path of the Deno binary that the `deno` package brought."""
    try:
        from deno import find_deno_bin
    except ImportError:
        raise SandboxError("the engine `deno` is not installed", hint="pip install deno") from None
    try:
        return str(find_deno_bin())
    except FileNotFoundError as error:
        raise SandboxError(f"the engine `deno` has no binary: {error}", hint="pip install --force-reinstall deno") from None
