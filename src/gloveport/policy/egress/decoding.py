"""Decode the body of a reply in small pieces, so that a decompression bomb is noticed early (B13)."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from gloveport.errors import ToolError

ACCEPTED = b"gzip, deflate"
_PIECE_BYTES = 256 * 1024
_MAX_GZIP_MEMBERS = 10_000


class Decoder:
    """Decodes one content encoding. Only encodings that can be decoded in pieces are requested or accepted."""

    def __init__(self, encoding: str, host: str) -> None:
        self._name = encoding.strip().lower().removeprefix("x-")
        self._inflater: zlib._Decompress | None = None
        self._members = 0
        if self._name not in {"", "identity", "gzip", "deflate"}:
            # The name is not shown: a service may echo anything there.
            raise ToolError(f"the reply of {host} has an encoding that was not requested", code="source-unreachable")

    @property
    def identity(self) -> bool:
        """Whether there is nothing to decode."""
        return self._name in {"", "identity"}

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the pieces of the body that these bytes give. No decompressed piece is larger than 256 KiB."""
        if self.identity:
            yield data
            return
        while data:
            if self._inflater is None:
                self._begin(data[0])
            assert self._inflater is not None
            piece = self._inflater.decompress(data, _PIECE_BYTES)
            data = self._inflater.unconsumed_tail
            if self._inflater.eof:
                data, self._inflater = self._inflater.unused_data, None
            if piece:
                yield piece

    def _begin(self, first: int) -> None:
        """Start the next member. A gzip body may have several; empty ones take two bytes and add no size."""
        self._members += 1
        if self._members > (_MAX_GZIP_MEMBERS if self._name == "gzip" else 1):
            raise zlib.error("too many members")
        self._inflater = zlib.decompressobj(self._window(first))

    def finish(self) -> None:
        """Raise zlib.error when the body is incomplete."""
        if self._inflater is not None:
            raise zlib.error("incomplete")

    def _window(self, first: int) -> int:
        if self._name == "gzip":
            return zlib.MAX_WBITS | 16
        # `deflate` means the zlib format, whose first byte has 8 in its low half. Some servers send raw deflate.
        return zlib.MAX_WBITS if first & 15 == 8 else -zlib.MAX_WBITS
