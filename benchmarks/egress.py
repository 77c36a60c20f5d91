"""The overhead of egress over a bare HTTP client. Both take turns with one keep-alive server on loopback."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

import httpx2

from benchmarks.sampling import Row, median
from gloveport.policy.credentials import Attachment, Secret
from gloveport.policy.egress import Egress, Reach, Request

BODY = b'{"number": 42, "title": "a small JSON reply", "labels": ["one", "two"]}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CALLS = 50


class Answering(asyncio.Protocol):
    """Run a server that answers every request alike."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER)


async def timed(call: Callable[[], Awaitable[object]]) -> list[float]:
    out = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await call()
        out.append(time.perf_counter() - began)
    return out


async def rows(rounds: int) -> list[Row]:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    reach = Reach(frozenset({origin}), allow_private=True)
    secret = Secret("ghp_x7Yq2Lw9Zk4Tn8Vb3Rm6Pc1Sd5Jf0", "github.token")
    attachment = Attachment("header", "Authorization", secret, frozenset({origin}), "Bearer {}")
    request = Request("GET", f"{origin}/repos/one/two", (("Accept", "application/json"),))
    egress = Egress()
    ours: list[float] = []
    bare: list[float] = []
    async with httpx2.AsyncClient(trust_env=False) as client:
        authorization = {"Accept": "application/json", "Authorization": f"Bearer {secret.reveal()}"}
        sides = [
            (ours, lambda: egress.send(request, reach, [attachment])),
            (bare, lambda: client.get(request.url, headers=authorization)),
        ]
        for _, call in sides:
            await timed(call)
        for turn in range(rounds):
            for samples, call in sides if turn % 2 else reversed(sides):
                samples.extend(await timed(call))
    await egress.close()
    server.close()
    left, right = median(ours), median(bare)
    return [
        ("one request through egress, p50", f"{left * 1e6:.0f} µs", f"{right * 1e6:.0f} µs (httpx2)", f"{left / right:.2f} ×", "≤ 1.2 ×")
    ]  # fmt: skip


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 40)):
        print(" | ".join(row))
