"""Egress: the one HTTP client. Where a request may go is judged here, and credentials are attached here.

    Request ─► urls ─► headers ─► attaching ─► client ─► dialing: resolve, judge all by `addresses`, connect to a judged one
                                                 │
    Reply ◄─ redaction ◄─ incoming, decoding ◄───┘    a redirect begins again at the left

No other module of Gloveport speaks HTTP: a test reads the imports of them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gloveport.policy.egress.values import Reach, Reply, Request

if TYPE_CHECKING:
    from gloveport.policy.egress.client import Egress

__all__ = ["Egress", "Reach", "Reply", "Request"]


def __getattr__(name: str) -> Any:
    """The client brings its libraries with it, which take 60 ms to load: not for a run that reaches nothing."""
    if name != "Egress":
        raise AttributeError(name)
    from gloveport.policy.egress.client import Egress

    return Egress
