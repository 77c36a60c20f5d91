"""Redaction: remove the secrets of a request from its reply, in the common encodings.

A secret of fewer than 4 characters is not searched for. One of fewer than 8 is searched for as it is and escaped, but not
in base64 or hex: texts that short occur everywhere, and a reply full of redactions is of no use.

A reply may be full of near misses: a service knows the secret that it was sent. So the time is linear in the reply for
every reply, and `clean` belongs into a thread when the reply is large: see `large_values`.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from urllib.parse import quote

from gloveport.large_values import off_loop_if
from gloveport.policy.credentials import Attachment
from gloveport.policy.escaped_text import EscapedText, find

_MIN_SECRET_CHARS = 4
_MIN_ENCODED_SECRET_CHARS = 8
_MAX_BYTES_AT_ONCE = 8 * 1024
_URL_SAFE = bytes.maketrans(b"+/", b"-_")


class Redaction:
    """Replaces the secrets of one request by `•••(label)`."""

    def __init__(self, attachments: Sequence[Attachment]) -> None:
        self._texts: list[tuple[EscapedText, bytes]] = []
        self._forms: list[tuple[bytes, bytes]] = []
        self.add(attachments)

    def add(self, attachments: Sequence[Attachment]) -> None:
        """Redact the secrets of these attachments too."""
        for attachment in attachments:
            shown = f"•••({attachment.secret.label})".encode()
            for text in sorted(_texts(attachment), key=len, reverse=True):
                if len(text) >= _MIN_SECRET_CHARS:
                    self._texts.append((EscapedText(text), shown))
                if len(text) >= _MIN_ENCODED_SECRET_CHARS:
                    data = text.encode("utf-8", "surrogateescape")
                    self._forms += [(form, shown) for form in _encoded(data)]
                    self._texts += [(EscapedText(form), shown) for form in sorted(_base64(data))]

    def __bool__(self) -> bool:
        return bool(self._texts)

    def clean(self, data: bytes) -> bytes:
        """Return the bytes without the secrets; the same object when it contains none."""
        for text, shown in self._texts:
            data = text.replace_in(data, shown)
        for form, shown in self._forms:
            if find(data, form) >= 0:
                data = data.replace(form, shown)
        return data

    async def clean_body(self, data: bytes) -> bytes:
        """Return the bytes without the secrets, cleaned away from the event loop unless they are few."""
        return await off_loop_if(bool(self) and len(data) > _MAX_BYTES_AT_ONCE, self.clean, data)

    def clean_text(self, text: str) -> str:
        """Return the text without the secrets."""
        return self.clean(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self else text


def _texts(attachment: Attachment) -> set[str]:
    """Return the texts to redact: the secret, and the form in which it is sent, because an echo may encode that again.

    For `user:password` the password alone is a secret too.
    """
    secret = attachment.secret.reveal()
    if attachment.place == "basic":
        return {secret, secret.partition(":")[2], b64encode(secret.encode("utf-8", "surrogateescape")).decode()}
    return {secret, quote(secret, safe="", errors="surrogateescape")}


def _encoded(data: bytes) -> set[bytes]:
    """Return the text in hex and in UTF-16."""
    text = data.decode("utf-8", "surrogateescape")
    wide = {text.encode("utf-16-le", "surrogatepass"), text.encode("utf-16-be", "surrogatepass")}
    return wide | {data.hex().encode(), data.hex().upper().encode()}


def _base64(data: bytes) -> set[str]:
    """Return the text in base64 for each position at which it can begin in the encoded data."""
    forms: set[str] = set()
    for before in range(3):
        # The characters at both ends mix bits of the secret with its neighbours' bits. They are unknown, so they stay.
        first, last = -(-before * 8 // 6), (before + len(data)) * 8 // 6
        form = b64encode(bytes(before) + data)[first:last]
        forms |= {form.decode(), form.translate(_URL_SAFE).decode()}
    return forms
