"""Python programs from the outside: text in, Outcome out, in the jail."""

import asyncio

import pytest

from gloveport import Gloveport
from gloveport.host import port as host_port
from tests.conftest import WARMING_DELAY_SECONDS

pytestmark = pytest.mark.integration


@pytest.mark.parametrize(
    "code",
    [
        "open('/etc/passwd').read()",
        "open('/guest/x', 'w')",
        "import socket\nsocket.create_connection(('127.0.0.1', 1))",
        "import os\nos.fork()",
        "import subprocess\nsubprocess.run(['/bin/true'])",
        "import ctypes\nc = ctypes.CDLL(None, use_errno=True)\nr = c.socket(2, 1, 0)\nassert r >= 0",
        "import os\nos.kill(os.getppid() or 2, 9)",
    ],
)
async def test_full_python_reaches_nothing(port: Gloveport, code: str) -> None:
    outcome = await port.run(code, language="python")
    assert outcome.status == "failed"


async def test_both_languages_run_side_by_side(port: Gloveport) -> None:
    both = await asyncio.gather(port.run("await tools.add(1, 2)"), port.run("await tools.add(1, 2)", language="python"))
    assert [outcome.value for outcome in both] == [3, 3]


async def test_the_zygote_starts_soon_after_the_port_opens_and_has_no_guests_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_port, "WARMING_DELAY_SECONDS", WARMING_DELAY_SECONDS)
    async with Gloveport() as port:
        async with asyncio.timeout(60):
            while not any(options.engine == "cpython" for options in port._pools.open):  # noqa: ASYNC110 - a timer of the port
                await asyncio.sleep(0.05)
        pool = next(pool for options, pool in port._pools.open.items() if options.engine == "cpython")
        assert pool._opening is not None
        await pool._opening
        assert not pool._ready and not pool._starting
        assert (await port.run("1 + 1", language="python")).value == 2
