"""From one page of an answer to the next: a Link header, a link or a cursor in the answer, a page number, an offset."""

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

from gloveport.errors import ToolError
from gloveport.policy.egress import Reply, urls
from gloveport.sources.openapi.operation import Operation, Paging

MAX_CURSOR_CHARS = 8192
KEY_FILE = "cursors.key"
SEAL_BYTES = 16
NEXT_LINKS = ("@odata.nextLink", "odata.nextLink")
MORE_FLAGS = ("has_more", "hasMore", "has_next", "hasNext")

_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_RELATION = re.compile(r"\brel\s*=\s*\"?([^\";,]*)", re.IGNORECASE)


class NextPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """The way to a next page: a URL that the service gave, or a value for the argument that pages.

    `seen` is the digest of the page before, by which a service that gives the same page for ever is noticed.
    """

    url: str | None = None
    value: str | int | None = None
    seen: str = ""


def apply(operation: Operation, args: Mapping[str, Any], step: NextPage) -> dict[str, Any]:
    """The arguments with the one that pages set to the step's value."""
    name = _argument(operation.paging)
    if name is None or step.value is None:
        return dict(args)
    group = _group(operation, name)
    if group is None:
        return {**args, name: step.value}
    return {**args, group: {**args.get(group, {}), name: step.value}}


def next_step(
    operation: Operation,
    args: Mapping[str, Any],
    reply: Reply,
    value: Any,
    *,
    used: NextPage | None,
    hidden: Collection[str],
) -> NextPage | None:
    """The way to the page after this one, or None after the last; `hidden` are the names of credentials in the query."""
    step = _linked(operation, reply, value, hidden) or _argued(operation, args, reply, value)
    if step is None or (used is not None and (step.url, step.value) == (used.url, used.value)):
        return None
    return step


def is_repeated(reply: Reply, used: NextPage | None) -> bool:
    """True when a service that counts pages gave the page before once more, because there is none after it."""
    return used is not None and used.seen == _digest(reply)


def without_items(paging: Paging, value: Any) -> Any:
    """The page with its items taken out."""
    if not paging.items:
        return [] if isinstance(value, list) else value
    first, *rest = paging.items
    if not isinstance(value, Mapping) or first not in value:
        return value
    below = Paging(items=tuple(rest))
    return {**value, first: without_items(below, value[first])}


def _linked(operation: Operation, reply: Reply, value: Any, hidden: Collection[str]) -> NextPage | None:
    """A link to the next page that the service gave; only a request without effect follows one."""
    if operation.method != "GET":
        return None
    links = [link for link, options in _LINK.findall(reply.headers.get("link", "")) if _is_next(options)]
    if isinstance(value, Mapping):
        links += [value[name] for name in NEXT_LINKS if isinstance(value.get(name), str)]
    if operation.paging and not links:
        found = _found(value, operation.paging.at)
        links += [found] if isinstance(found, str) and found.startswith(("http://", "https://", "/")) else []
    return NextPage(url=_absolute(reply.url, _without(links[0], hidden))) if links else None


def _without(link: str, names: Collection[str]) -> str:
    """A link without the credentials that a service wrote into it: they are blacked out, and sent along anyway."""
    path, _, query = link.partition("?")
    kept = [pair for pair in query.split("&") if unquote(pair.partition("=")[0]).lower() not in names]
    return f"{path}?{'&'.join(kept)}" if query else link


def _absolute(base: str, link: str) -> str:
    try:
        return str(urls.join(urls.parse(base), link))
    except ToolError:
        return link  # refused when somebody follows it: this page is good all the same


def _is_next(options: str) -> bool:
    found = _RELATION.search(options)
    return found is not None and "next" in found[1].lower().split()


def _argued(operation: Operation, args: Mapping[str, Any], reply: Reply, value: Any) -> NextPage | None:
    paging = operation.paging
    if paging is None or _says_last(reply, value):
        return None
    if paging.cursor is not None:
        found = _found(value, paging.at)
        usable = isinstance(found, (str, int)) and not isinstance(found, bool) and found != ""
        return NextPage(value=found) if usable and len(str(found)) <= MAX_CURSOR_CHARS else None
    items = _found(value, paging.items)
    name = _argument(paging)
    if name is None or not isinstance(items, Sequence) or isinstance(items, (str, bytes)) or not items:
        return None
    group = _group(operation, name)
    given = (args if group is None else args.get(group, {})).get(name)
    if paging.number is not None:
        return NextPage(value=(given if isinstance(given, int) else paging.first) + 1, seen=_digest(reply))
    return NextPage(value=(given if isinstance(given, int) else 0) + len(items), seen=_digest(reply))


def _says_last(reply: Reply, value: Any) -> bool:
    """True when the answer itself tells that no page follows: links, but none to a next one; or `has_more: false`."""
    if "link" in reply.headers and _RELATION.search(reply.headers["link"]) and "prev" in reply.headers["link"]:
        return True
    return isinstance(value, Mapping) and any(value.get(name) is False for name in MORE_FLAGS)


def _argument(paging: Paging | None) -> str | None:
    return paging and (paging.cursor or paging.number or paging.offset)


def _group(operation: Operation, name: str) -> str | None:
    """The key under which the argument stands; None where the arguments are flat."""
    place = next((parameter.place for parameter in operation.parameters if parameter.argument == name), None)
    if operation.grouped:
        return place or "body"
    return operation.body.argument if place is None and operation.body else None


def _found(value: Any, path: Sequence[str]) -> Any:
    """What stands at a path of keys; a number is a place in a list, `-1` the last."""
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
    """Seals steps and opens them again; a resumed run finds its cursors good, since the key is kept in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._key = _key(folder / KEY_FILE)

    def seal(self, tool: str, step: NextPage) -> str:
        """The cursor."""
        data = msgspec.json.encode(step)
        return base64.urlsafe_b64encode(self._mark(tool, data) + data).decode()

    def open(self, tool: str, cursor: str) -> NextPage:
        """The step; raises ToolError `bad-arguments` for a cursor that was not sealed here for this tool."""
        try:
            raw = base64.urlsafe_b64decode(cursor.encode())
        except ValueError:
            raw = b""
        mark, data = raw[:SEAL_BYTES], raw[SEAL_BYTES:]
        if not hmac.compare_digest(mark, self._mark(tool, data)):
            hint = "give `next` of the page before, unchanged, or start again without a cursor"
            raise ToolError(f"that is no cursor of `tools.{tool}`", code="bad-arguments", tool=tool, hint=hint)
        return msgspec.json.decode(data, type=NextPage)

    def _mark(self, tool: str, data: bytes) -> bytes:
        return hmac.digest(self._key, tool.encode() + b"\0" + data, sha256)[:SEAL_BYTES]


def _key(path: Path) -> bytes:
    """The key in the file, made when it is not there; where no file can be, one for this process alone."""
    key = secrets.token_bytes(32)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
        try:
            os.link(draft, path)  # whole, and only where there is none: two processes that start at once agree
        except FileExistsError:
            key = path.read_bytes()
        finally:
            draft.unlink()
    except OSError:
        return key
    return key if len(key) == 32 else secrets.token_bytes(32)
