"""Imports of a TypeScript program. Every import is refused, with a hint; approved packages will be resolved here."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, NoReturn

if TYPE_CHECKING:
    from tree_sitter import Node

    from gloveport.prepare.typescript.source_text import SourceText

_FILES = "there is no file system; get data through `tools.*` or pass it as `input`"
_HTTP = "use `fetch`, where the user has allowed the address, or call a tool (`tools.search` finds one)"
_SOCKETS = "raw sockets, WebSockets and custom DNS are refused: use `fetch`, or call a tool"
_PROCESS = "programs can't start processes; call a tool (`tools.search` finds one)"
_PLAIN = "use plain JavaScript: arrays, objects, Map, Set and Intl offer most of it"

HINTS = {
    **dict.fromkeys(("fs", "fs/promises", "fs-extra", "path", "glob"), _FILES),
    **dict.fromkeys(
        ("axios", "node-fetch", "got", "request", "superagent", "undici", "ky", "http", "https", "cross-fetch"),
        _HTTP,
    ),
    **dict.fromkeys(("ws", "socket.io-client", "net", "tls", "dns", "dns/promises", "dgram", "http2"), _SOCKETS),
    **dict.fromkeys(("child_process", "execa", "worker_threads", "cluster", "os", "vm", "shelljs"), _PROCESS),
    **dict.fromkeys(("lodash", "underscore", "ramda", "lodash-es", "util", "assert", "events"), _PLAIN),
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


class ScriptImportRefusal(NamedTuple):
    """Why an import is refused, and what to do instead."""

    message: str
    hint: str


def resolve_import(specifier: str | None) -> ScriptImportRefusal:
    """Return the refusal of an import. A specifier of None is one that is not a literal."""
    if specifier is None:
        return ScriptImportRefusal(
            "this import is refused: the specifier must be a literal", 'write it as `import("name")`'
        )
    name = specifier.removeprefix("node:").removeprefix("npm:").removeprefix("jsr:")
    package = "/".join(name.split("/")[: 2 if name.startswith("@") else 1]) if "://" not in name else name
    package = package[:1] + package[1:].partition("@")[0]
    hint = HINTS.get(name) or HINTS.get(package) or _general_hint(specifier)
    return ScriptImportRefusal(f"import of `{_short(specifier)}` is refused: no package is approved for this run", hint)


def _general_hint(specifier: str) -> str:
    if "tools" in specifier or "codemode" in specifier or "executor" in specifier:
        return TOOLS
    if specifier.startswith((".", "/", "file:")):
        return "a program is one file: include the code that it needs"
    if "://" in specifier:
        return "code can't be loaded from the network: include it in the program"
    return "use what the platform offers (fetch, URL, crypto, Intl) and `tools.*`"


def _short(specifier: str) -> str:
    shown = specifier if len(specifier) <= 60 else specifier[:60] + "…"
    return shown.encode("unicode_escape").decode() if not shown.isprintable() else shown


def take_imports(source_text: SourceText) -> None:
    """Remove type-only imports from a program and refuse all others."""
    erased: set[int] = set()
    for statement in source_text.found.of("import_statement", "export_statement"):
        specifier = statement.child_by_field_name("source") or _required(statement)
        if specifier is None:
            continue
        if not _is_type_only(statement):
            _refuse(source_text, specifier, source_text.text(specifier)[1:-1])
        source_text.blank(statement.start_byte, statement.end_byte)
        erased.add(statement.start_byte)
    for call in source_text.found.import_calls:
        _refuse_call(source_text, call)
    if "require" in source_text.parsed.shape and not _REQUIRE_DECLARED.search(source_text.parsed.shape):
        for name, parent in source_text.mentions("require"):
            if parent.type == "call_expression" and parent.start_byte == name.start_byte:
                _refuse_call(source_text, parent)
    if erased:
        source_text.items = [node for node in source_text.items if node.start_byte not in erased]


def _required(statement: Node) -> Node | None:
    clause = next((child for child in statement.named_children if child.type == "import_require_clause"), None)
    return clause.child_by_field_name("source") if clause else None


def _is_type_only(statement: Node) -> bool:
    if any(child.type == "type" for child in statement.children):
        return True
    parts = [child for child in statement.named_children if child.type in {"import_clause", "export_clause"}]
    if parts and parts[0].type == "import_clause":
        parts = parts[0].named_children
    if len(parts) != 1 or parts[0].type not in {"named_imports", "export_clause"}:
        return False
    specifiers = [child for child in parts[0].named_children if child.type != "comment"]
    return bool(specifiers) and all(any(part.type == "type" for part in child.children) for child in specifiers)


_REQUIRE_DECLARED = re.compile(r"\b(?:function|const|let|var|class)\s+require\b|[({,]\s*require\s*[,)}=:]")


def _refuse_call(source_text: SourceText, call: Node) -> NoReturn:
    """Refuse `import(…)` or `require(…)` at its first argument."""
    arguments = call.child_by_field_name("arguments")
    given = [node for node in arguments.named_children if node.type != "comment"] if arguments else []
    first = given[0] if given else call
    literal = first.type in {"string", "template_string"} and not any(
        child.type == "template_substitution" for child in first.named_children
    )
    _refuse(source_text, first, source_text.text(first)[1:-1] if literal else None)


def _refuse(source_text: SourceText, node: Node, specifier: str | None) -> NoReturn:
    refusal = resolve_import(specifier)
    source_text.fail(node, refusal.message, refusal.hint, code="import-refused")
