"""Requests in the store: other processes answer them, once, for what they have seen, while the host lives (B7, B8, M11)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gloveport import Answer, ApprovalRequest, Gloveport, tool
from gloveport.approvals.shelf import ApprovalShelf, ShelvedRequest
from gloveport.errors import ApprovalError
from tests.durable.host import set_lock_timeout
from tests.sources.mcp.support import eventually

pytestmark = pytest.mark.integration

PAID: list[Any] = []
PROGRAM = "return await tools.pay({amount: 5, note: 'caf\u00e9 \u202e x'})"


@tool(writes=True)
def pay(amount: int, note: str = "") -> str:
    """Pay."""
    PAID.append(amount)
    return f"paid {amount}"


def read() -> str:
    """Read."""
    return "text"


@pytest.fixture(autouse=True)
def nothing_paid() -> None:
    PAID.clear()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


async def waiting(store: Path, count: int = 1) -> list[ShelvedRequest]:
    """What an approver in another process sees."""
    shelf = ApprovalShelf(store)
    try:
        await eventually(lambda: len(shelf.waiting()) >= count)
        return shelf.waiting()
    finally:
        shelf.close()


def answer_elsewhere(store: Path, id: str, digest: str, answer: str) -> None:
    """Answer in another process, as `gloveport approvals` does."""
    code = (
        "import sys; from pathlib import Path; from gloveport import Answer; from gloveport.approvals.shelf import ApprovalShelf;"
        f"ApprovalShelf(Path(sys.argv[1])).answer({{sys.argv[2]: sys.argv[3]}}, {answer})"
    )
    subprocess.run([sys.executable, "-c", code, str(store), id, digest], check=True, timeout=60)


async def test_another_process_answers_and_the_call_continues_within_a_second(store: Path) -> None:
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        assert outcome.status == "waiting"
        used = outcome.usage
        assert min(used.wall_seconds, used.cpu_seconds, used.memory_peak_mb, used.calls) > 0
        (found,) = await waiting(store)
        assert found.request == port.approvals.waiting[0]
        assert found.request.args["note"] == "caf\u00e9 \u202e x"
        await asyncio.to_thread(answer_elsewhere, store, found.request.id, found.request.digest, "Answer(True, 'ada')")
        answered = time.monotonic()
        outcome = await port.resume(outcome.run)
        assert time.monotonic() - answered < 5  # one second is measured by the benchmark; this machine may be busy
        assert (outcome.value, PAID) == ("paid 5", [5])
        assert await waiting(store, 0) == []


async def test_a_run_waits_only_when_others_can_find_what_it_asks(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put = ApprovalShelf.put

    def slowly(shelf: ApprovalShelf, request: ApprovalRequest, host: str) -> None:
        time.sleep(0.5)  # a disk that is busy; this is the thread of the store
        put(shelf, request, host)

    monkeypatch.setattr(ApprovalShelf, "put", slowly)
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        assert outcome.status == "waiting"
        shelf = ApprovalShelf(store)
        assert [one.request.id for one in shelf.waiting()] == list(outcome.waiting)
        shelf.close()


async def test_a_resume_looks_for_answers_at_once(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gloveport.approvals.shelf_link.POLL_SECONDS", 3600)
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        (found,) = await waiting(store)
        await asyncio.to_thread(answer_elsewhere, store, found.request.id, found.request.digest, "Answer(True, 'ada')")
        assert (await port.resume(outcome.run)).value == "paid 5"


async def test_a_resume_answers_nothing(store: Path) -> None:
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        for _ in range(3):
            assert (await port.resume(outcome.run)).status == "waiting"
    assert PAID == []


async def test_an_answer_with_arguments_that_the_tool_does_not_take_lets_the_request_wait_on(store: Path) -> None:
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        (found,) = await waiting(store)
        shelf = ApprovalShelf(store)
        shelf.answer({found.request.id: found.request.digest}, Answer(True, "ada", args={"amount": "many"}))
        await eventually(lambda: shelf.find(found.request.id).problem is not None)
        assert "bad arguments" in (shelf.find(found.request.id[:8]).problem or "")
        shelf.answer({found.request.id: found.request.digest}, Answer(True, "ada", args={"amount": 7}))
        await eventually(lambda: not port.approvals.waiting)
        outcome = await port.resume(outcome.run)
        assert outcome.value == "paid 7"
        shelf.close()


def edit(store: Path, statement: str, *given: object) -> None:
    """Change the file behind the back of its hosts."""
    connection = sqlite3.connect(store)
    with connection:
        connection.execute(statement, given)
    connection.close()


async def test_an_answer_holds_for_the_call_that_its_approver_was_shown(store: Path) -> None:
    """Somebody has put another call into the file, with a digest that fits it."""
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run("return await tools.pay({amount: 1000000})")
        (found,) = await waiting(store)
        request, shelf = found.request, ApprovalShelf(store)
        harmless = replace(request, args={"amount": 1})
        changed = "UPDATE approvals SET digest = ?, request = replace(request, '1000000', '1') WHERE id = ?"
        edit(store, changed, harmless.digest, request.id)
        assert shelf.find(request.id).request == harmless
        shelf.answer({request.id: harmless.digest}, Answer(True, "ada"))
        await eventually(lambda: shelf.find(request.id).problem is not None)
        assert "another call" in (shelf.find(request.id).problem or "")
        assert (await port.resume(outcome.run)).status == "waiting"
        shelf.close()
    assert PAID == []


@pytest.mark.parametrize("text", ["", "{}", "null", '{"approved": true, "approver": "x"}', "\x00"])
async def test_an_answer_that_no_approver_wrote_is_refused_and_the_next_one_counts(store: Path, text: str) -> None:
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        (found,) = await waiting(store)
        request, shelf = found.request, ApprovalShelf(store)
        edit(store, "UPDATE approvals SET state = 'answered', answer = ? WHERE id = ?", text, request.id)
        await eventually(lambda: shelf.find(request.id).problem is not None)
        shelf.answer({request.id: request.digest}, Answer(True, "ada"))
        await eventually(lambda: not port.approvals.waiting)
        assert (await port.resume(outcome.run)).value == "paid 5"
        shelf.close()


async def test_a_call_about_which_nobody_can_be_asked_is_refused_at_once(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    caught = "const error = await tools.pay({amount: 1}).catch((e) => e.code); return [error, await tools.read()]"
    async with Gloveport(tools=[pay, read], store=store, spare=1) as port:
        assert (await port.run("return await tools.read()")).ok
        await waiting(store, 0)
        set_lock_timeout(port, 50)
        monkeypatch.setattr("gloveport.store.database.LOCK_TIMEOUT_SECONDS", 0.05)  # of what is opened from now on
        holder = sqlite3.connect(store, isolation_level=None)
        holder.execute("BEGIN IMMEDIATE")  # from now on, nobody else can write
        outcome = await port.run(caught)
        assert (outcome.value, outcome.calls[0].status) == (["store-unavailable", "text"], "failed")
        assert port.approvals.waiting == ()
        holder.close()
        set_lock_timeout(port, 60_000)
        assert (await port.run(caught)).status == "waiting"
    assert PAID == []


async def test_a_standing_approval_holds_in_other_hosts_until_it_is_revoked(store: Path) -> None:
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        first = await port.run("return await tools.pay({amount: 1})")
        (found,) = await waiting(store)
        shelf = ApprovalShelf(store)
        shelf.answer({found.request.id: found.request.digest}, Answer(True, "ada", "always"))
        await eventually(lambda: bool(shelf.standing()))
        assert (await port.resume(first.run)).value == "paid 1"
    async with Gloveport(tools=[pay], store=store, spare=1) as other:
        assert (await other.run("return await tools.pay({amount: 2})")).value == "paid 2"
        assert (await other.run("return await tools.pay({amount: 2, note: 'x'})")).status == "waiting"
        (standing,) = shelf.standing()
        shelf.revoke(standing.id, "ada")
        assert (await other.run("return await tools.pay({amount: 3})")).status == "waiting"
    with pytest.raises(ApprovalError):
        shelf.revoke(standing.id, "ada")
    shelf.close()
    assert PAID == [1, 2]


async def test_no_answer_is_used_twice_late_or_for_something_else(store: Path) -> None:
    async with Gloveport(tools=[pay], store=store, spare=1) as port:
        outcome = await port.run(PROGRAM)
        (found,) = await waiting(store)
        request, shelf, yes = found.request, ApprovalShelf(store), Answer(True, "ada")
        other = replace(request, args={"amount": 6})
        for seen in ({request.id: other.digest}, {"0" * 32: request.digest}, {request.id: ""}, {"": request.digest}):
            with pytest.raises(ApprovalError):
                shelf.answer(seen, yes)
        with pytest.raises(ApprovalError):
            shelf.answer({request.id: request.digest, "0" * 32: request.digest}, yes)  # all or none
        assert (await port.resume(outcome.run)).status == "waiting"
        shelf.answer({request.id: request.digest}, Answer(False, "ada", reason="no"))
        with pytest.raises(ApprovalError):
            shelf.answer({request.id: request.digest}, yes)
        await eventually(lambda: not port.approvals.waiting)
        outcome = await port.resume(outcome.run)
        assert outcome.error is not None
        assert outcome.error.code == "denied"
        with pytest.raises(ApprovalError):
            shelf.answer({request.id: request.digest}, yes)
        shelf.close()
    assert PAID == []


def test_of_approvers_who_answer_at_once_one_is_heard(store: Path) -> None:
    now = time.time()
    requests = [ApprovalRequest("run", n, "shop.pay", {"amount": n}, "default", now, now + 60) for n in range(20)]
    shelves = [ApprovalShelf(store) for _ in range(4)]
    start = threading.Barrier(len(shelves))

    def answer(shelf: ApprovalShelf, request: ApprovalRequest, approver: str) -> bool:
        start.wait()
        try:
            shelf.answer({request.id: request.digest}, Answer(True, approver))
        except ApprovalError:
            return False
        return True

    with ThreadPoolExecutor(len(shelves)) as threads:
        for request in requests:
            shelves[0].put(request, "host")
            heard = list(threads.map(answer, shelves, [request] * 4, "abcd"))
            assert heard.count(True) == 1
            (taken,) = [one for one in shelves[0].answers("host") if one.id == request.id]
            assert taken.answer is not None
            assert taken.answer.approver == "abcd"[heard.index(True)]
    for shelf in shelves:
        shelf.close()


def test_a_request_that_was_changed_in_the_file_or_whose_host_is_dead_is_not_shown(store: Path) -> None:
    now = time.time()
    requests = [ApprovalRequest("run", n, "shop.pay", {"amount": n}, "default", now, now + 60) for n in range(3)]
    shelf = ApprovalShelf(store)
    for request in requests:
        shelf.put(request, "host")
    assert len(shelf.waiting()) == 3
    with sqlite3.connect(store) as connection:
        connection.execute("UPDATE approvals SET process = '4194999 1' WHERE id = ?", (requests[0].id,))
        connection.execute("UPDATE approvals SET expires = ? WHERE id = ?", (now - 1, requests[1].id))
    connection.close()
    assert [one.request.id for one in shelf.waiting()] == [requests[2].id]
    with pytest.raises(ApprovalError):
        shelf.answer({requests[1].id: requests[1].digest}, Answer(True, "ada"))
    with sqlite3.connect(store) as connection:
        connection.execute(
            "UPDATE approvals SET request = replace(request, 'shop.pay', 'shop.all') WHERE id = ?", (requests[2].id,)
        )
    connection.close()
    with pytest.raises(ApprovalError, match="was changed"):
        shelf.find(requests[2].id)
    shelf.close()


@pytest.mark.parametrize("kind", ["command", "url"])
async def test_a_person_is_told_about_each_new_request(kind: str, store: Path, tmp_path: Path) -> None:
    told = tmp_path / "told"
    requests: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        requests.append(await reader.readexactly(size))
        writer.write(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/asked"
    command = ["/bin/sh", "-c", f"cat > {told}.new && mv {told}.new {told}"]
    settings = tmp_path / "gloveport.toml"
    notify = json.dumps(url if kind == "url" else command)
    await asyncio.to_thread(settings.write_text, f"[approvals]\nnotify = {notify}\n")
    async with server, Gloveport(tools=[pay], store=store, config=settings, spare=1) as port:
        await port.run(PROGRAM)
        (request,) = port.approvals.waiting
        await eventually(lambda: bool(requests) or told.exists())
    notice = json.loads(requests[0] if requests else told.read_bytes())
    assert (notice["id"], notice["tool"], notice["agent"]) == (request.id, "local.pay", "default")
    assert "args" not in notice


async def test_a_notice_that_is_redirected_goes_nowhere_else_and_its_owner_is_told(
    store: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    paths: list[bytes] = []

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        paths.append(await reader.readline())
        writer.write(b"HTTP/1.1 307 Moved\r\nLocation: /other\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(redirect, "127.0.0.1", 0)
    settings = tmp_path / "gloveport.toml"
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/asked"
    await asyncio.to_thread(settings.write_text, f'[approvals]\nnotify = "{url}"\n')
    async with server, Gloveport(tools=[pay], store=store, config=settings, spare=1) as port:
        await port.run(PROGRAM)
        await eventually(lambda: "could not be sent: it answered with status 307" in caplog.text)
    assert paths == [b"POST /asked HTTP/1.1\r\n"]
