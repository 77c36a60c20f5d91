"""Find the next page of a reply: by a Link header, a link or cursor in the body, a page number, or an offset.

The cursor that leads to it passes through the program. A program that could write one itself could make requests whose
arguments were never checked, so each cursor is sealed with a key of this user, for one tool.
"""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec

from gloveport import urls
from gloveport.errors import ToolError
from gloveport.large_values import looked_up
from gloveport.policy.egress import Reply
from gloveport.sources.openapi.operation import MORE_FLAGS, Operation, Paging

MAX_CURSOR_CHARS = 8192
KEY_FILE = "cursors.key"
SEAL_BYTES = 16
NEXT_LINKS = ("@odata.nextLink", "odata.nextLink")

_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION = re.compile(r"\brel\s*=\s*\"?([^\";,]*)", re.IGNORECASE)


@looked_up
class NextPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """How to get a next page: a URL from the service, or a value for the paging argument.

    `seen` is the digest of the page before it. It reveals a service that returns the same page for ever.
    """

    url: str | None = None
    value: str | int | None = None
    seen: str = ""


def with_paging_argument(operation: Operation, args: Mapping[str, Any], page: NextPage) -> dict[str, Any]:
    """Return the arguments with the paging argument set for this page."""
    name = _paging_argument(operation.paging)
    if name is None or page.value is None:
        return dict(args)
    group = _group(operation, name)
    if group is None:
        return {**args, name: page.value}
    return {**args, group: {**args.get(group, {}), name: page.value}}


def next_page(
    operation: Operation,
    args: Mapping[str, Any],
    reply: Reply,
    value: Any,
    *,
    used: NextPage | None,
    hidden: Collection[str],
) -> NextPage | None:
    """Return the page after this one, or None after the last.

    `used` led to this page. `hidden` are the names of query parameters that carry credentials.
    """
    page = _linked_page(operation, reply, value, hidden) or _computed_page(operation, args, reply, value)
    if page is None or (used is not None and (page.url, page.value) == (used.url, used.value)):
        return None
    return page


def is_repeated(reply: Reply, used: NextPage | None) -> bool:
    """Return True when a service repeats its last page because no page follows it."""
    return used is not None and used.seen == _digest(reply)


def has_no_items(paging: Paging | None, value: Any) -> bool:
    """Return True for a page whose list of items is known and empty."""
    return _value_at(value, paging.items if paging else ()) == []


def without_items(paging: Paging, value: Any) -> Any:
    """Return the page with its items removed."""
    if not paging.items:
        return [] if isinstance(value, list) else value
    first, *rest = paging.items
    if not isinstance(value, Mapping) or first not in value:
        return value
    below = Paging(items=tuple(rest))
    return {**value, first: without_items(below, value[first])}


def _linked_page(operation: Operation, reply: Reply, value: Any, hidden: Collection[str]) -> NextPage | None:
    """Return the page that the service links to. Only a GET follows links, because it changes nothing."""
    if operation.method != "GET":
        return None
    links = [link for link, options in _LINK.findall(reply.headers.get("link", "")) if _is_next(options)]
    if isinstance(value, Mapping):
        links += [value[name] for name in NEXT_LINKS if isinstance(value.get(name), str)]
    if operation.paging and not links:
        found = _value_at(value, operation.paging.at)
        links += [found] if isinstance(found, str) and found.startswith(("http://", "https://", "/")) else []
    return NextPage(url=_absolute(reply.url, _without_parameters(links[0], hidden))) if links else None


def _without_parameters(link: str, names: Collection[str]) -> str:
    """Remove credentials that a service wrote into a link. They are redacted there, and every request adds them again."""
    path, _, query = link.partition("?")
    kept = [pair for pair in query.split("&") if unquote(pair.partition("=")[0]).lower() not in names]
    return f"{path}?{'&'.join(kept)}" if query else link


def _absolute(base: str, link: str) -> str:
    try:
        return str(urls.join(urls.parse(base), link))
    except ToolError:
        return link  # this page is still valid; the link is refused when it is followed


def _is_next(options: str) -> bool:
    found = _RELATION.search(options)
    return found is not None and "next" in found[1].lower().split()


def _computed_page(operation: Operation, args: Mapping[str, Any], reply: Reply, value: Any) -> NextPage | None:
    paging = operation.paging
    if paging is None or _says_last(reply, value):
        return None
    if paging.cursor is not None:
        found = _value_at(value, paging.at)
        usable = isinstance(found, (str, int)) and not isinstance(found, bool) and found != ""
        return NextPage(value=found) if usable and len(str(found)) <= MAX_CURSOR_CHARS else None
    items = _value_at(value, paging.items)
    name = _paging_argument(paging)
    if name is None or not isinstance(items, Sequence) or isinstance(items, (str, bytes)) or not items:
        return None
    group = _group(operation, name)
    given = (args if group is None else args.get(group, {})).get(name)
    if paging.number is not None:
        return NextPage(value=(given if isinstance(given, int) else paging.first) + 1, seen=_digest(reply))
    return NextPage(value=(given if isinstance(given, int) else 0) + len(items), seen=_digest(reply))


def _says_last(reply: Reply, value: Any) -> bool:
    """Return True when the reply says that no page follows: links, but none to a next page, or `has_more: false`."""
    if "link" in reply.headers and _RELATION.search(reply.headers["link"]) and "prev" in reply.headers["link"]:
        return True
    return isinstance(value, Mapping) and any(value.get(name) is False for name in MORE_FLAGS)


def _paging_argument(paging: Paging | None) -> str | None:
    return paging and (paging.cursor or paging.number or paging.offset)


def _group(operation: Operation, name: str) -> str | None:
    """Return the key of the group that holds the argument; None when the arguments are flat."""
    place = next((parameter.place for parameter in operation.parameters if parameter.argument == name), None)
    if operation.grouped:
        return place or "body"
    return operation.body.argument if place is None and operation.body else None


def _value_at(value: Any, path: Sequence[str]) -> Any:
    """Return the value at a path of keys; a number is an index of a list, and `-1` is the last item."""
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and re.fullmatch(r"-?\d{1,6}", step) and -len(value) <= int(step) < len(value):
            value = value[int(step)]
        else:
            return None
    return value


def _digest(reply: Reply) -> str:
    return sha256(reply.body).hexdigest()[:32]


class CursorSealer:
    """Seals pages as cursors and opens them again. The key is stored in `folder`, so cursors outlive the process."""

    def __init__(self, folder: Path) -> None:
        self._key = _load_key(folder / KEY_FILE)

    def seal(self, tool: str, page: NextPage) -> str:
        """Return the cursor of a page, which is valid for this tool only."""
        data = msgspec.json.encode(page)
        return base64.urlsafe_b64encode(self._mark(tool, data) + data).decode()

    def open(self, tool: str, cursor: str) -> NextPage:
        """Return the page of a cursor; raises ToolError `bad-arguments` when it was not sealed for this tool."""
        try:
            raw = base64.urlsafe_b64decode(cursor.encode())
        except ValueError:
            raw = b""
        mark, data = raw[:SEAL_BYTES], raw[SEAL_BYTES:]
        if not hmac.compare_digest(mark, self._mark(tool, data)):
            hint = "pass `next` of the previous page unchanged, or start again without a cursor"
            raise ToolError(f"this is not a cursor of `tools.{tool}`", code="bad-arguments", tool=tool, hint=hint)
        return msgspec.json.decode(data, type=NextPage)

    def _mark(self, tool: str, data: bytes) -> bytes:
        return hmac.digest(self._key, tool.encode() + b"\0" + data, sha256)[:SEAL_BYTES]


def _load_key(path: Path) -> bytes:
    """Return the key in the file, creating it if needed; without a writable folder, return a key for this process only."""
    key = secrets.token_bytes(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        try:
            os.link(draft, path)  # atomic, and fails if the file exists: two processes that start at once agree
        except FileExistsError:
            key = path.read_bytes()
        finally:
            draft.unlink()
    except OSError:
        return key
    return key if len(key) == 32 else secrets.token_bytes(32)
