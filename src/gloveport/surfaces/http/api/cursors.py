"""Cursors: where the next page of a list begins, as a text that callers give back and need not understand."""

from __future__ import annotations

import base64
from typing import Any

import orjson

from gloveport.errors import GloveportError

MAX_NUMBER = 2**63  # which the store can't hold


def to_cursor(*place: int | str) -> str:
    """Return the cursor of a place."""
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode()


def from_cursor(text: str, *kinds: type) -> tuple[Any, ...]:
    """Return the place of a cursor, whose parts are of these types; raise GloveportError for any other text."""
    try:
        place = orjson.loads(base64.urlsafe_b64decode(text))
    except ValueError:
        place = []
    is_place = isinstance(place, list) and tuple(map(type, place)) == kinds
    if not is_place or not all(-MAX_NUMBER < part < MAX_NUMBER for part in place if isinstance(part, int)):
        raise GloveportError("no page begins at this cursor", code="not-found", hint="use the `next` of the page before")
    return tuple(place)
