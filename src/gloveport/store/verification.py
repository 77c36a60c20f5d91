"""Verifies the chains of a store: finds events that were changed, removed, moved or cut off, and says where."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from gloveport.errors import StoreError
from gloveport.large_values import sha256
from gloveport.store.contents import digest, restored
from gloveport.store.encryption import StoreConnection, about

GENESIS = bytes(32)


class EventPlace(NamedTuple):
    """The chain of an event, its number there, its time and its kind."""

    chain: str
    number: int
    at: int
    kind: str


def event_hash(before: bytes, place: EventPlace, body: bytes) -> bytes:
    """Return the hash of an event that follows one with the hash `before`."""
    head = "\n".join(map(str, place)).encode()
    return sha256(before + len(head).to_bytes(4, "big") + head + body)


@dataclass(frozen=True, slots=True)
class AuditProblem:
    """A difference between what was recorded and what is in the file: in which chain, at which event, and which."""

    chain: str
    number: int
    what: str

    def __str__(self) -> str:
        return f"event {self.number} of the chain {self.chain}: {self.what}"


@dataclass(frozen=True, slots=True)
class AuditReport:
    """The result of a verification; `heads` are the number and hash of the last event of each chain.

    Who keeps the hashes in `newest` has a proof of all: no other chain refers to these heads, and they lead to the others.
    """

    events: int
    heads: dict[str, tuple[int, str]]
    newest: tuple[str, ...]
    problems: tuple[AuditProblem, ...]


def verify(connection: sqlite3.Connection, known_head: str | None = None) -> AuditReport:
    """Recompute every chain and check all links. `known_head` is a hash that was noted earlier: it must still be there."""
    links = _links(connection)
    targets = {(link.chain, link.number) for link in links}
    found: dict[tuple[str, int], str] = {}
    heads: dict[str, tuple[int, str]] = {}
    problems: list[AuditProblem] = []
    count, has_known_head = 0, known_head is None
    chain, number, before, intact = "", 0, GENESIS, True
    for row_chain, row_number, at, kind, body, stored in connection.execute(
        "SELECT chain, number, at, kind, body, hash FROM events ORDER BY chain, number"
    ):
        count += 1
        if row_chain != chain:
            chain, number, before, intact = row_chain, 0, GENESIS, True
        if intact and row_number != number + 1:
            problems.append(AuditProblem(chain, number + 1, f"missing; the next one there is {row_number}"))
            intact = False
        elif intact and _hash(before, EventPlace(chain, row_number, at, kind), body) != stored:
            problems.append(AuditProblem(chain, row_number, f"changed since it was recorded (`{kind}`)"))
            intact = False
        number, before = row_number, stored
        shown = stored.hex() if isinstance(stored, bytes) else repr(stored)
        heads[chain] = (row_number, shown)
        has_known_head = has_known_head or shown == known_head
        if (chain, row_number) in targets:
            found[chain, row_number] = shown
    problems += _broken_links(links, found)
    if not count and connection.execute("SELECT 1 FROM hosts LIMIT 1").fetchone():
        problems.append(AuditProblem("?", 1, "missing; hosts have used this store, and it has no event at all"))
    if not has_known_head:
        problems.append(AuditProblem("?", 0, f"no event has the hash {known_head}: it was changed or cut off"))
    newest = tuple(head for chain, (number, head) in heads.items() if (chain, number) not in targets)
    return AuditReport(count, heads, newest, tuple(problems))


def _hash(before: bytes, place: EventPlace, body: object) -> bytes | None:
    """Return the hash of an event; None for one that no host has written like this."""
    if not isinstance(body, str):
        return None
    try:
        return event_hash(before, place, body.encode())
    except UnicodeEncodeError:
        return None


class _Link(NamedTuple):
    """A reference of one chain to the head of another at that time."""

    chain: str
    number: int
    hash: str
    place: str


def _links(connection: sqlite3.Connection) -> list[_Link]:
    links: list[_Link] = []
    for chain, number, body in connection.execute("SELECT chain, number, body FROM events WHERE kind = 'linked'"):
        try:
            heads = orjson.loads(body)["heads"]
            found = [(str(other), int(last), str(head)) for other, (last, head) in heads.items()]
        except (ValueError, TypeError, KeyError, AttributeError):
            continue  # it was changed: the chain itself shows that
        links += [_Link(*one, f"event {number} of the chain {chain}") for one in found]
    return links


def _broken_links(links: list[_Link], found: dict[tuple[str, int], str]) -> Iterator[AuditProblem]:
    for link in links:
        there = found.get((link.chain, link.number))
        if there is None:
            yield AuditProblem(link.chain, link.number, f"missing; {link.place} refers to it")
        elif there != link.hash:
            yield AuditProblem(link.chain, link.number, f"not the one to which {link.place} refers")


def damaged_payloads(connection: StoreConnection) -> tuple[str, ...]:
    """Return the digests of stored arguments and results whose content was changed. Deleted contents are not listed.

    Raise StoreError with the code `store-key` where they are encrypted and the key is missing.
    """
    rows = connection.execute("SELECT digest, content, form FROM payloads")
    return tuple(name.hex() for name, content, form in rows if not _is_intact(connection, name, content, form))


def _is_intact(connection: StoreConnection, name: bytes, content: bytes, form: int) -> bool:
    try:
        found = restored(connection.unseal(content, about("payloads", "content", name)), form)
    except StoreError as error:
        if error.code == "store-key":
            raise
        return False
    return found is not None and digest(found) == name
