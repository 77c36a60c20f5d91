"""Egress: the one HTTP client. Where a request may go is judged here, and credentials are attached here.

    Request ─► urls ─► headers ─► attaching ─► client ─► dialing: resolve, judge all by `addresses`, connect to a judged one
                                                 │
    Reply ◄─ redaction ◄─ incoming, decoding ◄───┘    a redirect begins again at the left

No other module of Gloveport speaks HTTP: a test reads the imports of them all.
"""

from __future__ import annotations

from gloveport.policy.egress.client import Egress
from gloveport.policy.egress.values import Reach, Reply, Request

__all__ = ["Egress", "Reach", "Reply", "Request"]
