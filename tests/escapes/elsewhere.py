"""The hostile programs in surroundings of another kind: `python -m tests.escapes.elsewhere JSON` prints verdicts.

The surroundings are real: another user, and layers of the jail taken away, as `tests.sandbox.jail.host` does it.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable

from gloveport import Gloveport
from gloveport.sandbox.launcher import Launch, Launcher
from tests.escapes import python_ways, ways
from tests.escapes.brought import BROUGHT, approved
from tests.escapes.corpus import Escape, runnable
from tests.escapes.ways import Verdict
from tests.sandbox.jail.host import become_nobody, open_the_way, take_away
from tests.sandbox.jail.stage import host_env, run

AT_ONCE = 4
BURNING_RUNS = int(os.environ.get("BURNING_RUNS", "0"))  # `make escapes` asks for 2
SECONDS = 1500.0
CONTROLS = 3
SURROUNDINGS = {  # user, layers taken away, the strength that is left
    "kernel": ("reachable", ["namespaces"], "kernel"),
    "full, unprivileged": ("nobody", [], "full"),
    "kernel, unprivileged": ("nobody", ["namespaces"], "kernel"),
}
if BROUGHT:  # a session needs namespaces
    SURROUNDINGS = {name: made for name, made in SURROUNDINGS.items() if made[2] == "full"}
Verdicts = dict[str, Verdict]


async def run_all(way: Callable[[Escape], Awaitable[Verdict]], *, python: bool) -> Verdicts:
    """Every program of a language in one way, a few at a time."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(escape: Escape) -> tuple[str, Verdict]:
        async with room:
            return escape.name, await way(escape)

    async with _burning():
        return dict(await asyncio.gather(*(one(escape) for escape in runnable(python=python))))


async def run_controls(way: Callable[[Escape], Awaitable[Verdict]], *, python: bool) -> Verdicts:
    """Run every program of a language without a sandbox, again if it trips no canary.

    About one run in a thousand loses its interpreter before the program begins.
    """

    async def until_tripped(escape: Escape) -> Verdict:
        for _ in range(CONTROLS - 1):
            if (verdict := await way(escape)).tripped:
                return verdict
        return await way(escape)

    return await run_all(until_tripped, python=python)


@contextlib.asynccontextmanager
async def _burning() -> AsyncIterator[None]:
    """Keep BURNING_RUNS other runs computing meanwhile, which must survive."""
    async with Gloveport(limits={"wall_seconds": 3600, "cpu_seconds": 3600}, spare=0) as port:
        runs = [asyncio.create_task(port.run("while (true) {}")) for _ in range(BURNING_RUNS)]
        yield
        ended = [run.result() for run in runs if run.done()]
        for run in runs:
            run.cancel()
        await asyncio.gather(*runs, return_exceptions=True)
        assert not ended


async def fall(launch: Launch, *, python: bool, minimum: ways.Strength = "kernel") -> tuple[str, Verdicts]:
    """How strong the jail is here, and every program of a language in an engine that has nothing but the jail around it."""
    launcher = Launcher(launch, minimum=minimum)
    report = await launcher.start()
    try:
        return report.strength, await run_all(lambda escape: ways.fallen(escape, launcher, report.strength), python=python)
    finally:
        await launcher.close()


async def try_scripts() -> tuple[str, dict[str, Verdicts]]:
    """The programs in JavaScript: in each engine as if it had fallen, and sealed in each."""
    strength, found = "", dict[str, Verdicts]()
    for engine, launch in ways.PLAIN.items():
        strength, found[f"fallen {engine}"] = await fall(launch(), python=False)
    with ways.eavesdropping() as said:
        async with ways.baited_port(minimum="kernel") as port:
            for engine in ways.ENGINES:
                found[engine] = await run_all(lambda escape: ways.sealed(escape, port, said, engine), python=False)  # noqa: B023
    return strength, found


async def try_python() -> tuple[str, dict[str, Verdicts]]:
    """The programs in Python: in the bare interpreter, and sealed in each engine."""
    strength, fallen = await fall(python_ways.plain_launch(), python=True)
    found = {"fallen": fallen}
    with python_ways.eavesdropping() as said:
        async with python_ways.open_port() as port:
            for engine in python_ways.ENGINES:
                found[engine] = await run_all(lambda escape: python_ways.sealed(escape, port, said, engine), python=True)  # noqa: B023
    return strength, found


async def try_elsewhere(surroundings: str, *, python: bool) -> dict[str, object]:
    """How strong the jail is in these surroundings, how many programs were tried, and which tripped a canary."""
    user, without, _ = SURROUNDINGS[surroundings]
    wanted = json.dumps({"user": user, "without": without, "python": python})
    out, err = await run(sys.executable, "-B", "-m", "tests.escapes.elsewhere", wanted, env=host_env(), seconds=SECONDS)
    assert out, err
    return json.loads(out.splitlines()[-1])


def main() -> None:
    """Take up the surroundings that the argument describes, and try all programs there."""
    wanted = json.loads(sys.argv[1])
    if wanted["user"] == "nobody":
        become_nobody()
    else:
        open_the_way()
    take_away(wanted["without"])
    with approved():
        strength, found = asyncio.run(try_python() if wanted["python"] else try_scripts())
    tripped = {
        f"{way}: {name}": [sorted(verdict.tripped), verdict.text[-2000:]]
        for way, verdicts in found.items()
        for name, verdict in verdicts.items()
        if verdict.tripped
    }
    print(json.dumps({"strength": strength, "tried": sum(map(len, found.values())), "tripped": tripped}))


if __name__ == "__main__":
    main()
