"""Two guests exchange nothing through a file that both map (threat S24)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import subprocess
import sys
from errno import EAGAIN

import pytest

from gloveport import Gloveport
from gloveport.sandbox.jail.elf import find_dependencies
from tests.escapes.calls import NUMBERS

pytestmark = pytest.mark.integration

LIBRARY = next(
    host
    for _, host in find_dependencies(os.path.realpath(sys.executable)).libraries
    if os.path.basename(host).startswith("libc.")
)
# Chosen by chance, because others on this machine may run the same test.
PLACE = 4 * random.randrange(1024)
SHARED = f"""
import ctypes, os, struct, time
libc = ctypes.CDLL(None, use_errno=True)
libc.mmap.restype = libc.syscall.restype = ctypes.c_long
library = os.open({LIBRARY!r}, os.O_RDONLY)
place = libc.mmap(None, ctypes.c_long(4096), 1, 2, library, ctypes.c_long(0)) + {PLACE}
value = int.from_bytes(ctypes.string_at(place, 4), "little")

def futex(operation, value, timeout=None):
    result = libc.syscall({NUMBERS["futex"]}, ctypes.c_long(place), operation, value, timeout, None, -1)
    return result if result >= 0 else -ctypes.get_errno()
"""
WAITER = f"{SHARED}\nresult = futex(0, value, struct.pack('@2l', 20, 0))\n"
WAKER = f"""{SHARED}
for _ in range(2000):
    result = futex(1, 100)
    if result:
        break
    libc.usleep(5000)
"""


async def test_a_guest_neither_waits_for_nor_wakes_another() -> None:
    async with Gloveport() as port:
        outcomes = await asyncio.gather(
            *(port.run(f"{code}result", language="python", engine="cpython") for code in (WAITER, WAKER))
        )
    assert [outcome.value for outcome in outcomes] == [-EAGAIN, -EAGAIN], outcomes


def test_two_processes_without_the_jail_do() -> None:
    waiter, waker = (
        subprocess.Popen([sys.executable, "-c", f"{code}import json\nprint(json.dumps(result))"], stdout=subprocess.PIPE)
        for code in (WAITER, WAKER)
    )
    assert [json.loads(process.communicate(timeout=60)[0]) for process in (waiter, waker)] == [0, 1]
