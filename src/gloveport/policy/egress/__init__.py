"""Egress: the only HTTP client. It decides where a request may go, and it injects the credentials.

    Request ─► urls ─► headers ─► inject ─► client ─► connect: resolve, check all `addresses`, connect to a checked one
                                               │
    Reply ◄─ redaction ◄─ response, decoding ◄─┘    a redirect starts again at the left

`transport` offers the same checks to libraries that bring their own client; `network_errors` explains failures. No other
module of Gloveport speaks HTTP: a test checks the imports of all modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gloveport.policy.egress.values import TRACE_PARENT, Reach, Reply, Request

if TYPE_CHECKING:
    from gloveport.policy.egress.client import Egress

__all__ = ["TRACE_PARENT", "Egress", "Reach", "Reply", "Request"]


def __getattr__(name: str) -> Any:
    """Import the client on first use: its libraries take 60 ms to load, which a run without requests should not pay."""
    if name != "Egress":
        raise AttributeError(name)
    from gloveport.policy.egress.client import Egress

    return Egress
