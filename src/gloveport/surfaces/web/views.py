"""The addresses of the pages. Each view is also there as JSON: `/runs.json` answers what `/v1/runs` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

TWINS: Mapping[str, str] = {
    "/runs": "/v1/runs",
    "/approvals": "/v1/approvals",
    "/tools": "/v1/tools",
    "/sources": "/v1/sources",
    "/playground": "/v1/examples",
    "/policies": "/v1/policies",
    "/agents": "/v1/agents",
    "/audit": "/v1/audit",
    "/sign-in": "/v1/me",
}
"""Each view, with the endpoint that has what it shows."""
TABS: Mapping[tuple[str, str], str] = {
    ("/approvals", "plans"): "/v1/plans",
    ("/approvals", "standing"): "/v1/approvals/standing",
    ("/tools", "changes"): "/v1/changes",
    ("/sources", "clients"): "/v1/clients",
}
"""What a view shows with this `view` in its query, where that is something else."""
CHOICES: Mapping[str, frozenset[str]] = {
    "/runs": frozenset({"call", "line"}),
    "/approvals": frozenset({"view"}),
    "/tools": frozenset({"view", "q", "run", "language"}),
    "/sources": frozenset({"view", "client"}),
    "/playground": frozenset({"run", "example", "new", "call"}),
    "/policies": frozenset({"view", "q", "tool", "args"}),
    "/agents": frozenset({"name", "role"}),
    "/audit": frozenset({"event"}),
}
"""The query parameters of each view that select a part of the page. The API gets all others, as filters."""
FIRST_TWIN = "/index.json"
_ONE = re.compile(r"(/runs|/approvals|/tools|/sources)/([^/]{1,300})")


def is_view(path: str) -> bool:
    """Return whether a page shows this path; the page itself says when there is no such run."""
    return path == "/" or path in TWINS or (_ONE.fullmatch(path) is not None and not path.endswith(".json"))


def twin_of(path: str, query: str = "") -> tuple[str, str] | None:
    """Return the path and the query of the API that answer `VIEW.json`; None for any other path."""
    if path == FIRST_TWIN:
        return "/v1/me", query
    view = path.removesuffix(".json")
    one = _ONE.fullmatch(view)
    name = one[1] if one else view
    if view == path or name not in TWINS:
        return None
    members = parse_qsl(query, keep_blank_values=True)
    known = f"{TWINS[name]}/{one[2]}" if one else TABS.get((name, dict(members).get("view", "")), TWINS[name])
    return known, urlencode([(key, text) for key, text in members if key not in CHOICES.get(name, ())])
