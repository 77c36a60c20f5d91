"""`gloveport audit` over a real store: shows what was recorded, and finds and locates what was changed since."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from pathlib import Path

import pytest

from gloveport.store.event_log import EventLog
from gloveport.values import encode
from tests.surfaces.command import gloveport

pytestmark = pytest.mark.integration

RUNS = ("a" * 32, "b" * 32)
HOSTILE = "\x1b]52;c;aGk=\x07\u202e"


@pytest.fixture
def store(folder: Path) -> Path:
    """A store with two hosts: the second one has linked the end of the first."""
    path = folder.parent / "XDG_DATA_HOME" / "gloveport" / "store.sqlite"
    for run in RUNS:
        asyncio.run(record(path, run))
    return path


async def record(path: Path, run: str) -> None:
    log = EventLog(path)
    log.append("run-started", {"run": run, "agent": "default", "language": "typescript"})
    for call in (1, 2):
        about = {"run": run, "agent": "default", "call": call}
        args = encode({"amount": call, "note": HOSTILE})
        await log.append_now("call-started", {**about, "tool": "shop.pay", "writes": True}, {"args": args})
        log.append("call-ended", {**about, "status": "ok", "error": None})
    await log.close()


def chains(store: Path) -> list[str]:
    with sqlite3.connect(store) as connection:
        return [row[0] for row in connection.execute("SELECT chain FROM events GROUP BY chain ORDER BY min(at)")]


def edit(store: Path, *statements: str) -> None:
    """Change the file as somebody with access to it would; `$1` is the first chain."""
    first = chains(store)[0]
    with sqlite3.connect(store) as connection:
        for statement in statements:
            connection.execute(statement.replace("$1", first))


def test_an_intact_store_is_reported_with_its_heads(store: Path) -> None:
    done = gloveport("audit", "verify")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[0] == "✓ 16 events in 2 chains, intact"
    found = gloveport("audit", "verify", "--json").document
    heads = {one["chain"]: one["head"] for one in found["chains"]}
    assert done.out.splitlines()[1:] == [f"  head {heads[chains(store)[1]]}"]  # the first chain's is noted in the second
    for head in heads.values():
        assert gloveport("audit", "verify", "--head", head.upper()).code == 0
    assert (found["ok"], found["events"], found["problems"], len(found["chains"])) == (True, 16, [], 2)


@pytest.mark.parametrize(
    ("statements", "says"),
    [
        (["UPDATE events SET body = replace(body, 'a', 'b') WHERE chain='$1' AND number=3"], "event 3 .*: changed"),
        (["UPDATE events SET kind = 'call-lost' WHERE chain='$1' AND number=4"], "event 4 .*: changed"),
        (["UPDATE events SET at = at + 1 WHERE chain='$1' AND number=5"], "event 5 .*: changed"),
        (["UPDATE events SET body = x'00ff' WHERE chain='$1' AND number=3"], "event 3 .*: changed"),
        (["UPDATE events SET body = CAST(x'ff22' AS TEXT) WHERE chain='$1' AND number=3"], "event 3 .*: changed"),
        (["UPDATE events SET hash = 'text' WHERE chain='$1' AND number=3"], "event 3 .*: changed"),
        (["UPDATE events SET body = '[]' WHERE chain='$1' AND kind='linked'"], "event . .*: changed"),
        (["DELETE FROM events WHERE chain='$1' AND number=3"], "event 3 .*: missing; the next one there is 4"),
        (["DELETE FROM events WHERE chain='$1' AND number=1"], "event 1 .*: missing; the next one there is 2"),
        (
            [
                "UPDATE events SET number = 99 WHERE chain='$1' AND number=3",
                "UPDATE events SET number = 3 WHERE chain='$1' AND number=4",
                "UPDATE events SET number = 4 WHERE chain='$1' AND number=99",
            ],
            "event 3 .*: changed",
        ),
        (["DELETE FROM events WHERE chain='$1' AND number>6"], "event 8 .*: missing; event . of the chain .* refers to it"),
        (["DELETE FROM events WHERE chain='$1'"], "event 8 .*: missing; event . of the chain .* refers to it"),
    ],
    ids=[
        "flip",
        "kind",
        "time",
        "blob",
        "bytes",
        "hash",
        "link",
        "drop",
        "drop-first",
        "reorder",
        "truncate",
        "whole-chain",
    ],
)
def test_what_was_changed_is_found_and_located(store: Path, statements: list[str], says: str) -> None:
    edit(store, *statements)
    done = gloveport("audit", "verify")
    assert done.code == 1, done.out + done.err
    assert re.search(rf"^  {says}", done.out, re.MULTILINE), done.out
    assert "not as recorded:" in done.out
    found = gloveport("audit", "verify", "--json")
    assert (found.code, found.document["ok"], found.document["error"]["code"]) == (1, False, "audit-broken")
    event = re.search(r"event (\d)", done.out)
    assert event and found.document["problems"][0]["number"] == int(event[1])


def test_the_end_of_the_last_chain_is_missed_only_by_who_has_noted_its_head(store: Path) -> None:
    last = chains(store)[1]
    head = next(one["head"] for one in gloveport("audit", "verify", "--json").document["chains"] if one["chain"] == last)
    with sqlite3.connect(store) as connection:
        connection.execute("DELETE FROM events WHERE chain = ? AND number > 5", (last,))
    assert gloveport("audit", "verify").code == 0
    done = gloveport("audit", "verify", "--head", head)
    assert (done.code, f"no event has the hash {head}" in done.out) == (1, True)


def test_changed_arguments_are_found_and_deleted_ones_are_not_a_problem(store: Path) -> None:
    edit(store, "DELETE FROM payloads WHERE digest = (SELECT min(digest) FROM payloads)")
    assert gloveport("audit", "verify").code == 0
    edit(store, "UPDATE payloads SET content = x'7b7d'")
    done = gloveport("audit", "verify")
    assert (done.code, "the arguments or result" in done.out) == (1, True)


def test_show_filters_by_run_tool_time_and_number(store: Path) -> None:
    shown = gloveport("audit", "show", "--run", RUNS[0][:6], "--tool", "shop.*")
    assert (shown.code, shown.err) == (0, "")
    kinds = [line.split()[2] for line in shown.out.splitlines()]
    assert kinds == ["call-started", "call-ended"] * 2
    assert "aaaaaaaa  default  #1 shop.pay" in shown.out
    assert "bbbbbbbb" not in shown.out
    assert len(gloveport("audit", "show", "--limit", "3").out.splitlines()) == 3
    assert len(gloveport("audit", "show", "--since", "1h").out.splitlines()) == 16
    edit(store, "UPDATE events SET at = at - 7200000000 WHERE chain='$1'")
    assert len(gloveport("audit", "show", "--since", "1h").out.splitlines()) == 8
    assert gloveport("audit", "show", "--tool", "other.*").err == "nothing was recorded that fits\n"


def test_show_and_export_give_arguments_and_no_text_drives_the_terminal(store: Path) -> None:
    edit(store, "UPDATE events SET kind = 'x' || char(27) || '[2J' WHERE chain='$1' AND number=2")
    shown = gloveport("audit", "show")
    assert "\x1b" not in shown.out and "\u202e" not in shown.out
    assert "x\\x1b[2J" in shown.out
    assert r'args={"amount":1,"note":"\u001b]52' in shown.out
    exported = gloveport("audit", "export", "--format", "jsonl")
    rows = [json.loads(line) for line in exported.out.splitlines()]
    assert len(rows) == 16
    started = next(row for row in rows if row["kind"] == "call-started")
    assert started["payloads"]["args"] == {"amount": 1, "note": HOSTILE}
    assert "\x1b" not in exported.out
    assert gloveport("audit", "export", "--json").document["events"] == rows


def test_the_path_of_the_settings_is_used(folder: Path) -> None:
    missing = gloveport("audit", "verify")
    assert (missing.code, "there is no store" in missing.err) == (1, True)
    assert not (folder.parent / "XDG_DATA_HOME" / "gloveport" / "store.sqlite").exists()
    own = folder.parent / "XDG_CONFIG_HOME" / "gloveport" / "gloveport.toml"
    own.parent.mkdir(parents=True)
    own.write_text('[store]\npath = "elsewhere.sqlite"\n')
    asyncio.run(record(own.parent / "elsewhere.sqlite", RUNS[0]))
    assert gloveport("audit", "verify", "--json").document["file"] == str(own.parent / "elsewhere.sqlite")
    (own.parent / "elsewhere.sqlite").write_bytes(b"not a database" * 100)
    broken = gloveport("audit", "show")
    assert (broken.code, "can't be read as a store" in broken.err) == (1, True)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("show", "--since", "yesterday"), "--since takes a time such as 30s, 10m, 1h or 7d"),
        (("show", "--run", "%"), "--run takes the id of a run"),
        (("verify", "--head", "abc"), "--head takes a hash of 64 hexadecimal digits"),
        (("export", "--format", "xml"), "--format takes jsonl"),
    ],
)
def test_wrong_options_are_explained(store: Path, args: tuple[str, ...], says: str) -> None:
    done = gloveport("audit", *args)
    assert (done.code, says in done.err) == (2, True), done.err
