"""`pytest --canaries`: searches everything that the tests produce for every secret that Gloveport handled meanwhile (D1).

Each Python process that the tests start notes its secrets, whatever provider they came from (`watch/sitecustomize.py`).
Kept are all files below the temporary folder, what tests print, what commands and servers answer, and outcomes of runs.
"""

from __future__ import annotations

import asyncio.subprocess
import importlib
import os
import re
import shutil
import subprocess
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.canaries.secret import Canary
from tests.canaries.watch.sitecustomize import VARIABLE, WATCHED

WATCH = Path(__file__).with_name("watch")
# The parts of a secret that are searched for: shorter ones, and words without a digit, stand in texts by chance.
_PART = re.compile(r"(?=[A-Za-z]*[0-9])[A-Za-z0-9]{10,}")
# The token of a server is in its own file, and on the terminal of whoever starts the server. Two tests write a secret into
# what they give to Gloveport: a command that prints it, and settings that must not contain one.
OWN_PLACES = {
    "server-token": re.compile(r"/gloveport/token$|\.terminal\.\d+$"),
    "shop.token": re.compile(
        r"/test_a_command_that_fails_is_n\d+/bad\.py$|/test_settings_name_a_reference\d+/gloveport\.toml$"
    ),
}


class Suite:
    """What one run of pytest produced, below its temporary folder, and the search of it."""

    def __init__(self, base: Path, secrets: Path) -> None:
        self.base = base
        self._secrets = secrets
        self._produced = base / "produced"
        self._produced.mkdir(exist_ok=True)

    def keep(self, kind: str, *pieces: object) -> None:
        """Keep something that was produced, with the test that did."""
        test = re.sub(r"[^\w.-]+", "_", os.environ.get("PYTEST_CURRENT_TEST", "none"))[-150:]
        with open(self._produced / f"{test}.{kind}.{os.getpid()}", "ab") as file:
            for piece in pieces:
                file.write((piece if isinstance(piece, bytes) else str(piece).encode("utf-8", "replace")) + b"\n")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test printed and logged, and how it failed."""
        self.keep("report", *(text for _, text in report.sections), report.longreprtext)

    def canaries(self) -> dict[str, Canary]:
        """Return the secrets that were noted, by text. Those without a part that can be told apart have none."""
        lines = {line for file in self._secrets.iterdir() for line in file.read_text().splitlines()}
        noted = sorted(line.split("\t") for line in lines)
        texts = {bytes.fromhex(text).decode(): label for label, text in noted}
        return {text: Canary(label, tuple(_PART.findall(text)), "") for text, label in texts.items()}  # type: ignore[arg-type]

    def hits(self) -> Counter[tuple[str, str]]:
        """Return where which secret is: the files, and its label."""
        labels = {form: each.name for each in self.canaries().values() for form in each.forms}
        forms = self._secrets / "forms"
        forms.write_bytes(b"".join(form + b"\n" for form in labels))
        argv = ["grep", "-raoF", "--null", "-f", str(forms), str(self.base)]
        out = subprocess.run(argv, capture_output=True, check=False, env={"LC_ALL": "C", "PATH": os.environ["PATH"]}).stdout
        shutil.rmtree(self._secrets)
        found = Counter[tuple[str, str]]()
        for line in out.splitlines():
            place, _, form = line.partition(b"\0")
            found[os.fsdecode(place), labels.get(form, "?")] += 1
        return found


def install(config: pytest.Config) -> None:
    """Begin to watch: in the process that the user started, which is the one that searches, and in its workers."""
    worker = hasattr(config, "workerinput")
    if not worker:
        os.environ[VARIABLE] = tempfile.mkdtemp(prefix="secrets-")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(WATCH), os.environ.get("PYTHONPATH"))))
    for name, change in WATCHED.items():
        change(importlib.import_module(name))
    config.pluginmanager.register(Begin(worker=worker), "canaries-begin")


class Begin:
    """Begins when pytest knows where its temporary folder is."""

    def __init__(self, *, worker: bool) -> None:
        self._worker = worker

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        base = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
        suite = Suite(base.parent if self._worker else base, Path(os.environ[VARIABLE]))
        session.config.pluginmanager.register(suite, "canaries")
        _keep_output(suite)
        if not self._worker:
            session.config.pluginmanager.register(Report(suite), "canaries-report")


class Report:
    """Searches at the end, and fails the run if there is a hit."""

    def __init__(self, suite: Suite) -> None:
        self._suite = suite
        self._lines: list[str] = []

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        canaries = self._suite.canaries()
        searched = [each for each in canaries.values() if each.parts]
        hits = self._suite.hits()
        size = sum(path.stat().st_size for path in self._suite.base.rglob("*") if path.is_file() and not path.is_symlink())
        self._lines.append(f"{len(searched)} secrets of {len(canaries)} were searched for in {size:,} bytes")
        leaked = [(place, label) for place, label in hits if label not in OWN_PLACES or not OWN_PLACES[label].search(place)]
        self._lines += [f"LEAKED: {label} in {place}" for place, label in sorted(leaked)]
        if leaked or not searched:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for line in self._lines:
            terminalreporter.write_line(line)


def _keep_output(suite: Suite) -> None:
    """Keep what commands write to pipes, what servers answer to the clients of tests, and what runs return."""
    from gloveport import Gloveport
    from tests.surfaces import command

    def watched(owner: Any, name: str, kept: Callable[[Any], object], kind: str) -> None:
        original = getattr(owner, name)

        def call(*args: Any, **named: Any) -> Any:
            done = original(*args, **named)
            suite.keep(kind, kept(done))
            return done

        async def wait(*args: Any, **named: Any) -> Any:
            done = await original(*args, **named)
            suite.keep(kind, kept(done))
            return done

        setattr(owner, name, wait if asyncio.iscoroutinefunction(original) else call)

    watched(subprocess.Popen, "communicate", repr, "command")
    watched(command, "_read", bytes, "terminal")
    watched(httpx2.Response, "read", bytes, "reply")
    watched(httpx2.Response, "aread", bytes, "reply")
    watched(Gloveport, "run", repr, "outcome")
    received = asyncio.subprocess.SubprocessStreamProtocol.pipe_data_received

    def pipe_data_received(self: Any, fd: int, data: bytes | str) -> None:
        suite.keep("pipe", data)
        received(self, fd, data)

    asyncio.subprocess.SubprocessStreamProtocol.pipe_data_received = pipe_data_received  # type: ignore[method-assign]
