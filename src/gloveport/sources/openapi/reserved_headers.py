"""Headers that no argument can set, because something else decides them: the body, the reply's type, a credential, HTTP."""

from __future__ import annotations

AUTHORIZATION = "authorization"
# The specification describes these elsewhere and says to ignore parameters of these names, or HTTP itself needs them.
COMPUTED_HEADERS = frozenset(
    {"accept", "connection", "content-length", "content-type", "host", "keep-alive", "te", "trailer", "transfer-encoding"}
)
RESERVED_HEADERS = COMPUTED_HEADERS | {
    AUTHORIZATION,
    "cookie",
    "expect",
    "proxy-authorization",
    "proxy-connection",
    "upgrade",
}
