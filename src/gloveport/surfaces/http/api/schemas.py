"""The shapes that the endpoints share, as JSON schemas: the OpenAPI document has them as components. And cursors."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import orjson

from gloveport.errors import GloveportError
from gloveport.store.stored_runs import RUN_ID

Schema = Mapping[str, Any]
MAX_PAGE_ROWS = 200
DEFAULT_PAGE_ROWS = 50
MAX_NUMBER = 2**63  # which the store can't hold

STATUSES = ("running", "waiting", "interrupted", "completed", "failed", "cancelled")
TEXT: Schema = {"type": "string"}
OPTIONAL_TEXT: Schema = {"type": ["string", "null"]}
NUMBER: Schema = {"type": "number"}
OPTIONAL_NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": "integer", "minimum": 0}
FLAG: Schema = {"type": "boolean"}
ANYTHING: Schema = {}
RUN_NAME: Schema = {"type": "string", "pattern": f"^{RUN_ID.pattern}$"}
SESSION_NAME = RUN_NAME
LIMIT: Schema = {
    "type": "integer",
    "minimum": 1,
    "maximum": MAX_PAGE_ROWS,
    "description": f"a number from 1 to {MAX_PAGE_ROWS}",
}
CURSOR: Schema = {"type": "string", "maxLength": 300, "description": "the `next` of the page before"}
SINCE: Schema = {
    "type": "string",
    "pattern": "^[0-9]{1,6}[smhd]$",
    "description": "so long ago, such as 30s, 10m, 1h or 7d",
}


def record(required: Mapping[str, Schema], /, **optional: Schema) -> Schema:
    """Return the schema of an object with these members, and no others."""
    return {
        "type": "object",
        "properties": {**required, **optional},
        "required": list(required),
        "additionalProperties": False,
    }


def rows(of: Schema) -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": of}


def ref(name: str) -> Schema:
    """Return a reference to one of the components."""
    return {"$ref": f"#/components/schemas/{name}"}


def found(**members: Schema) -> Schema:
    """Return the schema of an answer that has these members."""
    return record({"ok": {"const": True}, **members})


def page(name: str, of: Schema) -> Schema:
    """Return the schema of one page of a list. `next` is null on the last one."""
    return found(**{name: rows(of), "next": OPTIONAL_TEXT})


RUN = record(
    {
        "run": TEXT,
        "status": {"enum": list(STATUSES)},
        "agent": TEXT,
        "language": TEXT,
        "engine": TEXT,
        "started": {"type": "string", "format": "date-time"},
        "seconds": OPTIONAL_NUMBER,
        "calls": COUNT,
        "error": OPTIONAL_TEXT,
        "obstacle": OPTIONAL_TEXT,
    },
    title={**TEXT, "description": "the first line of its program that says something"},
)
FAILURE: Schema = {
    "type": ["object", "null"],
    "properties": {"code": TEXT, "message": TEXT, "line": {"type": ["integer", "null"]}, "hint": OPTIONAL_TEXT},
    "required": ["code", "message"],
}
OUTCOME: Schema = {
    "type": "object",
    "properties": {
        "ok": FLAG,
        "run": TEXT,
        "status": {"enum": ["running", "waiting", "completed", "failed", "cancelled"]},
        "value": ANYTHING,
        "error": ref("Failure"),
        "logs": rows(record({"level": TEXT, "text": TEXT})),
        "emitted": rows(ANYTHING),
        "calls": rows({"type": "object"}),
        "usage": {"type": "object"},
        "warnings": rows(TEXT),
        "plan": {"type": ["object", "null"]},
        "waiting": rows(TEXT),
        "engine": OPTIONAL_TEXT,
    },
    "required": ["ok", "run", "status"],
}
PROBLEM = record({"ok": {"const": False}, "error": {"type": "object", "required": ["code", "message", "hint", "data"]}})
REQUEST: Schema = {
    "type": "object",
    "properties": {
        **dict.fromkeys(("id", "digest", "tool", "agent", "run"), TEXT),
        "args": {"type": "object"},
        "held": {**FLAG, "description": "a host runs that goes on with its run after the answer; else somebody resumes it"},
        "answer": {"anyOf": [record({"approved": FLAG, "approver": TEXT, "reason": TEXT}), {"type": "null"}]},
    },
    "required": ["id", "digest", "tool", "args", "agent", "run", "reason", "reads", "asked", "expires"],
}
TOOL = record(
    {
        "path": TEXT,
        "address": TEXT,
        "description": TEXT,
        "source": TEXT,
        "writes": FLAG,
        "suspended": OPTIONAL_TEXT,
    }
)
COMPONENTS: Mapping[str, Schema] = {
    "Run": RUN,
    "Failure": FAILURE,
    "Outcome": OUTCOME,
    "Problem": PROBLEM,
    "ApprovalRequest": REQUEST,
    "Tool": TOOL,
}


def to_cursor(*place: int | str) -> str:
    """Return the cursor of a place: where the next page of a list begins, as a text that callers give back."""
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
