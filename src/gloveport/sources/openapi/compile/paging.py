"""Detect paging in a definition: the argument that asks for the next page, and where a reply holds its value."""

from __future__ import annotations

from collections.abc import Mapping

from gloveport.sources.openapi.compile.document.references import DanglingReference, DocumentNode
from gloveport.sources.openapi.compile.request_body import all_of_parts
from gloveport.sources.openapi.compile.schemas import SchemaRegistry
from gloveport.sources.openapi.operation import MORE_FLAGS, Paging
from gloveport.sources.schemas.keywords import Schema

LAST_ITEM = "-1"
"""A key in `Paging.at` that means the last item of an array."""

_ITEMS = ("items", "data", "results", "value", "values", "entries", "records", "list", "objects", "rows")
_LINKS = ("@odata.nextLink", "nextLink", "next_link", "nextPageLink", "next_page_url", "next_page_uri", "next_uri")
# Argument → where a reply holds the cursor for it. The first pair that a definition has is used.
_CURSORS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("pageToken", (("nextPageToken",),)),
    ("page_token", (("next_page_token",), ("nextPageToken",), ("meta", "next_page_token"))),
    ("cursor", (("next_cursor",), ("nextCursor",), ("cursor",), ("response_metadata", "next_cursor"))),
    ("cursor", (("meta", "next_cursor"), ("meta", "cursor"), ("pagination", "next_cursor"), ("paging", "next"))),
    ("next_cursor", (("next_cursor",), ("nextCursor",))),
    ("start_cursor", (("next_cursor",),)),
    ("after", (("paging", "next", "after"), ("paging", "cursors", "after"), ("page_info", "end_cursor"))),
    ("after", (("pageInfo", "endCursor"), ("next_cursor",), ("after",), ("meta", "after"), ("last_id",))),
    ("starting_after", (("pages", "next", "starting_after"),)),
    ("nextToken", (("nextToken",),)),
    ("NextToken", (("NextToken",),)),
    ("next_token", (("next_token",), ("meta", "next_token"))),
    ("pagination_token", (("meta", "next_token"), ("next_token",))),
    ("continuationToken", (("continuationToken",), ("nextContinuationToken",))),
    ("continuation_token", (("continuation_token",), ("next_continuation_token",))),
    ("continue", (("metadata", "continue"),)),
    ("marker", (("next_marker",), ("nextMarker",))),
    ("Marker", (("NextMarker",),)),
)
_NUMBERS = ("page", "page_number", "pageNumber", "page[number]", "pageNo")
_OFFSETS = ("offset", "skip", "$skip", "page[offset]", "startIndex", "start_index", "startAt")


def detect_paging(given: Mapping[str, Schema], response: DocumentNode | None, schemas: SchemaRegistry) -> Paging | None:
    """Return how these query arguments ask for the next page; None when the definition does not show it."""
    if response is None:
        return None
    items = _items_path(response, schemas)
    cursors = ((argument, at) for argument, places in _CURSORS if argument in given for at in places)
    for argument, at in cursors:
        if _has_path(response, at, schemas):
            return Paging(cursor=argument, at=at, items=items or ())
    if last := _last_cursor(given, response, items, schemas):
        return Paging(cursor=last[0], at=last[1], items=items or ())
    for link in _LINKS:
        if _has_path(response, (link,), schemas):
            return Paging(at=(link,), items=items or ())
    if items is not None:
        number = next((name for name in _NUMBERS if name in given), None)
        offset = next((name for name in _OFFSETS if name in given), None)
        if number:
            return Paging(number=number, first=_first(given[number]), items=items)
        return Paging(offset=offset, items=items) if offset else None
    return None


def _last_cursor(
    given: Mapping[str, Schema], response: DocumentNode, items: tuple[str, ...] | None, schemas: SchemaRegistry
) -> tuple[str, tuple[str, ...]] | None:
    """Return an argument and the place of its cursor, where names alone do not tell.

    `after` may take a date, and `page` a number. A reply that says whether more follows pages by them.
    """
    page = given.get("page", {}).get("type") == "string"
    if (page or "after" in given) and any(_has_path(response, (flag,), schemas) for flag in MORE_FLAGS):
        for argument, at in (("after", ("next",)), ("page", ("next_page",))):
            if argument in given and _has_path(response, at, schemas):
                return argument, at
        argument = "after" if "after" in given else "starting_after"
    else:
        argument = "starting_after"
    at = (*(items or ()), LAST_ITEM, "id")
    return (argument, at) if argument in given and items and _has_path(response, at, schemas) else None


def _first(schema: Schema) -> int:
    """Return the number of the first page: 1, unless the schema starts at 0."""
    return 0 if 0 in (schema.get("default"), schema.get("minimum")) and schema.get("default") != 1 else 1


def returns_list(response: DocumentNode, schemas: SchemaRegistry) -> bool | None:
    """Return whether a response is a list, or an object around one; None when that is unknown."""
    if _is_array(response, schemas):
        return True
    properties = _properties(response, schemas)
    arrays = [name for name, node in properties.items() if _is_array(node, schemas)]
    if any(name in _ITEMS for name in arrays):
        return True
    return None if arrays or not properties else False


def _properties(found: DocumentNode, schemas: SchemaRegistry) -> dict[str, DocumentNode]:
    out: dict[str, DocumentNode] = {}
    for part in all_of_parts(found, schemas):
        own = part.value.get("properties")
        for name, node in own.items() if isinstance(own, dict) else ():
            out.setdefault(name, DocumentNode(node, part.file, ""))
    return out


def _has_path(found: DocumentNode, at: tuple[str, ...], schemas: SchemaRegistry) -> bool:
    for step in at:
        if step == LAST_ITEM:
            try:
                array = schemas.follow(*found)
                found = DocumentNode(array.value.get("items"), array.file, "")
            except (DanglingReference, AttributeError):
                return False
            # Items of several kinds: the first kind stands for all.
            some = isinstance(found.value, dict) and (found.value.get("anyOf") or found.value.get("oneOf"))
            found = DocumentNode(some[0], found.file, "") if isinstance(some, list) and some else found
            continue
        below = _properties(found, schemas).get(step)
        if below is None:
            return False
        found = below
    return True


def _items_path(response: DocumentNode, schemas: SchemaRegistry) -> tuple[str, ...] | None:
    """Return the path to the array of a page's items: () when the response is that array, None when it is unknown."""
    if _is_array(response, schemas):
        return ()
    arrays = [name for name, node in _properties(response, schemas).items() if _is_array(node, schemas)]
    known = [name for name in _ITEMS if name in arrays]
    if known:
        return (known[0],)
    return (arrays[0],) if len(arrays) == 1 else None


def _is_array(found: DocumentNode, schemas: SchemaRegistry) -> bool:
    try:
        node = schemas.follow(*found).value
    except DanglingReference:
        return False
    kind = node.get("type") if isinstance(node, dict) else None
    return kind == "array" or (isinstance(kind, list) and "array" in kind)
