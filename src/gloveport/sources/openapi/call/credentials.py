"""Choose the secrets of a request: the first security alternative whose credential slots are all filled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gloveport.errors import ToolError
from gloveport.policy.credentials import Attachment, Credentials, Secret, renew_attachments
from gloveport.sources.compiled_definition import CredentialSlot
from gloveport.sources.unknown_slots import unknown_slots

Alternatives = Sequence[Sequence[str]]


class SourceCredentials:
    """The credential slots of one source. A secret leaves this class only bound to the origin that it is for."""

    def __init__(
        self, source: str, slots: Sequence[CredentialSlot], credentials: Credentials, configured: Sequence[str] = ()
    ) -> None:
        self._source = source
        self._credentials = credentials
        # A definition without security schemes does not mention credentials: a configured secret is sent as a bearer token.
        self.slots = tuple(slots) or tuple(CredentialSlot(name, "bearer") for name in configured)
        self._undeclared: Alternatives = () if slots else (*((slot.name,) for slot in self.slots), ())
        self.in_query = frozenset(slot.parameter.lower() for slot in self.slots if slot.kind == "query")
        self._by_name: Mapping[str, CredentialSlot] = {slot.name: slot for slot in self.slots}

    def warnings(self, configured: Sequence[str]) -> Iterator[str]:
        """Yield a warning for each configured slot that the source does not have."""
        return unknown_slots(self._source, configured, tuple(self._by_name))

    async def attach(self, alternatives: Alternatives, origin: str) -> tuple[Attachment, ...]:
        """Return the secrets to send; raises ToolError `auth-required`, whose setting names the variables to set."""
        alternatives = alternatives or self._undeclared
        if not alternatives:
            return ()
        for names in alternatives:
            slots = [self._by_name[name] for name in names if name in self._by_name]
            if slots and len(slots) == len(names) and (found := await self._found(slots, origin)):
                return found
        if any(not names for names in alternatives):
            return ()
        raise self._missing(alternatives)

    async def renew(self, refused: Sequence[Attachment]) -> tuple[Attachment, ...]:
        """Return the attachments with new secrets, after the service has refused them; nothing when there are none."""
        return await renew_attachments(self._credentials, refused)

    def refused(self, attachments: Sequence[Attachment]) -> str:
        """Return what a person can do about credentials that the service refused."""
        slots = [attachment.secret.label.partition(".")[2] for attachment in attachments]
        ways = " and ".join(self._credentials.wanted(self._source, slot) for slot in slots)
        return f"give it another credential: {ways}"

    async def _found(self, slots: Sequence[CredentialSlot], origin: str) -> tuple[Attachment, ...]:
        """Return the secrets of all slots; nothing when one of them is missing."""
        found: list[Attachment] = []
        for slot in slots:
            secret = await self._credentials.find(self._source, slot.name, origin)
            if secret is None:
                return ()
            found.append(_attachment(slot, secret, origin))
        return tuple(found)

    def _missing(self, alternatives: Alternatives) -> ToolError:
        ways = [" and ".join(map(self._wanted, names)) for names in alternatives]
        message = f"the source {self._source} has no credential for this call"
        return ToolError(message, code="auth-required", setting=", or ".join(dict.fromkeys(ways)))

    def _wanted(self, name: str) -> str:
        """Return what a person can do about an empty slot: to sign in comes first, where the service has accounts."""
        slot, way = self._by_name.get(name), self._credentials.wanted(self._source, name)
        if slot is None or slot.kind != "oauth2" or not way.startswith("run `gloveport auth add "):
            return way
        return f"run `gloveport auth login {self._source}.{name}` to sign in, or {way.removeprefix('run ')} for a token"


def _attachment(slot: CredentialSlot, secret: Secret, origin: str) -> Attachment:
    origins = frozenset({origin})
    if slot.kind in {"header", "query", "cookie"}:
        return Attachment(slot.kind, slot.parameter, secret, origins)  # pyright: ignore[reportArgumentType]
    if slot.kind == "basic":
        return Attachment("basic", "Authorization", secret, origins)
    return Attachment("header", "Authorization", secret, origins, "Bearer {}")
