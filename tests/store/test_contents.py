"""Large contents are kept once, by their digest, apart from the steps that hold them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from gloveport.sandbox.start_event import RunModules, RunSetup, start_event
from gloveport.store import contents
from gloveport.store.contents import StoredContent, digest, join_step, keep_contents, split_step
from gloveport.store.database import open_database
from gloveport.store.encryption import add_key, encrypt_again
from gloveport.store.reading import find_content
from gloveport.store.verification import damaged_payloads
from gloveport.types import Limits, Program

SCRIPT = 'const quoted = "\\"script\\":null";' * 500
PROGRAM = Program("javascript", "1", "1", "javascript", "body", ())
HEAD = b'["start",12,{"modules":{"builtins":["fs"],"script_bytes":'


def started(script: str | None, **setup: object) -> bytes:
    given = RunSetup(modules=RunModules(("fs", "path"), script), has_input=True, **setup)  # type: ignore[arg-type]
    return start_event(PROGRAM, given, Limits(), 1000)


def test_the_script_of_a_run_is_kept_apart_from_its_start() -> None:
    step = started(SCRIPT, input={"modules": {"builtins": [], "script": SCRIPT}})
    rest, script = split_step(step)
    assert script is not None
    assert len(rest) + len(script.content) == len(step) + 4
    assert split_step(started(SCRIPT, input="another"))[1] == script
    assert join_step(rest, script.content) == step


@pytest.mark.parametrize(
    "step",
    [
        b'["reply",1,2,true,"%b"]' % (b"x" * 5000),
        HEAD + b'5,"script":"abc"},"input":"%b"}]' % (b"x" * 5000),
        HEAD + b'0,"script":"%b"}}]' % (b"x" * 5000),
        HEAD + b'999999,"script":"%b"}}]' % (b"x" * 5000),
        HEAD + b'4900,"script":null%b' % (b"null" * 1250),
        b'["start",1,{"code":"%b"}]' % (b"x" * 5000),
        started("short"),
        started(None, input="x" * 5000),
    ],
)
def test_whatever_a_step_says_it_is_joined_as_it_was(step: bytes) -> None:
    rest, content = split_step(step)
    assert step == (rest if content is None else join_step(rest, content.content))


@pytest.mark.parametrize("content", [b"\x01", b"\x01\0\0\0\x01" + bytes(40), b"\0\x01", b"\x01" * 5000, b""])
def test_a_content_that_begins_as_if_it_were_encrypted_is_kept(content: bytes, tmp_path: Path) -> None:
    kept = StoredContent(digest(content), content, may_compress=len(content) > 1000)
    with closing(open_database(tmp_path / "store.sqlite")) as connection:
        keep_contents(connection, [kept])
        assert find_content(connection, kept.digest) == content
        add_key(connection, f"file:{tmp_path / 'store.key'}")
        encrypt_again(connection)
        assert find_content(connection, kept.digest) == content
        assert damaged_payloads(connection) == ()


def test_a_content_that_is_there_is_not_compressed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"a text that is used by each run. " * 1000
    with closing(open_database(tmp_path / "store.sqlite")) as connection:
        keep_contents(connection, [StoredContent.of(text)])
        connection.execute("UPDATE payloads SET at = 0")
        with monkeypatch.context() as patched:
            patched.setattr(contents, "zlib", None)
            keep_contents(connection, [StoredContent.of(text)])
        assert find_content(connection, StoredContent.of(text).digest) == text
        ((at,),) = connection.execute("SELECT at FROM payloads").fetchall()
        assert at > 0
