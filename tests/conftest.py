"""Shared by all tests: a `Gloveport` with a few tools, the `integration` marker, and the guard that keeps `make check` fast."""

import asyncio
import importlib
import os
import re
import sys
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from gloveport import Gloveport, ToolError
from gloveport.host import port as host_port

settings.register_profile("busy", deadline=None)  # a busy machine is not a defect; each test has a timeout of its own
settings.load_profile("busy")

WARMING_DELAY_SECONDS = host_port.WARMING_DELAY_SECONDS
"""The delay of the product, for the tests of what starts in advance: other tests have none of it."""

STARTING_FIXTURES = {"port"}
"""Fixtures of this file that start a sandbox: a test that asks for one is an integration test."""

STARTS = {"os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.system", "pty.spawn", "socket.bind", "subprocess.Popen"}
"""Audit events of the interpreter that mean a new process or a server."""

SLOW_MODULES = (
    "test_stall.py",
    "test_serve.py",
    "test_escapes.py",
    "test_python_escapes.py",
    "test_sessions.py",
    "test_toolbox.py",
    "test_resume.py",
    "test_run.py",
    "test_cpython_guests.py",
    "test_browser_runs.py",
    "test_sources.py",
    "test_browser_approvals.py",
    "test_fuzz.py",
    "test_types.py",
    "test_canaries.py",
    "test_shapes.py",
    "test_docs.py",
    "test_playground_page.py",
    "test_kills.py",
    "test_start.py",
    "test_hostile.py",
    "test_runs_command.py",
    "test_bundles.py",
    "test_sources_page.py",
    "test_browser_safety.py",
    "test_policy_command.py",
    "test_elicitation.py",
    "test_layers.py",
    "test_approvals_command.py",
    "test_browser_start.py",
    "test_limits.py",
    "test_contract.py",
    "test_undo.py",
    "test_auth_command.py",
    "test_approval_prompt.py",
    "test_bombs.py",
    "test_interruption.py",
    "test_listing.py",
    "test_connect.py",
    "test_tools_page.py",
    "test_launcher.py",
    "test_approvals.py",
)
"""The modules of half a minute and more. They come first, slowest first, so that no worker is alone with one at the end."""

INTEGRATION_MODULE = re.compile(r"^pytestmark = .*pytest\.mark\.integration", re.MULTILINE)

COLLECTED = pytest.StashKey[frozenset[str]]()
"""The ids of all collected tests, before any selection by marker."""


class Guard:
    """Refuses to start a process or a server while a test runs that is not marked as an integration test."""

    def __init__(self) -> None:
        self.armed = False
        self.started: list[str] = []
        sys.addaudithook(self.audit)

    def audit(self, event: str, _args: tuple[Any, ...]) -> None:
        """Refuse what `make check` must not do, and remember it: the code under test may swallow the exception."""
        if self.armed and event in STARTS:
            self.started.append(event)
            raise RuntimeError(f"{event}: a test that starts a process or a server needs @pytest.mark.integration")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        """Arm the guard for one test and its fixtures."""
        self.armed, self.started = True, []
        try:
            return (yield)
        finally:
            self.armed = False

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_teardown(self) -> Generator[None]:
        """Fail a test that tried to start something, even if it survived the refusal."""
        yield
        if self.started:
            pytest.fail(f"{self.started}: a test that starts a process or a server needs @pytest.mark.integration")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--check", action="store_true", help="run only the quick tests that start no sandbox, server or browser"
    )
    parser.addoption("--canaries", action="store_true", help="search all that the tests produce for secrets")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--check"):
        importlib.import_module("urllib3.util.connection")  # binds a socket when it is first imported, to look for IPv6
        config.pluginmanager.register(Guard(), "guard")
    if config.getoption("--canaries"):
        importlib.import_module("tests.canaries.suite").install(config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave whole modules of integration tests out of `--check` without importing them: that halves its start."""
    if config.getoption("--check") and collection_path.suffix == ".py":
        return True if INTEGRATION_MODULE.search(collection_path.read_text()) else None
    return None


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marker
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order the modules, mark the tests that use a sandbox of this file, and leave integration tests and long tests out of `--check`."""
    config.stash[COLLECTED] = frozenset(item.nodeid for item in items)
    items.sort(key=lambda item: SLOW_MODULES.index(item.path.name) if item.path.name in SLOW_MODULES else len(SLOW_MODULES))
    for item in items:
        if STARTING_FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker("integration")
    if config.getoption("--check"):
        left_out = {item for item in items if item.get_closest_marker("integration") or item.get_closest_marker("long")}
        config.hook.pytest_deselected(items=list(left_out))
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session", autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Give the tests, and what they start, a home of their own: nothing is written into the folders of whoever runs them.

    It is one for the session, so that it is there before the servers and ports that tests share. Without the XDG variables,
    settings, data and caches follow HOME, also for a test that becomes another user with another HOME.
    """
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.null.Keyring")
        for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patch.delenv(name, raising=False)
        yield folder


@pytest.fixture(scope="session", autouse=True)
def no_engines_in_advance() -> Iterator[None]:
    """Let the ports of the tests start no engine for programs that may come: most tests use one, and are over before."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_port, "WARMING_DELAY_SECONDS", 3600.0)
        yield


async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


async def echo(value: Any = None) -> Any:
    """Give back what was given."""
    return value


async def fail(message: str = "no luck", code: str = "tool-failed", data: Any = None) -> None:
    """Fail as asked."""
    raise ToolError(message, code=code, data=data, status=418, retryable=True)


async def crash() -> None:
    """Raise an ordinary exception."""
    raise KeyError("lost key")


async def get_weather(city: str, days: int = 1) -> dict[str, Any]:
    """The weather in a city."""
    return {"city": city, "temp_f": 50, "days": days}


async def forever() -> None:
    """Never answer."""
    await asyncio.Event().wait()


TOOLS = [add, echo, fail, crash, get_weather, forever]


@pytest.fixture(scope="session")
async def port() -> AsyncIterator[Gloveport]:
    async with Gloveport(tools=TOOLS) as opened:
        yield opened


def children_of(pid: int) -> set[int]:
    """The descendants of a process, zombies included."""
    parents: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text()
            except OSError:
                continue
            parents.setdefault(int(stat.rpartition(")")[2].split()[1]), []).append(int(entry.name))
    found: set[int] = set()
    todo = [pid]
    while todo:
        for child in parents.get(todo.pop(), []):
            found.add(child)
            todo.append(child)
    return found


def open_files() -> set[str]:
    """What this process has open, by descriptor and target."""
    out = set()
    for name in os.listdir("/proc/self/fd"):
        try:
            out.add(f"{name} {os.readlink(f'/proc/self/fd/{name}')}")
        except OSError:
            continue
    return out
