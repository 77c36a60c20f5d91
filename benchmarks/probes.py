"""Attacks on each contender: read a file, open a socket, loop endlessly, take two gigabytes.

Each result is observed from outside: the content of a file of the host, a connection to a listener, CPU time that is still
used, the memory of the contender's processes. An attack that fails proves no isolation; one that succeeds shows that there
is none.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from benchmarks.peers import Contender, PeerError, Running
from benchmarks.processes import resident_mb, seconds_of

LIMIT_SECONDS, LATE_SECONDS, GIVEN_UP_SECONDS = 1, 1.0, 20.0
ONE_WAY_SECONDS = 5.0  # a program that has connected may wait for a reply that never comes
BOUNDED_MB = 1024


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the isolation held, and a description."""

    held: bool
    told: str


async def reads_file(contender: Contender) -> Verdict:
    """Read a world-readable file of the host."""
    secret = secrets.token_hex(16)
    running = await Running(contender).start()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "canary"
        path.write_text(secret)
        os.chmod(folder, 0o755)
        got = []
        for program in contender.programs.read:
            with contextlib.suppress(PeerError, TimeoutError):
                got.append(secret in str(await running.run(program.replace("{path}", str(path)), ONE_WAY_SECONDS)))
    await running.close()
    return Verdict(not any(got), f"read ({sum(got)} of {len(contender.programs.read)} ways)" if any(got) else "not read")


async def connects(contender: Contender) -> Verdict:
    """Connect to a listener on the host's loopback."""
    running = await Running(contender).start()
    reached = 0
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        for program in contender.programs.connect:
            with contextlib.suppress(PeerError, TimeoutError):
                await running.run(program.replace("{port}", str(listener.getsockname()[1])), ONE_WAY_SECONDS)
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                reached += 1
    await running.close()
    ways = len(contender.programs.connect)
    return Verdict(not reached, f"connected ({reached} of {ways} ways)" if reached else "not connected")


async def spins(contender: Contender) -> Verdict:
    """Loop endlessly under a limit of one second: the reply must come in time, and nothing may run on."""
    running = await Running(contender, seconds=LIMIT_SECONDS).start()
    began = time.perf_counter()
    try:
        await running.run(contender.programs.endless, GIVEN_UP_SECONDS)
    except PeerError:
        pass
    except TimeoutError:
        await running.close()
        return Verdict(False, f"not ended after {GIVEN_UP_SECONDS:.0f} s")
    took = time.perf_counter() - began
    await asyncio.sleep(0.5)  # for processes that it restarts
    before = seconds_of(running.pid)
    await asyncio.sleep(1)
    goes_on = seconds_of(running.pid) - before > 0.5
    await running.close()
    if goes_on:
        return Verdict(False, f"answered after {took:.1f} s, and ran on")
    return Verdict(took < LIMIT_SECONDS + LATE_SECONDS, f"ended after {took:.1f} s")


async def allocates(contender: Contender) -> Verdict:
    """Take two gigabytes under a limit of 256 MB, and run another program afterwards."""
    running = await Running(contender).start()
    before = peak = resident_mb(running.pid)
    asked = asyncio.create_task(running.run(contender.programs.large, GIVEN_UP_SECONDS))
    while not asked.done():
        peak = max(peak, resident_mb(running.pid))
        await asyncio.sleep(0.005)
    got_it = asked.exception() is None
    try:
        alive = str(await running.run(contender.programs.calls, GIVEN_UP_SECONDS)) == "number 6"
    except (PeerError, TimeoutError):
        alive = False
    await running.close()
    held = alive and not got_it and peak - before < BOUNDED_MB
    told = "refused" if held else "given" if got_it else "not given"
    return Verdict(held, f"{told}, +{peak - before:,.0f} MB{'' if alive else ', and it was gone'}")


PROBES = {
    "a file of the host": reads_file,
    "a socket of the host": connects,
    "an endless loop (limit 1 s)": spins,
    "2 GB (limit 256 MB)": allocates,
}


async def probe(contender: Contender) -> dict[str, Verdict]:
    """Run every probe, each in a new process."""
    return {name: await tried(contender) for name, tried in PROBES.items()}


async def main() -> None:
    """Yield a line of text per contender."""
    from benchmarks.peers import CONTENDERS

    for contender in CONTENDERS:
        if not contender.check_types:
            try:
                found = await probe(contender)
                print(contender.name, {name: verdict.told for name, verdict in found.items()}, flush=True)
            except PeerError as error:
                print(contender.name, error)


if __name__ == "__main__":
    asyncio.run(main())
