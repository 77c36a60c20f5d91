"""Any exception of a tool crosses as plain data (S3): bounded, and without host paths."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from gloveport.bridge.tool_errors import MAX_MESSAGE_CHARS, to_tool_error, without_paths
from gloveport.errors import ToolError
from tests.holding import MAX_HOLD_MS, cpu_ms

from .support import call, port, refused

HOME = os.path.expanduser("~")


class NoText(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class TextSubclass(str):
    __slots__ = ("host",)


class OddText(Exception):
    def __str__(self) -> str:
        text = TextSubclass("odd")
        text.host = sys
        return text


class NotText(Exception):
    def __str__(self) -> str:
        return 5  # type: ignore[return-value]  # noqa: PLE0307


class NamelessMeta(type):
    @property
    def __name__(cls) -> str:  # type: ignore[override]
        raise RuntimeError("no name")


class Nameless(Exception, metaclass=NamelessMeta):
    pass


class Sticky(ToolError):
    """A ToolError whose fields hold host objects."""

    def __init__(self) -> None:
        super().__init__("stuck", data={"ok": 1})
        self.host = sys
        self.data = {"module": sys}
        self.code = TextSubclass("odd-code")
        self.status = True


class Lying(ToolError):
    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise RuntimeError("no fields")


EXOTIC = [
    NoText(), OddText(), NotText(), Nameless("x"), Sticky(), Lying("x"), Exception(), Exception(sys),
    ExceptionGroup("many", [ValueError("x"), KeyError("y")]), UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"),
    StopAsyncIteration(1), ZeroDivisionError("x" * 100_000), RecursionError(), MemoryError(), AssertionError({"a": 1}),
    OSError(2, "No such file", "/etc/secret/x.txt"), SystemExit(3), asyncio.CancelledError(), GeneratorExit(),
]  # fmt: skip


def assert_plain(value: Any, depth: int = 0) -> None:
    assert depth < 10
    assert type(value) in (str, int, float, bool, type(None), list, dict), type(value)
    for item in value.values() if type(value) is dict else value if type(value) is list else ():
        assert_plain(item, depth + 1)


@pytest.mark.parametrize("waits", [False, True])
@pytest.mark.parametrize("error", EXOTIC[:-1], ids=lambda error: type.__repr__(type(error)))
async def test_whatever_a_tool_raises_crosses_as_plain_bounded_data(error: BaseException, waits: bool) -> None:
    async def fails() -> None:
        if waits:
            await asyncio.sleep(0)
        raise error

    found = await refused(port(fails), "fails")
    assert type(found) is ToolError
    for value in vars(found).values():
        assert_plain(value)
    assert found.tool == "fails"
    assert len(found.message) < MAX_MESSAGE_CHARS + 100
    assert found.__cause__ is None
    assert found.__suppress_context__ or found.__context__ is None


async def test_an_exception_is_reported_by_type_and_message() -> None:
    async def fails() -> None:
        raise ValueError("the thermometer is broken")

    found = await refused(port(fails), "fails")
    assert (found.code, found.message) == ("tool-failed", "ValueError: the thermometer is broken")


async def test_a_tool_error_passes_with_its_fields() -> None:
    async def fails() -> None:
        raise ToolError("slow down", code="rate-limited", status=429, data={"after": (1, 2)}, retryable=True, hint="wait")

    found = await refused(port(fails), "fails")
    assert (found.message, found.code, found.status, found.hint) == ("slow down", "rate-limited", 429, "wait")
    assert found.data == {"after": [1, 2]}
    assert found.retryable is True


@pytest.mark.parametrize("inline", [True, False])
async def test_system_exit_ends_the_call_and_not_the_host(inline: bool) -> None:
    from gloveport.sources.functions import tool

    @tool(inline=inline)
    def leaves() -> None:
        sys.exit("bye")

    found = await refused(port(leaves), "leaves")
    assert found.message == "SystemExit: bye"


async def test_keyboard_interrupt_passes() -> None:
    from gloveport.sources.functions import tool

    @tool(inline=True)
    def interrupted() -> None:
        raise KeyboardInterrupt

    run = port(interrupted)
    with pytest.raises(KeyboardInterrupt):
        await call(run, "interrupted")
    assert run.records[0].status == "failed"


PATHS = [
    (f"no such file: '{HOME}/deep/down/data.csv'", "no such file: 'data.csv'"),
    (
        f"[Errno 2] No such file or directory: '{HOME}/My Files/a b.txt'",
        "[Errno 2] No such file or directory: 'a b.txt'",
    ),
    ("open /etc/ssl/private/key.pem failed", "open key.pem failed"),
    ("see /usr/lib/python3/x.py, line 3", "see x.py, line 3"),
    ("bad path=/etc/passwd)", "bad path=passwd)"),
    ("GET /v1/users/5 failed", "GET /v1/users/5 failed"),
    ("https://api.example.com/home/users gave 500", "https://api.example.com/home/users gave 500"),
    ("1/2 and a/b are not paths", "1/2 and a/b are not paths"),
    (r"can't open C:\Users\ada\secret.txt", "can't open secret.txt"),
    ("no path at all", "no path at all"),
    (f"sqlite:///{sys.prefix}/bin/app.db is locked", "sqlite:app.db is locked"),
    (f"cc -I{sys.prefix}/bin/x.h failed", "cc -Ix.h failed"),
    (f"found:{sys.prefix}/bin/x.h", "found:x.h"),
    (f"a-{sys.prefix}/lib/x.h", "a-x.h"),
    (f"overlay/upper{sys.prefix}/lib/x.h", "overlay/upperx.h"),
    ("src/home/app.py is relative", "src/home/app.py is relative"),
    ("wss://example.com/usr/lib closed", "wss://example.com/usr/lib closed"),
    ("just / alone", "just / alone"),
]


@pytest.mark.parametrize(("said", "shown"), PATHS)
def test_paths_of_this_machine_are_cut_to_their_last_part(said: str, shown: str) -> None:
    assert without_paths(said) == shown


def test_an_installation_in_a_folder_with_spaces_is_not_revealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    prefix = tmp_path / "my secret folder" / ".venv"
    prefix.mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(prefix))
    for said, shown in (
        (f"sqlite:///{prefix}/bin/app.db is locked", "sqlite:app.db is locked"),
        (f"cc -I{prefix}/bin/x.h failed", "cc -Ix.h failed"),
        (f"overlay/upper{prefix}/lib/x.h", "overlay/upperx.h"),
    ):
        assert without_paths(said) == shown


@pytest.mark.parametrize("which", ["home", "working folder", "prefix"])
def test_no_folder_of_the_host_is_revealed_however_it_is_written(which: str) -> None:
    folder = {"home": os.path.expanduser("~"), "working folder": os.getcwd(), "prefix": sys.prefix}[which]
    for said in (f"file://{folder}/x", f"x={folder}", f"<{folder}/a/b>", f"({folder}:3)"):
        assert folder not in without_paths(said)


async def test_a_missing_file_does_not_reveal_its_folder(tmp_path: Path) -> None:
    async def read() -> str:
        return (tmp_path / "gone.txt").read_text()

    found = await refused(port(read), "read")
    assert str(tmp_path) not in found.message
    assert "gone.txt" in found.message


@pytest.mark.parametrize("unit", ["/", "a/", "/usr/", "'/", "http://", "C:\\", "/a/b"])
def test_no_message_makes_the_search_for_paths_take_long(unit: str) -> None:
    said = unit * (MAX_MESSAGE_CHARS // len(unit))
    assert cpu_ms(without_paths, said) < MAX_HOLD_MS


def test_a_long_message_is_cut() -> None:
    assert len(to_tool_error(ValueError("x" * 1_000_000), "t", attributed=True).message) < MAX_MESSAGE_CHARS + 50
