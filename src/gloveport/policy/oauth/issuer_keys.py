"""The public keys with which an issuer signs access tokens: fetched through egress, cached, and fetched anew sparingly."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from typing import TYPE_CHECKING, Any

from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OKPKey, RSAKey

from gloveport import urls
from gloveport.errors import ToolError
from gloveport.policy.egress import Reach
from gloveport.policy.oauth.discovery import fetch_document, safe_url, server_metadata

if TYPE_CHECKING:
    from gloveport.policy.egress import Egress

MAX_KEYS = 50
MAX_KEYS_BYTES = 256 * 1024
FETCH_SECONDS = 10
FRESH_SECONDS = 600.0
MAX_KEPT_SECONDS = 86_400.0  # while the issuer does not answer
RETRY_SECONDS = 30.0  # between two fetches for keys that are not there, however many tokens name one
_KINDS = {"RSA": RSAKey, "EC": ECKey, "OKP": OKPKey}  # no symmetric key: whoever verifies with one can also sign
PublicKey = RSAKey | ECKey | OKPKey

logger = logging.getLogger("gloveport")


class IssuerKeys:
    """The keys of one issuer."""

    def __init__(self, egress: Egress, issuer: str, *, allow_private: bool) -> None:
        self._egress = egress
        self._issuer = issuer
        self._allow_private = allow_private
        self._keys: dict[str, PublicKey] = {}
        self._fetched_at = self._tried_at = -math.inf
        self._fetching: asyncio.Task[None] | None = None

    async def find(self, kid: str) -> PublicKey | None:
        """Return the key of this id. One fetch serves all who wait, and an unknown id starts none for half a minute."""
        now = time.monotonic()
        stale = kid not in self._keys or now > self._fetched_at + FRESH_SECONDS
        if self._fetching is None and stale and now > self._tried_at + RETRY_SECONDS:
            self._tried_at = now
            self._fetching = asyncio.create_task(self._fetch())
        if self._fetching is not None and stale:
            await asyncio.shield(self._fetching)
        return self._keys.get(kid) if time.monotonic() < self._fetched_at + MAX_KEPT_SECONDS else None

    async def close(self) -> None:
        """Close the client."""
        if self._fetching is not None:
            self._fetching.cancel()
        await self._egress.close()

    async def _fetch(self) -> None:
        try:
            self._keys, self._fetched_at = await self._read(), time.monotonic()
        except ToolError as error:
            logger.warning("the keys of %s can't be read: %s", self._issuer, error.message)
        finally:
            self._fetching = None

    async def _read(self) -> dict[str, PublicKey]:
        reach = Reach(
            allow_private=self._allow_private, total_seconds=FETCH_SECONDS, max_bytes=MAX_KEYS_BYTES, max_redirects=0
        )
        metadata = await server_metadata(self._egress, self._issuer, reach)
        if metadata.get("issuer") != self._issuer:
            raise ToolError("its metadata are those of another issuer", code="auth-required")  # mix-up (M9)
        place = safe_url(metadata.get("jwks_uri"), "the address of its keys")
        own = Reach(frozenset({urls.parse(place).origin}), self._allow_private, True, 10, FETCH_SECONDS, MAX_KEYS_BYTES, 0)
        document = await fetch_document(self._egress, place, own)
        listed = (document or {}).get("keys")
        if not isinstance(listed, list):
            raise ToolError("there is no set of keys", code="auth-required")
        return {kid: key for kid, key in map(_key, listed[:MAX_KEYS]) if key is not None}


def _key(stated: Any) -> tuple[str, PublicKey | None]:
    if not isinstance(stated, dict) or stated.get("use", "sig") != "sig":
        return "", None
    kind, kid = _KINDS.get(str(stated.get("kty"))), stated.get("kid", "")
    if kind is None or not isinstance(kid, str):
        return "", None
    try:
        return kid, kind.import_key(stated)
    except (JoseError, ValueError, TypeError):
        return "", None
