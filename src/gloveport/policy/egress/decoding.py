"""Decoding: a reply's body is inflated in small pieces, so that a bomb is noticed long before it has gone off."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from gloveport.errors import ToolError

ACCEPTED = b"gzip, deflate"
_PIECE = 256 * 1024
_MOST_MEMBERS = 10_000


class Decoder:
    """Undoes one content encoding. Only those that can be undone piece by piece are asked for or taken."""

    def __init__(self, encoding: str, host: str) -> None:
        self._name = encoding.strip().lower().removeprefix("x-")
        self._inflater: zlib._Decompress | None = None
        self._members = 0
        if self._name not in {"", "identity", "gzip", "deflate"}:
            # Its name is not shown: a service may echo anything there.
            raise ToolError(f"the reply of {host} has an encoding that was not asked for", code="source-unreachable")

    @property
    def identity(self) -> bool:
        """Whether there is nothing to undo."""
        return self._name in {"", "identity"}

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The pieces of the body that these bytes give, none larger than 256 KiB if anything was inflated."""
        if self.identity:
            yield data
            return
        while data:
            if self._inflater is None:
                self._begin(data[0])
            assert self._inflater is not None
            piece = self._inflater.decompress(data, _PIECE)
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data, self._inflater = self._inflater.unused_data, None
            if piece:
                yield piece

    def _begin(self, first: int) -> None:
        """A gzip body may be several in a row; a deflated one is one. Empty ones are two bytes each, and add no size."""
        self._members += 1
        if self._members > (_MOST_MEMBERS if self._name == "gzip" else 1):
            raise zlib.error("more follows than there should be")
        self._inflater = zlib.decompressobj(self._window(first))

    def finish(self) -> None:
        """Raises zlib.error when the body broke off."""
        if self._inflater is not None:
            raise zlib.error("incomplete")

    def _window(self, first: int) -> int:
        if self._name == "gzip":
            return zlib.MAX_WBITS | 16
        # `deflate` means zlib's format, which begins with an 8 in the low half; some servers send it bare.
        return zlib.MAX_WBITS if first & 15 == 8 else -zlib.MAX_WBITS
