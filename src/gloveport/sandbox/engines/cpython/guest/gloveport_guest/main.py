"""The entry of the guest: get ready before the fork; after it, send `ready`, wait for the program, and run it."""

from __future__ import annotations

import base64
import faulthandler
import gc
import os
import platform
import resource
import signal
import sys
import time
import traceback
from types import ModuleType
from typing import Any, NoReturn

from . import globals as guest_globals
from .clock import HAS_WORKSPACE, Clock, os_times, patch_datetime, patch_files, restart_logging, time_functions, usage
from .errors import show_only_the_program
from .guest import Guest
from .loop import patch_asyncio
from .output import patch_logging
from .patching import replace_everywhere
from .randomness import Randomness, patch_random, start_random
from .rehearsal import SETUP, TAIL, play
from .threads import patch_threads
from .values import decode, quote
from .web import patch_urllib
from .wire import Channel

PROTOCOL = 1
# The interpreter has specialised the code by then: later runs neither change it nor take the longer ways.
WARM_UPS = 12
VERSION = f"cpython {platform.python_version()}"

COMMON = """
abc argparse array asyncio base64 binascii bisect bz2 calendar cmath codecs collections collections.abc
concurrent.futures.thread configparser contextlib contextvars copy copyreg csv dataclasses datetime decimal difflib
email.message email.utils enum fnmatch fractions functools getpass glob graphlib gzip hashlib heapq hmac html html.parser
http inspect io ipaddress itertools json keyword linecache locale logging lzma math mimetypes numbers operator os.path
pathlib pickle pprint queue random re sched secrets shlex shutil sqlite3 statistics string struct tempfile textwrap
threading time timeit traceback types typing unicodedata urllib.parse uuid warnings weakref xml.etree.ElementTree zipfile
zlib zoneinfo _strptime _ssl
"""

_exit, _write = os._exit, os.write
_guest: Guest | None = None


def preload() -> None:
    """Import what programs use, run a small program once, and freeze the memory. The zygote calls it once.

    Afterwards the process is good for nothing but forking guests: its clocks stand still and its threads run inline. It is
    done here because a fork pays in memory and time for each page that it writes to.
    """
    global _guest
    for name in COMMON.split():
        try:
            __import__(name)
        except ImportError:  # some builds lack a module
            continue
    sys.path += [path for name, path in sorted(os.environ.items()) if name.startswith("GLOVEPORT_PACKAGE_")]
    os.environ["TZ"] = "UTC"
    time.tzset()
    play(_perform)
    _guest = Guest(Channel(), Clock(), Randomness())
    _patch_platform(_guest)
    for _ in range(WARM_UPS):
        play(_perform)
    guest_globals.patch_process()
    _guest.output.install()
    gc.collect()
    gc.freeze()


def _patch_platform(guest: Guest) -> None:
    """Replace everything that would distinguish one run from another by what the host's events say."""
    ours = time_functions(guest.clock) | {"sleep": guest.loop.block}
    clocks = [(getattr(time, name), function) for name, function in ours.items() if hasattr(time, name)]
    sources = (("os", "urandom"), ("os", "getrandom"), ("_ssl", "RAND_bytes"))
    held = [getattr(sys.modules.get(module), name, None) for module, name in sources]
    random = [(function, guest.randomness.bytes) for function in held if function is not None]
    counts = [(os.times, os_times(guest.clock)), (resource.getrusage, usage(guest.clock))]
    replace_everywhere([*clocks, *random, *counts])
    patch_datetime(guest.clock)
    patch_random(guest.randomness)
    if "sqlite3" in sys.modules:  # some builds lack it
        from .sqlite import patch_sqlite

        patch_sqlite(guest.clock, guest.randomness)
    if HAS_WORKSPACE:
        patch_files()
    patch_threads(guest.loop.block)
    patch_asyncio(guest.loop)
    patch_logging(guest.output)
    patch_urllib(guest.web)
    show_only_the_program()
    # The host asks with this signal where a program is that is about to exceed its time. No code of Python runs for it.
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)


def _perform(channel: Channel, script: str) -> str:
    """Perform a whole run for a rehearsal."""
    guest = Guest(channel, Clock(), Randomness())
    guest.loop.start()
    sys.stdout = guest.output.streams[0]
    return _run(guest, {"code": script, "tail": TAIL, **SETUP})


def main() -> NoReturn:
    """Run one program in the forked, jailed process, then wait to be killed. It never returns."""
    try:
        _main()
    except BaseException as error:  # the outer edge: nothing may propagate into the zygote's code
        places = [f"{frame.f_code.co_filename}:{line}" for frame, line in traceback.walk_tb(error.__traceback__)]
        _write(2, f"{type(error).__name__}: {error} {' '.join(places)}".encode("utf-8", "replace"))
    finally:
        _exit(70)


def rehearse() -> None:
    """Perform a run in a trial fork, so that the zygote sees which memory it touches."""
    guest = _get_ready()
    start_random(guest.randomness, bytes(32))
    restart_logging(guest.clock)
    play(_perform)


def _get_ready() -> Guest:
    if _guest is None:
        preload()
    guest = _guest
    assert guest is not None
    guest.channel.open(_take_socket())
    guest.loop.start()
    return guest


def _main() -> NoReturn:
    guest = _get_ready()
    guest.channel.send(f'["ready",{PROTOCOL},{quote(VERSION)}]')
    guest.channel.flush()
    event = guest.channel.next_event()
    start_clock = guest.clock.start
    if event[0] == "prepare":
        _prepare(guest, *event[1:])
        event, start_clock = guest.channel.next_event(), guest.clock.go_on
    _, now, setup = event
    start_clock(now)
    _run(guest, setup)
    while True:
        guest.channel.next_event()  # the host kills this process; the program does not run any more


def _prepare(guest: Guest, now: int, given: dict[str, Any]) -> None:
    """Import packages before the program comes, and report whether all they did was to be imported.

    The clock stands at a time of its own, and randomness begins from the seed of the run. Nothing else of the run is there.
    """
    guest.clock.start(now)
    start_random(guest.randomness, base64.b64decode(given["seed"]))
    restart_logging(guest.clock)
    guest_globals.set_environment({})
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        if (script := given["modules"].get("script")) is not None:
            guest_globals.install_project(script)
        for name in given["modules"]["imports"]:
            __import__(name)
        guest.output.end()
        fit = guest.is_untouched()
    except BaseException:  # the program imports it again, and gets the error
        fit = False
    guest.channel.send(f'["prepared",{"true" if fit else "false"}]')
    guest.channel.flush()


def _take_socket() -> int:
    """Move the socket away from standard input and output, so that program output can't be taken for a frame."""
    fd = os.dup(0)
    try:
        os.fstat(2)
    except OSError:
        return fd
    for standard in (0, 1):
        os.close(standard)
        os.dup(2)  # gets the lowest free number, the one just closed
    return fd


def _run(guest: Guest, setup: dict[str, Any]) -> str:
    guest.channel.max_frame = setup["max_frame_bytes"]
    guest.output.left = setup["max_log_bytes"]
    modules = setup.get("modules", {})
    if "prepared" not in modules:
        start_random(guest.randomness, base64.b64decode(setup["seed"]))
        if (script := modules.get("script")) is not None:
            guest_globals.install_project(script)
    restart_logging(guest.clock)
    guest_globals.set_environment(setup["env"])
    if setup["has_input"]:
        setup["input"] = decode(setup.get("input"))
    if "state" in setup:
        guest.keeps_state, setup["state"] = True, decode(setup["state"])
    names = guest_globals.names(setup, guest.calls, guest.tools, guest.web, guest.output.emit)
    result = guest.run(setup, names)
    guest.finish(result)
    return result
