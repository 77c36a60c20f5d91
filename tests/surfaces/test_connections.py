"""What is written to a connection goes out in its order, and what is small in one system call for each turn of the loop."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from gloveport.surfaces.http.connections import MAX_JOINED_BYTES, _JoinedWrites


class Sent:
    """A transport that remembers what it was told."""

    def __init__(self) -> None:
        self.told: list[bytes | str] = []

    def write(self, data: bytes) -> None:
        self.told.append(bytes(data))

    def close(self) -> None:
        self.told.append("close")

    def is_closing(self) -> bool:
        return "close" in self.told


def joined(sent: Sent) -> Any:
    return _JoinedWrites(cast(Any, sent), asyncio.get_running_loop())


async def test_the_pieces_of_one_turn_are_sent_together() -> None:
    sent = Sent()
    transport = joined(sent)
    for piece in (b"head", b"", b"body"):
        transport.write(piece)
    assert sent.told == []
    await asyncio.sleep(0)
    assert sent.told == [b"headbody"]
    transport.write(b"next")
    await asyncio.sleep(0)
    assert sent.told == [b"headbody", b"next"]


async def test_much_is_sent_at_once_behind_what_waits_and_is_never_copied() -> None:
    sent, much = Sent(), bytes(MAX_JOINED_BYTES + 1)
    transport = joined(sent)
    transport.write(b"head")
    transport.write(much)
    transport.write(b"tail")
    assert sent.told == [b"head", much]
    await asyncio.sleep(0)
    assert sent.told == [b"head", much, b"tail"]


async def test_a_connection_that_is_closed_has_sent_everything() -> None:
    sent = Sent()
    transport = joined(sent)
    transport.write(b"last")
    transport.close()
    await asyncio.sleep(0)
    assert sent.told == [b"last", "close"]
    assert transport.is_closing()
