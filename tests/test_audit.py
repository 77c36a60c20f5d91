"""What a port records of its runs: complete, chained, without secrets, and before a write leaves (B11, D5, D6)."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import orjson
import pytest

from gloveport import Answer, Gloveport, Rule, tool
from gloveport.sandbox.wire import decode
from gloveport.store import database
from gloveport.store.database import open_database
from gloveport.store.event_log import EventLog
from gloveport.store.run_audit import RunAudit
from gloveport.store.verification import damaged_payloads, verify
from gloveport.values import encode

pytestmark = pytest.mark.integration


def read(text: str) -> str:
    """Read."""
    return text.upper()


def events(path: Path) -> list[tuple[str, dict[str, Any]]]:
    connection = open_database(path)
    try:
        report = verify(connection)
        assert report.problems == ()
        assert damaged_payloads(connection) == ()
        rows = connection.execute("SELECT kind, body FROM events ORDER BY at, number").fetchall()
        return [(kind, orjson.loads(body)) for kind, body in rows if kind not in ("opened", "closed", "linked")]
    finally:
        connection.close()


def payload(path: Path, digest: str) -> Any:
    connection = open_database(path)
    try:
        (content,) = connection.execute(
            "SELECT content FROM payloads WHERE digest = ?", (bytes.fromhex(digest),)
        ).fetchone()
        return orjson.loads(content)
    finally:
        connection.close()


async def test_a_run_its_calls_and_its_answers_are_recorded(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"

    @tool(writes=True)
    def pay(amount: int) -> str:
        """Pay: by then, the call is on the disk."""
        assert ("call-started", True) in [(kind, body.get("writes")) for kind, body in events(store)]
        return "paid"

    code = (
        "await tools.read({text: 'a'}); await tools.pay({amount: 5}); return tools.read({text: 'b'}).catch(() => 'denied')"
    )
    async with Gloveport(
        tools=[pay, read],
        store=store,
        rules=[Rule("local.read", "deny", when="args.text == 'b'", reason="no b")],
        on_approval=lambda request: Answer(True, "ada", args={"amount": 4}),
        spare=1,
    ) as port:
        outcome = await port.run(code)
    assert outcome.value == "denied"
    found = events(store)
    assert {(body["run"], body["agent"]) for _, body in found} == {(outcome.run, "default")}
    assert [kind for kind, _ in found] == [
        *("run-started", "call-started", "call-ended", "call-asked", "call-answered", "call-started", "call-ended"),
        *("call-denied", "call-ended", "run-ended"),
    ]
    by_kind = dict(reversed(found))
    assert payload(store, found[1][1]["args"]) == {"text": "a"}
    assert payload(store, found[2][1]["result"]) == "A"
    assert payload(store, by_kind["call-asked"]["args"]) == {"amount": 5}
    assert payload(store, by_kind["call-answered"]["args"]) == {"amount": 4}
    assert payload(store, found[5][1]["args"]) == {"amount": 4}
    assert (by_kind["call-answered"]["approver"], by_kind["call-answered"]["approved"]) == ("ada", True)
    assert "local.read" in by_kind["call-denied"]["rule"]
    assert by_kind["run-ended"]["status"] == "completed"
    assert oct(store.stat().st_mode & 0o777) == "0o600"


async def test_what_is_recorded_of_reads_is_what_tools_got_and_programs_get(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"

    def echo(value: Any, more: Any = None) -> Any:
        """Return what it gets, or a number that is too large."""
        return 10**5000 if value == "large" else value

    code = """
    await tools.echo({value: "by name"});
    await tools.echo({value: {a: [1, 2.5, null, new Date(0)]}, more: 1n << 70n});
    await tools.echo("by place", new Uint8Array([1]));
    await tools.echo({value: null});
    await step("a step", () => tools.echo({value: "é\\ud800"}));
    await tools.echo({value: "large"}).catch((error) => error.code)
    """
    async with Gloveport(tools=[echo], store=store, spare=1) as port:
        assert (await port.run(code)).value == "bad-value"
    found = events(store)
    started = [body for kind, body in found if kind == "call-started"]
    ended = [body for kind, body in found if kind == "call-ended"]
    tagged = {"a": [1, 2.5, None, {"$": "date", "v": 0}]}
    assert [payload(store, body["args"]) for body in started] == [
        {"value": "by name"},
        {"value": tagged, "more": {"$": "bigint", "v": str(1 << 70)}},
        {"value": "by place", "more": {"$": "bytes", "v": "AQ=="}},
        {"value": None},
        {"value": "é\ufffd"},
        {"value": "large"},
    ]
    assert [body.get("step") for body in started] == [None, None, None, None, "a step", None]
    assert {body["writes"] for body in started} == {False}
    results = [
        payload(store, body["result"]) if len(body.get("result", "")) == 64 else body.get("result") for body in ended
    ]
    assert results == ["by name", tagged, "by place", None, "é\ufffd", "not recorded: it can't be encoded"]
    assert {(body["status"], body["error"]) for body in ended} == {("ok", None)}


@pytest.mark.parametrize("args", ['{"\\u0024":"no tag"}', '{"a":{"$":"date","v":0},"$$b":1}', '{"a":{"\\u0024":1}}'])
async def test_arguments_that_are_recorded_from_a_frame_are_those_that_the_sandbox_reads(tmp_path: Path, args: str) -> None:
    log = EventLog(tmp_path / "store.sqlite")
    audit = RunAudit(log, "a" * 32, "default")
    frame = f'["call",1,"read",[{args}]]'.encode()
    read = decode(frame)[3][0]
    audit.call_started(1, "local.read", read, None, frame)
    audit.call_started(2, "local.read", read)
    await log.close()
    first, second = events(log.path)
    assert first[1]["args"] == second[1]["args"]
    assert payload(log.path, first[1]["args"]) == orjson.loads(encode(read))


def test_without_a_store_no_file_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with Gloveport(tools=[read], spare=1) as port:
        assert port.run_sync("return await tools.read({text: 'a'})").value == "A"
    assert list(tmp_path.rglob("*.sqlite*")) == []


async def test_where_nothing_can_be_recorded_writes_are_refused_and_reads_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database, "LOCK_TIMEOUT_SECONDS", 0.5)
    store, paid = tmp_path / "store.sqlite", []

    @tool(writes=True)
    def pay() -> None:
        """Pay."""
        paid.append(1)

    locked = sqlite3.connect(store, isolation_level=None)
    locked.execute("PRAGMA journal_mode = WAL")
    locked.execute("BEGIN IMMEDIATE")
    try:
        code = "return [await tools.read({text: 'a'}), await tools.pay().catch((e) => [e.code, e.message])]"
        async with Gloveport(tools=[pay, read], store=store, rules=[Rule("*", "allow")], spare=1) as port:
            outcome = await port.run(code, limits={"wall_seconds": 60})
            assert outcome.error is None, outcome.error
            text, (reason, message) = outcome.value
            assert (text, reason, paid) == ("A", "store-unavailable", [])
            assert message == "`tools.pay` was not made, because it can't be recorded"  # and no path of the host (S3)
            failed = (await port.run("await tools.pay()")).error
            assert failed is not None
            assert str(store) in (failed.setting or "")  # for the person who runs it
            assert str(tmp_path) not in f"{failed.message} {failed.hint} {failed.data}"
            locked.execute("ROLLBACK")
            assert (await port.run("return (await tools.pay()) ?? 'made'")).value == "made"
    finally:
        locked.close()
    assert paid == [1]
    assert [kind for kind, _ in events(store)].count("run-ended") == 3  # what was kept in memory is there, too
