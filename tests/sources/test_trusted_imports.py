"""A project's functions import what the user has trusted of the project, and nothing else of it (M6)."""

from __future__ import annotations

import json
import marshal
import os
import shutil
import subprocess
import sys
import textwrap
import zipfile
from importlib.util import MAGIC_NUMBER, cache_from_source
from pathlib import Path

import pytest

from gloveport.config import SourceConfig
from gloveport.errors import OptionError
from gloveport.sources.functions import importable_files as found_files
from gloveport.sources.functions.importable_files import importable_files
from gloveport.sources.trust import needs_trust, trust, trusted_files

pytestmark = pytest.mark.integration

OPEN = """
import asyncio, json, sys
from gloveport.config import load_config
from gloveport.sources.functions.modules import load_module
from gloveport.sources.trust import needs_trust, trusted_files
try:
    config, = load_config().sources
    if needs_trust(config):
        raise SystemExit("untrusted")
    for own in sys.argv[1:]:
        load_module(own)
    print(json.dumps([function() for function in load_module(config.location, trusted_files(config))]))
except Exception as error:
    print(f"{type(error).__name__}: {error}")
"""
EVIL = "open('canary', 'w').close()\nVALUE = 'evil'\n"


class Project:
    """A project with functions in `tools.py`, and a user who trusts it."""

    def __init__(self, folder: Path, data: Path) -> None:
        self.folder, self.data = folder, data

    def write(self, name: str, text: str = "") -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    @property
    def config(self) -> SourceConfig:
        return SourceConfig(
            "shop", "functions", str(self.folder / "tools.py"), settings=str(self.folder / "gloveport.toml")
        )

    def trust(self) -> None:
        trust(self.config)

    def open(self, *own: str, environment: dict[str, str] | None = None) -> str:
        """Return what the functions return, or the error of loading them, in a process of its own."""
        done = subprocess.run(
            [sys.executable, "-P", "-c", OPEN, *own],
            cwd=self.folder,
            env={**os.environ, "XDG_DATA_HOME": str(self.data), **(environment or {})},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert not (self.folder / "canary").exists(), done
        return done.stdout.strip() or done.stderr.strip()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    made = Project(tmp_path / "project", tmp_path / "data")
    made.write("gloveport.toml", '[sources.shop]\nfunctions = "tools.py"\n')
    made.write("helper.py", "VALUE = 1\n")
    made.write("tools.py", "import helper\ndef look(): return helper.VALUE\n")
    return made


def test_what_is_unchanged_works_and_writes_nothing(project: Project) -> None:
    assert project.open() == "untrusted"
    project.trust()
    assert project.open() == project.open() == "[1]"
    assert not list(project.folder.rglob("__pycache__"))


def test_a_changed_helper_is_refused_with_its_name(project: Project) -> None:
    project.trust()
    project.write("helper.py", EVIL)
    assert "SourceError: the source shop may not import helper.py: it has changed since you trusted" in project.open()
    assert not needs_trust(project.config)  # what is in tools.py has not changed
    project.write("helper.py", "VALUE = 2\n")
    project.trust()
    assert project.open() == "[2]"


@pytest.mark.parametrize(
    ("tools", "added"),
    [
        ("try:\n    import fast as helper\nexcept ImportError:\n    import helper\ndef look(): return 1", "fast.py"),
        ("import importlib\nhelper = importlib.import_module('f' + 'ast')\ndef look(): return 1", "fast.py"),
        ("__import__('fa' + 'st')\ndef look(): return 1", "fast.py"),
        ("import package.fast\ndef look(): return 1", "package/fast.py"),
        ("import package.fast\ndef look(): return 1", "package/__init__.py"),
        ("from package.inner import fast\ndef look(): return 1", "package/inner/fast.py"),
        ("import sys\nsys.path.insert(0, 'lib')\nimport fast\ndef look(): return 1", "lib/fast.py"),
        ("import sys\nsys.path.insert(0, 'l' + 'ib')\nimport fast\ndef look(): return 1", "lib/fast.py"),
        ("def look():\n    import fast\n    return fast.VALUE", "fast.py"),
        ("import runpy\nrunpy.run_path('fast.py')\ndef look(): return 1", "fast.py"),
        (
            "import importlib.util as u\ns = u.spec_from_file_location('f', 'fast.py')\nm = u.module_from_spec(s)\n"
            "s.loader.exec_module(m)\ndef look(): return 1",
            "fast.py",
        ),
        ("exec(compile(open('fast.py').read(), 'fast.py', 'exec'))\ndef look(): return 1", "fast.py"),
        (
            "import importlib, threading\ndef look():\n    t = threading.Thread(target=importlib.import_module, args=['fast'])\n"
            "    threading.excepthook = lambda failed: print(failed.exc_value)\n    t.start()\n    t.join()",
            "fast.py",
        ),
    ],
)  # fmt: skip
def test_a_file_that_comes_later_is_refused_however_it_is_imported(project: Project, tools: str, added: str) -> None:
    project.write("tools.py", tools)
    project.trust()
    project.write(added, EVIL)
    assert f"the source shop may not import {added}" in project.open()


@pytest.mark.parametrize("name", ["json.py", "requests.py", "helper/__init__.py", "sitecustomize.py", "asyncio.py"])
def test_a_file_that_shadows_another_is_never_run(project: Project, name: str) -> None:
    project.write("tools.py", "import json, asyncio, helper\ndef look(): return helper.VALUE\n")
    project.trust()
    project.write(name, EVIL)
    assert project.open() in (
        "[1]",
        "SourceError: the source shop may not import helper/__init__.py: it was not there when you trusted the source",
    )


def test_compiled_code_beside_a_trusted_source_is_never_run(project: Project) -> None:
    project.trust()
    for name in ("helper.py", "tools.py"):
        source = project.folder / name
        code = marshal.dumps(compile(EVIL + "def look(): return 'evil'\n", str(source), "exec"))
        cached = Path(cache_from_source(str(source)))
        cached.parent.mkdir(exist_ok=True)
        cached.write_bytes(MAGIC_NUMBER + b"\1\0\0\0" + bytes(8) + code)  # never compared with its source (PEP 552)
    plain = subprocess.run([sys.executable, "-c", "import helper"], cwd=project.folder, timeout=60, check=False)
    assert plain.returncode == 0
    assert (project.folder / "canary").exists()  # so it would run
    (project.folder / "canary").unlink()
    assert project.open() == "[1]"


def test_compiled_code_without_a_source_and_zip_files_are_refused(project: Project) -> None:
    project.write("tools.py", "import sys\nsys.path.append('more.zip')\nimport fast\ndef look(): return 1\n")
    project.trust()
    code = marshal.dumps(compile(EVIL, "fast.py", "exec"))
    compiled = project.folder / "fast.pyc"
    compiled.write_bytes(MAGIC_NUMBER + bytes(12) + code)
    assert "may not import fast.pyc: it is not a source file" in project.open()
    compiled.unlink()
    with zipfile.ZipFile(project.folder / "more.zip", "w") as archive:
        archive.writestr("fast.py", EVIL)
    assert "may not import more.zip/fast.py" in project.open()


def test_a_shared_library_is_loaded_as_trusted_and_refused_when_it_changes(project: Project) -> None:
    extension = next((Path(sys.base_prefix) / "lib").rglob("_bisect*.so"), None) or Path(
        __import__("_struct").__file__ or ""
    )
    name = extension.name.partition(".")[0]
    target = project.folder / extension.name.replace(name, "native", 1)
    shutil.copy(extension, target)
    text = f"import importlib.util as u, importlib.machinery as m\ns = u.find_spec('native')\nl = m.ExtensionFileLoader('{name}', s.origin)\nu.module_from_spec(u.spec_from_loader('{name}', l))\ndef look(): return 1\n"
    project.write("tools.py", text)
    project.trust()
    assert project.open() == "[1]"
    with target.open("ab") as file:
        file.write(b"\0")
    assert f"may not import {target.name}: it has changed" in project.open()
    project.write("tools.py", f"import ctypes\nctypes.CDLL('{target}')\ndef look(): return 1\n")
    project.trust()
    assert project.open() == "[1]"
    with target.open("ab") as file:
        file.write(b"\0")
    assert f"may not import {target.name}: it has changed" in project.open()


def test_installed_libraries_and_files_elsewhere_are_imported_as_ever(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "colours.py").write_text("VALUE = 3\n")
    project.write("tools.py", "import colours, msgspec, wsgiref.util, email.mime.text\ndef look(): return colours.VALUE\n")
    project.trust()
    path = {"PYTHONPATH": str(elsewhere)}
    assert project.open(environment=path) == "[3]"
    (elsewhere / "colours.py").write_text("VALUE = 40\n")  # of another length: within a second, bytecode is known by it
    assert project.open(environment=path) == "[40]"


def test_a_virtual_environment_in_the_project_is_no_part_of_it(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    packages = project.folder / ".venv" / "site-packages"
    project.write(".venv/site-packages/msg.py", "x = 1\n")
    folders = (str(project.folder),)
    assert found_files.below(str(packages / "msg.py"), folders)
    monkeypatch.setattr("site.getsitepackages", lambda: [str(packages)])
    found_files._libraries.cache_clear()
    try:
        assert not found_files.below(str(packages / "msg.py"), folders)
    finally:
        found_files._libraries.cache_clear()


def test_the_users_own_file_in_that_folder_imports_what_it_likes(project: Project) -> None:
    project.trust()
    project.write("mine.py", "import other\ndef mine():\n    import late\n    return late.VALUE\n")
    project.write("other.py", "VALUE = 1\n")
    project.write("late.py", "VALUE = 1\n")
    own = project.folder / "mine.py"
    assert project.open(str(own)) == "[1]"
    script = f"from gloveport.sources.functions.modules import load_module\n{OPEN}\nprint(load_module({str(own)!r})[0]())\n"
    done = subprocess.run(
        [sys.executable, "-P", "-c", script], cwd=project.folder, capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.split() == ["[1]", "1"]


def test_packages_relative_imports_and_names_in_texts_are_found(project: Project) -> None:
    project.write(
        "tools.py", "import importlib\nm = importlib.import_module('package.first')\ndef look(): return m.VALUE\n"
    )
    project.write("package/__init__.py", "from . import second\n")
    project.write("package/first.py", "from .inner.third import VALUE\n")
    project.write("package/second.py", "from space.fourth import VALUE\n")
    project.write("package/inner/third.py", "VALUE = 3\n")
    project.write("space/fourth.py", "VALUE = 4\n")
    project.write("unrelated/fifth.py", "VALUE = 5\n")
    project.trust()
    known = {
        os.path.relpath(path, project.folder)
        for path in importable_files(str(project.folder / "tools.py"), project.config.settings)
    }
    assert {"tools.py", "package/first.py", "package/second.py", "package/inner/third.py", "space/fourth.py"} <= known
    assert "unrelated/fifth.py" not in known
    assert project.open() == "[3]"
    project.write("unrelated/fifth.py", "VALUE = 6\n")
    assert project.open() == "[3]"
    project.write("space/fourth.py", EVIL)
    assert "may not import space/fourth.py: it has changed" in project.open()


def test_a_module_by_its_name_is_bound_to_its_file_too(project: Project) -> None:
    project.write("gloveport.toml", '[sources.shop]\nfunctions = "helper"\n')
    project.write("helper.py", "def look(): return 7\n")
    config = SourceConfig("shop", "functions", "helper", settings=str(project.folder / "gloveport.toml"))
    trust(config)
    path = {"PYTHONPATH": str(project.folder)}
    assert project.open(environment=path) == "[7]"
    project.write("helper.py", EVIL)
    assert "may not import helper.py" in project.open(environment=path)


def test_what_was_trusted_before_files_were_recorded_asks_again(project: Project) -> None:
    trust(project.config, files={})
    known = trusted_files(project.config)
    assert known is not None
    assert known.digests == {}
    assert "may not import tools.py" in project.open()


def test_too_many_files_are_refused(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_files, "MAX_FILES", 1)
    with pytest.raises(OptionError, match="may import more than 1 files"):
        importable_files(str(project.folder / "tools.py"), project.config.settings)


def test_hostile_sources_are_searched_in_linear_time(project: Project) -> None:
    for text in ("a" * 3_000_000, "é" * 1_000_000, "import " * 400_000, "\u0301" * 1_000_000):
        project.write("tools.py", text)
        assert len(importable_files(str(project.folder / "tools.py"), project.config.settings)) == 1


def test_the_record_names_each_file(project: Project, tmp_path: Path) -> None:
    project.trust()
    (row,) = json.loads((tmp_path / "data/gloveport/approved-sources.json").read_text()).values()
    assert {Path(path).name for path in row["files"]} == {"tools.py", "helper.py"}
