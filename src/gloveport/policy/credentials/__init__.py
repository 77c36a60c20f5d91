"""Credentials: secrets that are revealed only on the last line before the socket, and where they come from.

    source ─► Credentials.find ─► Secret ─► Attachment, bound to origins ─► egress injects it
                     ▲                                                          │
                     └───────────── renew, once, when the service answers 401 ──┘

A credential is looked up for every request: it may have been added, replaced or refreshed since the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, NoReturn, Protocol

__all__ = ["Attachment", "Credentials", "Secret", "renew_attachments"]


class Secret:
    """A text that repr, logs, JSON and pickle never show. They show `label` (`SOURCE.SLOT`) instead."""

    __slots__ = ("_text", "label")

    def __init__(self, text: str, label: str) -> None:
        self._text = text
        self.label = label

    def reveal(self) -> str:
        """Return the text itself. Call it only on the last line before the socket."""
        return self._text

    def __repr__(self) -> str:
        return f"•••({self.label})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret can't be pickled")


@dataclass(frozen=True, slots=True)
class Attachment:
    """A secret and how a request carries it. It is sent to `origins` (`https://api.github.com`) and nowhere else.

    `template` has one `{}` for the secret: `Bearer {}`. For `basic` the secret is `user:password`, sent in base64.
    """

    place: Literal["header", "query", "cookie", "basic"]
    name: str
    secret: Secret
    origins: frozenset[str]
    template: str = "{}"


class Credentials(Protocol):
    """Finds the secrets of sources. Every request asks for its own."""

    async def find(self, source: str, slot: str, origin: str) -> Secret | None:
        """Return the secret of a source's slot for requests to an origin, or None when there is none.

        The label of the secret is `SOURCE.SLOT`. Raise ToolError `auth-required` when a person has to sign in again.
        """
        ...

    async def renew(self, refused: Secret, origin: str) -> Secret | None:
        """Return a new secret in place of one that a service answered with 401; None when there is no other."""
        ...

    def wanted(self, source: str, slot: str) -> str:
        """Return what a person must do so that `find` finds it, as a sentence without a subject: `set NAME`."""
        ...


async def renew_attachments(credentials: Credentials, refused: Sequence[Attachment]) -> tuple[Attachment, ...]:
    """Return the attachments with new secrets, after a service has refused them; nothing when no secret is new."""
    fresh: list[Attachment] = []
    renewed = False
    for attachment in refused:
        found = [await credentials.renew(attachment.secret, origin) for origin in attachment.origins]
        secret = next(filter(None, found), None)
        renewed = renewed or secret is not None
        fresh.append(replace(attachment, secret=secret or attachment.secret))
    return tuple(fresh) if renewed else ()
