"""What a program may import, and what the specifier of an import names: pure, from names that the host gives.

node:path, path                     a built-in module that the engine has
date-fns, lodash/get, npm:zod@4     an approved package, or a file in it
/root/skills/docx/x.mjs, ./x.mjs    a module of the project, below its folder or beside the program
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple

from gloveport.suggestions import near, question
from gloveport.types import Importable, ImportKind, ModuleImport

MAX_SPECIFIER_CHARS = 300

_FILES = "there is no file system, only the files of a session; get data through `tools.*` or pass it as `input`"
_HTTP = "use `fetch`, where the user has allowed the address, or call a tool (`tools.search` finds one)"
_SOCKETS = "raw sockets, WebSockets and custom DNS are refused: use `fetch`, or call a tool"
_PROCESS = "programs can't start processes; call a tool (`tools.search` finds one)"
_PLAIN = "use plain JavaScript: arrays, objects, Map, Set and Intl offer most of it"

HINTS = {
    **dict.fromkeys(("fs", "fs/promises", "fs-extra", "glob"), _FILES),
    **dict.fromkeys(
        ("axios", "node-fetch", "got", "request", "superagent", "undici", "ky", "http", "https", "cross-fetch"),
        _HTTP,
    ),
    **dict.fromkeys(("ws", "socket.io-client", "net", "tls", "dns", "dns/promises", "dgram", "http2"), _SOCKETS),
    **dict.fromkeys(("child_process", "execa", "worker_threads", "cluster", "os", "vm", "shelljs"), _PROCESS),
    **dict.fromkeys(("path", "lodash", "underscore", "ramda", "lodash-es", "util", "assert", "events"), _PLAIN),
    **dict.fromkeys(
        ("moment", "dayjs", "date-fns", "luxon"), "use `Date`, `Intl.DateTimeFormat` and `Intl.RelativeTimeFormat`"
    ),
    **dict.fromkeys(("crypto", "uuid", "nanoid"), "use the global `crypto`, for example `crypto.randomUUID()`"),
    **dict.fromkeys(("buffer", "string_decoder"), "use `Uint8Array`, `TextEncoder` and `TextDecoder`"),
    **dict.fromkeys(("url", "querystring", "qs"), "use the globals `URL` and `URLSearchParams`"),
    **dict.fromkeys(("timers", "timers/promises"), "timers are global: `setTimeout`, `setInterval`"),
    **dict.fromkeys(("zod", "joi", "ajv", "yup"), "check values with plain conditions; tools check their own arguments"),
}
TOOLS = "tools need no import: call `tools.…` directly"
_ASK = "ask the user to approve it"

_NODE_MODULES = """
    assert async_hooks buffer child_process cluster console constants crypto dgram diagnostics_channel dns domain events fs
    http http2 https inspector module net os path perf_hooks process punycode querystring readline repl sqlite stream
    string_decoder sys test timers tls tty url util v8 vm wasi worker_threads zlib
"""
NODE_MODULES = frozenset(_NODE_MODULES.split())
"""Modules of Node: a name among them is never a package to approve."""

_POPULAR = """
    ajv axios bignumber.js chalk cheerio commander cross-fetch csv-parse csv-stringify date-fns dayjs decimal.js diff docx
    dotenv exceljs express fast-xml-parser fuse.js handlebars highlight.js iconv-lite immer ini joi js-yaml jsdom json5
    jszip katex lodash lodash-es luxon markdown-it marked mathjs mime minimist moment mustache nanoid node-fetch pako
    papaparse pdf-lib pdfjs-dist qs ramda react remark rxjs semver sharp simple-statistics slugify toml turndown
    underscore uuid validator xlsx xml2js yaml yup zod
"""
POPULAR = tuple(_POPULAR.split())
"""Packages that are often meant, for a name that nobody approved and that may be misspelt."""

_PACKAGE = re.compile(r"(?:@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9~_-][\w.~-]*")
_ENDINGS = ("", ".ts", ".mjs", ".js", ".cjs", ".json", "/index.ts", "/index.mjs", "/index.js")


class Found(NamedTuple):
    """The module that a specifier names."""

    name: str
    kind: ImportKind


class ImportRefusal(Exception):
    """Why an import is refused, what to do instead, and the package that a person could approve."""

    def __init__(self, message: str, hint: str, package: str | None = None) -> None:
        super().__init__(message)
        self.message, self.hint, self.package = message, hint, package


def find_module(specifier: str | None, importable: Importable) -> Found:
    """Return the module that a specifier names; None stands for one that is not a literal. Raise ImportRefusal."""
    if specifier is None:
        raise ImportRefusal("this import is refused: the specifier must be a literal", 'write it as `import("name")`')
    if len(specifier) > MAX_SPECIFIER_CHARS:
        raise _refusal(specifier, "the specifier is too long", "name a package")
    if specifier.startswith((".", "/", "file:")):
        return _find_file(specifier, importable)
    name = specifier.removeprefix("node:")
    if name in importable.builtins:
        return Found(name, "builtin")
    if name != specifier or "://" in specifier or specifier.startswith(("jsr:", "data:", "blob:")):
        raise _foreign(specifier, name)
    wanted = specifier.removeprefix("npm:").removeprefix("/")
    package, inner = _split(wanted)
    found = ModuleImport(package + inner, "package", "import")
    if importable.has(found):
        return Found(found.name, "package")
    for path in _candidates(f"{importable.folder}/{specifier}"):
        if path in importable.files:
            return Found(path, "file")
    raise _unknown(specifier, package, inner, importable)


def _find_file(specifier: str, importable: Importable) -> Found:
    path = specifier.removeprefix("file://")
    starts = ("",) if path.startswith("/") else (f"{importable.beside}/", f"{importable.folder}/")
    for start in starts:
        for candidate in _candidates(start + path):
            if candidate in importable.files:
                return Found(candidate, "file")
    if "tools" in specifier:
        raise _refusal(specifier, "no module of the project has this path", TOOLS)
    if not importable.files:
        raise _refusal(
            specifier, "no modules of a project are given", "a program is one file: include the code that it needs"
        )
    close = near(posixpath.basename(path), {posixpath.basename(file) for file in importable.files}, 1)
    files = sorted(file for file in importable.files if close and posixpath.basename(file) == close[0])
    hint = f"{question(files[:2])} Paths" if files else "paths"
    raise _refusal(specifier, "no module of the project has this path", f"{hint} start with `{importable.folder}/`")


def _candidates(path: str) -> list[str]:
    plain = posixpath.normpath(path)
    return [plain + ending for ending in _ENDINGS]


def _split(wanted: str) -> tuple[str, str]:
    """Return the package and what follows it: `lodash@4/get` is `lodash` and `/get`."""
    parts = wanted.split("/")
    count = 2 if wanted.startswith("@") else 1
    named = "/".join(parts[:count])
    package = named[:1] + named[1:].partition("@")[0]
    return package, "".join(f"/{part}" for part in parts[count:])


def _foreign(specifier: str, name: str) -> ImportRefusal:
    if name != specifier:
        return _refusal(specifier, "programs have no such module of Node", HINTS.get(name) or _platform_hint(specifier))
    hint = TOOLS if "tools" in specifier else "code can't be loaded from the network: include it in the program"
    return _refusal(specifier, "it is no package of npm", hint)


def _unknown(specifier: str, package: str, inner: str, importable: Importable) -> ImportRefusal:
    hint = HINTS.get(package + inner) or HINTS.get(package) or _platform_hint(specifier)
    if package in NODE_MODULES and not specifier.startswith("npm:"):
        return _refusal(specifier, "programs have no such module of Node", hint)
    if hint is TOOLS or not _PACKAGE.fullmatch(package):
        return _refusal(specifier, "it is no approved package", hint)
    known = dict.fromkeys((*importable.packages, *POPULAR, *importable.builtins))
    close = () if package in known else near(package, known)
    asked = package
    if close:
        asked, hint = close[0], f"{question(close)} {_ASK[:1].upper()}{_ASK[1:]}, or {hint}"
    else:
        hint = f"{_ASK}, or {hint}"
    usable = asked in importable.packages or asked in importable.builtins
    message = f"import of `{_short(specifier)}` is refused: no package of that name is approved for this run"
    return ImportRefusal(message, question(close) if usable else hint, None if usable else f"npm:{asked}")


def _platform_hint(specifier: str) -> str:
    if "tools" in specifier or "codemode" in specifier or "executor" in specifier:
        return TOOLS
    return "use what the platform offers (fetch, URL, crypto, Intl) and `tools.*`"


def _refusal(specifier: str, problem: str, hint: str) -> ImportRefusal:
    return ImportRefusal(f"import of `{_short(specifier)}` is refused: {problem}", hint)


def _short(specifier: str) -> str:
    shown = specifier if len(specifier) <= 60 else specifier[:60] + "…"
    return shown.encode("unicode_escape").decode() if not shown.isprintable() else shown
