"""`fetch` of 1 MB in a program, beside the same request by the host alone plus one call of the bridge with that result."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable

from benchmarks.sampling import Row, median
from gloveport import EgressRule, Gloveport
from gloveport.policy.egress import Egress, Reach, Request
from gloveport.types import Language

BODY = bytes(range(256)) * 4096
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CALLS = 20
BAR = "≤ 1.5 ×"


class Answering(asyncio.Protocol):
    """Run a server that answers every request alike."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._transport.write(ANSWER)


async def body() -> bytes:
    """Return the body."""
    return BODY


# Each program measures its own calls, in the host's time: the clock of a guest moves with the events that it gets.
SCRIPT = """
const times = [];
for (let i = 0; i < CALLS; i++) { const began = performance.now(); await CALL; times.push(performance.now() - began); }
return times;
"""
PYTHON = """
import time
times = []
for i in range(CALLS):
    began = time.perf_counter()
    await CALL
    times.append((time.perf_counter() - began) * 1000)
times
"""
PROGRAMS: dict[Language, tuple[str, str, str]] = {
    "javascript": (SCRIPT, "fetch(input).then((r) => r.bytes())", "tools.body()"),
    "python": (PYTHON, "fetch(input)", "tools.body()"),
}


async def _timed(make: Callable[[], Awaitable[object]]) -> list[float]:
    out = []
    for _ in range(CALLS):
        began = time.perf_counter()
        await make()
        out.append((time.perf_counter() - began) * 1000)
    return out


async def rows(rounds: int) -> list[Row]:
    """Measure both in turn, in each language."""
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    origin = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    reach = Reach(frozenset({origin}), allow_private=True)
    egress, request = Egress(), Request("GET", f"{origin}/")
    out: list[Row] = []
    async with Gloveport(tools=[body], rules=[EgressRule(origin, "allow", allow_private=True)]) as port:
        for language, (program, fetched, called) in PROGRAMS.items():
            samples: dict[str, list[float]] = {"fetch": [], "alone": [], "call": []}
            for _ in range(rounds + 1):
                for name, expression in (("fetch", fetched), ("call", called)):
                    code = program.replace("CALLS", str(CALLS)).replace("CALL", expression)
                    outcome = await port.run(code, language=language, input=f"{origin}/")
                    assert outcome.error is None, outcome.error
                    samples[name] += outcome.value[2:]
                samples["alone"] += (await _timed(lambda: egress.send(request, reach)))[2:]
            ours, floor = median(samples["fetch"]), median(samples["alone"]) + median(samples["call"])
            about = f"{median(samples['alone']):.1f} + {median(samples['call']):.1f} ms (host alone + one call)"
            out.append((f"fetch of 1 MB in {language}, p50", f"{ours:.1f} ms", about, f"{ours / floor:.2f} ×", BAR))
    await egress.close()
    server.close()
    return out


if __name__ == "__main__":
    for row in asyncio.run(rows(int(sys.argv[1]) if len(sys.argv) > 1 else 10)):
        print(" | ".join(row))
