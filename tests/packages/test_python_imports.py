"""Python programs import approved packages, and nothing else. Threats D7, S8 and S16."""

from __future__ import annotations

import asyncio
import importlib.machinery
import os
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gloveport import Gloveport, Outcome
from gloveport.errors import GloveportError, OptionError
from gloveport.host.packages.package_additions import fetch_packages, keep_packages, remove_packages
from gloveport.packages.package import PackageRequest
from gloveport.packages.store import LOCK_FILE, PackageStore
from tests.packages.approved import Approved
from tests.packages.registry import Registry, serve
from tests.sandbox.jail.stage import play

pytestmark = pytest.mark.integration

TABLE = "import leaf\ndef shown(rows):\n    return leaf.join(str(cell) for row in rows for cell in row)\n"
HOSTILE = """
import os, socket
tried = {}
def attempt(name, function):
    try:
        tried[name] = repr(function())
    except BaseException as error:
        tried[name] = type(error).__name__
here = os.path.dirname(__file__)
attempt("read the host", lambda: open("/etc/passwd").read())
attempt("write into the package", lambda: open(__file__, "w"))
attempt("write beside it", lambda: open(here + "/planted.py", "w"))
attempt("leave by a path", lambda: open(here + "/../../../etc/passwd").read())
attempt("rename itself", lambda: os.rename(here, here + "2"))
attempt("link", lambda: os.symlink("/etc", here + "/etc"))
attempt("connect", lambda: socket.create_connection(("127.0.0.1", 80)))
attempt("fork", os.fork)
attempt("exec", lambda: os.execv("/bin/sh", ["sh"]))
"""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with approved packages."""
    folder = tmp_path_factory.mktemp("data")
    with serve(Registry()) as registry, pytest.MonkeyPatch.context() as patch:
        for name, value in {**registry.environment, "XDG_DATA_HOME": str(folder)}.items():
            patch.setenv(name, value)
        registry.wheel("leaf", "1.0", {"leaf.py": "def join(parts):\n    return '-'.join(parts)\n"})
        registry.wheel("table", "2.0", {"tablelib/__init__.py": TABLE}, "leaf")
        registry.wheel("hostile", "1.0", {"hostile/__init__.py": HOSTILE})
        registry.wheel("lonely", "1.0", {"lonely.py": "x = 1"})
        suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
        native = Path(sysconfig.get_path("stdlib"), "lib-dynload", f"_random{suffix}")
        if not native.exists():
            native = next(iter(native.parent.glob(f"_[a-z]*{suffix}")))
        module = native.name.partition(".")[0]
        text = f"from ._machine.{module} import *\nname = '{module}'\n"
        files = {
            "machine/__init__.py": text,
            "machine/_machine/__init__.py": "",
            f"machine/_machine/{native.name}": native.read_bytes(),
        }
        registry.wheel("machine", "1.0", files)
        asyncio.run(add("pypi:table", "pypi:hostile", "pypi:lonely", "pypi:machine"))
        yield folder


async def add(*requests: str) -> None:
    store = PackageStore()
    found = await fetch_packages([PackageRequest.parse(text) for text in requests], store, "kernel")
    keep_packages(found, store, store.folder / "record.sqlite", requests)


@pytest.fixture
async def port(data: Path) -> Any:
    async with Gloveport(tools=[double]) as opened:
        yield opened


def double(number: int) -> int:
    """Return twice the number."""
    return 2 * number


async def python(port: Gloveport, code: str, **options: Any) -> Outcome:
    return await port.run(code, language="python", **options)


async def test_a_program_imports_a_package_and_what_that_requires(port: Gloveport) -> None:
    code = "import json\nfrom tablelib import shown\nimport tablelib, leaf\nprint(leaf.__file__)\nshown([[1, 2], [3]])"
    outcome = await python(port, code)
    assert (outcome.error, outcome.value) == (None, "1-2-3")
    assert "/packages/" in outcome.logs[0].text
    assert (await python(port, "try:\n    import lonely\nexcept ImportError:\n    lonely = None\nlonely.x")).value == 1
    late = "import importlib\nimportlib.import_module('lonely').x"
    assert (await python(port, late)).value == 1
    assert (await python(port, "import lonely\nawait tools.double(lonely.x)")).value == 2


async def test_a_wheel_with_machine_code_works(port: Gloveport) -> None:
    packages = {each.name: package for each, package in PackageStore().approved().items()}
    assert packages["machine"].native
    assert not packages["table"].native
    outcome = await python(
        port, "import machine, sys\n[machine.name, sys.modules[f'machine._machine.{machine.name}'].__file__]"
    )
    assert outcome.error is None
    assert outcome.value[1].startswith("/packages/")


async def test_a_run_may_import_less_than_its_settings(port: Gloveport, tmp_path: Path) -> None:
    code = "import tablelib\ntablelib.shown([[1]])"
    assert (await python(port, code, packages=["pypi:table"])).value == "1"
    seen = "import tablelib, sys, os\nsorted(name for path in sys.path if path.startswith('/packages') for name in os.listdir(path))"
    names = (await python(port, seen, packages=["pypi:table"])).value
    assert {name.partition("-")[0] for name in names} == {"__pycache__", "leaf", "leaf.py", "table", "tablelib"}
    refused = await python(port, code, packages=["pypi:lonely"])
    assert refused.error is not None
    assert (refused.error.code, refused.error.setting) == ("import-refused", "gloveport packages add pypi:tablelib")
    with pytest.raises(OptionError):
        await python(port, code, packages=["table"])
    config = tmp_path / "gloveport.toml"
    config.write_text('[packages]\nallow = ["pypi:lonely", "pypi:table"]\n[agents.reader]\npackages = ["pypi:lonely"]\n')
    async with Gloveport(config=config) as other:
        assert (await python(other, code)).error is None
        assert (await python(other, "import hostile")).error is not None
        assert (await python(other, "import lonely\n1", agent="reader")).value == 1
        assert (await python(other, code, agent="reader")).error is not None
        assert (await python(other, code, agent="reader", packages=["pypi:table", "pypi:lonely"])).error is not None


@pytest.mark.parametrize(
    ("module", "setting", "said"),
    [
        ("yaml", "gloveport packages add pypi:pyyaml", "pypi:pyyaml"),
        ("bs4", "gloveport packages add pypi:beautifulsoup4", "pypi:beautifulsoup4"),
        ("some_thing", "gloveport packages add pypi:some-thing", "ask the user"),
        ("tablelb", None, "tablelib"),
        ("jsno", None, "json"),
        ("pandsa", "gloveport packages add pypi:pandas", "did you mean `pandas`? Ask the user to approve pypi:pandas"),
        ("dash", "gloveport packages add pypi:dash", "ask the user to approve pypi:dash"),
        ("inspekt2", "gloveport packages add pypi:inspekt2", "write `import inspect`, or ask the user"),
    ],
)
async def test_another_import_fails_before_the_run(port: Gloveport, module: str, setting: str | None, said: str) -> None:
    outcome = await python(port, f"print('started')\nimport {module}")
    assert outcome.error is not None
    assert outcome.error.code == "import-refused"
    assert outcome.error.setting == setting
    assert said in f"{outcome.error.message} {outcome.error.hint}"
    assert outcome.logs == ()


async def test_a_hostile_package_can_do_no_more_than_the_program(port: Gloveport) -> None:
    outcome = await python(port, "import hostile\nhostile.tried")
    assert outcome.error is None
    allowed = {"FileNotFoundError", "PermissionError", "OSError", "SystemExit", "BlockingIOError"}
    assert {name: found for name, found in outcome.value.items() if found not in allowed} == {}
    store = PackageStore()
    assert [store.verify(package) for package in store.approved().values() if store.verify(package)] == []


async def test_a_session_keeps_files_that_a_package_writes(port: Gloveport) -> None:
    code = "import lonely, pathlib\npath = pathlib.Path('seen.txt')\nbefore = path.exists()\npath.write_text('x')\nbefore"
    assert [(await python(port, code, session="s")).value for _ in range(2)] == [False, True]


async def test_a_program_without_packages_does_not_read_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    broken = PackageStore().folder
    broken.mkdir(parents=True)
    (broken / LOCK_FILE).write_text("{")
    async with Gloveport() as port:
        assert (await python(port, "import json, os.path as p\nfrom collections import (deque,\n  Counter)\n1")).value == 1
        assert (await python(port, "[1, 2][0]")).value == 1
        outcome = await python(port, "import lonely")
        assert outcome.error is not None
        assert outcome.error.code == "package-failed"


async def test_a_run_is_replayed_with_its_packages_or_not_at_all(data: Path, tmp_path: Path) -> None:
    async with Gloveport(store=tmp_path / "store.sqlite") as port:
        outcome = await python(port, "import lonely, random\n[lonely.x, random.random()]")
        assert outcome.error is None
        assert await port.replay(outcome.run) is None
        recording = await port.recording(outcome.run)
        assert b'"packages":{"pypi:hostile@1.0":"sha256-' in recording.events[0]
        remove_packages(["pypi:lonely"], PackageStore(), tmp_path / "store.sqlite")
        with pytest.raises(GloveportError, match=r"pypi:lonely@1\.0, which is not approved any more") as caught:
            await port.replay(outcome.run)
        assert caught.value.code == "package-changed"
        with serve(Registry()) as registry, pytest.MonkeyPatch.context() as patch:
            for name, value in registry.environment.items():
                patch.setenv(name, value)
            registry.wheel("lonely", "1.0", {"lonely.py": "x = 1"})
            await add("pypi:lonely")
        assert await port.replay(outcome.run) is None


async def test_packages_are_imported_where_no_namespaces_confine_them() -> None:
    """There they stay at their paths on the host, and Landlock alone keeps a program from the rest."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        os.chmod(folder, 0o755)  # guests run as another user there
        patch.setenv("XDG_DATA_HOME", folder)
        approved = Approved()
        approved.add("pypi:leaf@1.0", {"leaf.py": "LEAF = 'a leaf'"})
        approved.add("pypi:hostile@1.0", {"hostile/__init__.py": HOSTILE})
        lock = approved.store.folder / LOCK_FILE
        reads = f"import leaf\ntry:\n    open({str(lock)!r})\nexcept PermissionError:\n    leaf.LEAF"
        programs = ["import leaf\nleaf.LEAF", "import hostile\nsorted(set(hostile.tried.values()))", f"{reads}\n'no'"]
        told = await play("packages", {"data": folder, "programs": programs}, user="reachable", without=["namespaces"])
    assert told == {"values": ["a leaf", ["FileNotFoundError", "PermissionError"], "no"], "strength": "kernel"}
