"""Inject credentials into a request, on the last line before the socket."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import quote

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment
from gloveport.policy.egress.headers import Pair, encode
from gloveport.urls import Url


def check_origins(origin: str, attachments: Sequence[Attachment]) -> None:
    """Raise ToolError `egress-denied` when a secret is not for this origin: no request is sent without its credentials."""
    for attachment in attachments:
        if origin not in attachment.origins:
            theirs = ", ".join(sorted(attachment.origins)) or "no origin"
            message = f"the credential {attachment.secret.label} is for {theirs}, not for {origin}"
            raise ToolError(message, code="egress-denied")


def inject_query(url: Url, attachments: Sequence[Attachment]) -> bytes:
    """Return the target of the request with the secrets that belong in its query."""
    target = url.target
    for attachment in _own(url, attachments):
        if attachment.place == "query":
            pair = f"{quote(attachment.name, safe='')}={quote(_filled(attachment), safe='')}"
            if pair not in url.query:  # a redirect may repeat the query
                target += ("&" if "?" in target else "?") + pair
    return target.encode()


def inject_headers(url: Url, headers: Sequence[Pair], attachments: Sequence[Attachment]) -> list[Pair]:
    """Return the headers with the secrets that belong in them. A secret replaces a caller's header of the same name."""
    own = _own(url, attachments)
    if not own:
        return list(headers)
    added = [_header(attachment) for attachment in own if attachment.place != "query"]
    cookies = [value for name, value in (*headers, *added) if name.lower() == b"cookie"]
    replaced = {name.lower() for name, _ in added} | {b"cookie"}
    out = [pair for pair in headers if pair[0].lower() not in replaced]
    out += [pair for pair in added if pair[0] != b"Cookie"]
    return [*out, (b"Cookie", b"; ".join(cookies))] if cookies else out


def _own(url: Url, attachments: Sequence[Attachment]) -> list[Attachment]:
    return [attachment for attachment in attachments if url.origin in attachment.origins]


def _filled(attachment: Attachment) -> str:
    return attachment.template.replace("{}", attachment.secret.reveal())


def _header(attachment: Attachment) -> Pair:
    if attachment.place == "basic":
        return encode("Authorization", "Basic " + b64encode(_filled(attachment).encode()).decode())
    if attachment.place == "cookie":
        pair = encode(attachment.name, _filled(attachment))
        if b";" in pair[1]:
            message = f"the credential {attachment.secret.label} can't be a cookie: it contains a semicolon"
            raise ToolError(message, code="egress-denied")
        return b"Cookie", b"=".join(pair)
    return encode(attachment.name, _filled(attachment))
