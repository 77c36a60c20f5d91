"""The encrypted store: nothing that a program says is in the file, the audit verifies, and the key changes while hosts run."""

from __future__ import annotations

import asyncio
import base64
import secrets
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport import sealing
from gloveport.approvals.plan_shelf import PlanShelf
from gloveport.approvals.request import Answer, ApprovalRequest
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.config.store import StoreConfig
from gloveport.errors import OptionError, StoreError
from gloveport.store import keys
from gloveport.store.contents import digest
from gloveport.store.database import StoreFile, open_database
from gloveport.store.encryption import add_key, encrypt_again
from gloveport.store.event_log import EventLog
from gloveport.store.reading import open_for_reading
from gloveport.store.run_audit import RunAudit
from gloveport.store.run_recorder import RunRecorder
from gloveport.store.stored_runs import StoredRuns
from gloveport.store.verification import damaged_payloads, verify
from gloveport.types import Plan, PlannedWrite
from tests.surfaces.command import gloveport

SECRET = "the-canary-of-this-test"


def new_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "gloveport" / "store.sqlite"


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    return tmp_path / "keys" / "store.key"


@pytest.fixture
def config(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> StoreConfig:
    monkeypatch.delenv("GLOVEPORT_STORE_KEY", raising=False)
    return StoreConfig(encrypt=True, key=f"file:{key_file}")


def remove(place: str) -> None:
    Path(place.removeprefix("file:")).unlink()


async def record(log: EventLog, run: str) -> None:
    """Record a run that says the canary everywhere."""
    recorder = RunRecorder(log, run)
    audit = RunAudit(log, run, "default", recorder)
    code = f"{SECRET} {run}"
    request = {"code": digest(code.encode()).hex(), "memory_mb": 64, "more": SECRET}
    recorder.started("default", "typescript", "quickjs", lambda: request)
    audit.started(code, "typescript", "quickjs")
    recorder.event(b'["start",1000,{"code":"%b"}]' % SECRET.encode())
    recorder.frame(b'["call",1,"shop.pay",["%b"]]' % SECRET.encode())
    await audit.call_started_now(1, "shop.pay", {"to": SECRET}, writes=True)
    result = SECRET * 400
    audit.call_ended(1, "ok", None, result)
    recorder.event(b'["reply",2000,1,true,"%b"]' % result.encode())
    recorder.ended("completed", None, 1, lambda: b'{"warnings":["%b"]}' % SECRET.encode())
    await log.flush()


def ask(path: Path) -> ApprovalRequest:
    request = ApprovalRequest("run", 1, "shop.pay", {"to": SECRET}, "default", time.time(), time.time() + 1000)
    with closing(ApprovalShelf(path)) as shelf:
        shelf.put(request, "host")
        shelf.answer({request.id: request.digest}, Answer(True, "ada", reason=SECRET))
    return request


def plan(path: Path) -> Plan:
    write = PlannedWrite(1, "shop.pay", {"to": SECRET}, "definition")
    made = Plan("one", "default", (write,), time.time() + 1000, ())
    with closing(PlanShelf(path)) as shelf:
        shelf.put(made)
    return made


def in_file(path: Path) -> bool:
    """Whether the canary is anywhere in the files of the store."""
    return any(SECRET.encode() in file.read_bytes() for file in path.parent.iterdir())


def check(path: Path, *runs: str) -> None:
    """Everything can be read, and nothing was changed."""
    with closing(StoredRuns(path)) as stored:
        for id in runs:
            run = stored.find(id)
            assert (run.request["more"], run.outcome) == (SECRET, {"warnings": [SECRET]})
            assert stored.code(run) == f"{SECRET} {id}"
            steps = stored.recording(run).steps
            assert [SECRET.encode() in content for _, content in steps] == [True, True, False, True]
            assert len(stored.steps_after(run, 0)) == 4
    with closing(open_for_reading(path)) as connection:
        assert verify(connection).problems == ()
        assert damaged_payloads(connection) == ()


async def test_nothing_that_a_program_says_is_in_an_encrypted_file(path: Path, config: StoreConfig) -> None:
    log = EventLog(path, config)
    await record(log, "one")
    request, planned = ask(path), plan(path)
    await record(log, "two")
    await log.close()
    assert not in_file(path)
    check(path, "one", "two")
    with closing(PlanShelf(path)) as plans:
        assert (found := plans.find("one")) is not None
        assert found.plan == planned
    with closing(ApprovalShelf(path)) as shelf:
        assert shelf.find(request.id).request.args == {"to": SECRET}
        (answer,) = shelf.answers("host")
        assert answer.answer is not None
        assert answer.answer.reason == SECRET


async def test_a_file_that_is_not_encrypted_has_the_canary(path: Path) -> None:
    log = EventLog(path)
    await record(log, "one")
    await log.close()
    assert in_file(path)  # so the other tests can fail
    check(path, "one")


def test_without_the_right_key_the_error_says_what_to_do_and_the_chains_still_verify(
    path: Path, config: StoreConfig, monkeypatch: pytest.MonkeyPatch, key_file: Path
) -> None:
    async def record_one() -> None:
        log = EventLog(path, config)
        await record(log, "one")
        await log.close()

    asyncio.run(record_one())
    right = key_file.read_text()
    assert key_file.stat().st_mode & 0o777 == 0o600

    def refused() -> StoreError:
        with closing(StoredRuns(path)) as stored:
            assert [run.id for run in stored.latest()] == ["one"]  # lists need no key
            with pytest.raises(StoreError) as caught:
                stored.find("one")
        assert caught.value.code == "store-key"
        with closing(open_for_reading(path)) as connection:
            assert verify(connection).problems == ()
            with pytest.raises(StoreError):
                damaged_payloads(connection)
        return caught.value

    key_file.unlink()
    assert "GLOVEPORT_STORE_KEY" in (refused().hint or "")
    monkeypatch.setenv("GLOVEPORT_STORE_KEY", new_key())
    assert "is not that of the store" in refused().message
    monkeypatch.setenv("GLOVEPORT_STORE_KEY", "short")
    assert "32 bytes" in refused().message
    monkeypatch.setenv("GLOVEPORT_STORE_KEY", right)
    check(path, "one")
    monkeypatch.delenv("GLOVEPORT_STORE_KEY")
    key_file.write_text(right)
    key_file.chmod(0o644)
    assert "chmod 600" in (refused().hint or "")


async def test_a_host_without_the_key_makes_no_write(path: Path, config: StoreConfig) -> None:
    log = EventLog(path, StoreConfig(encrypt=True, key="env:NO_SUCH_VARIABLE_IS_SET"))
    with pytest.raises(StoreError) as caught:
        await log.append_now("call", {}, {"args": b"x"})
    assert caught.value.code == "store-key"
    await log.close()


async def test_contents_that_change_places_are_found(path: Path, config: StoreConfig) -> None:
    log = EventLog(path, config)
    await record(log, "one")
    await log.close()
    with closing(open_database(path)) as connection:
        connection.execute(
            "UPDATE run_steps SET content = (SELECT content FROM run_steps WHERE number = 2) WHERE number = 1"
        )
    with closing(StoredRuns(path)) as stored, pytest.raises(StoreError, match="was changed"):
        stored.recording(stored.find("one"))
    with closing(open_database(path)) as connection:
        connection.execute("UPDATE payloads SET content = (SELECT max(content) FROM payloads)")
        assert damaged_payloads(connection)


async def test_the_key_changes_while_a_host_writes(path: Path, config: StoreConfig, tmp_path: Path) -> None:
    plain, live = EventLog(path), EventLog(path, config)
    await record(plain, "plain")
    await record(live, "live-1")
    stop = asyncio.Event()

    async def write(log: EventLog, name: str) -> int:
        count = 0
        while not stop.is_set():
            count += 1
            await record(log, f"{name}-during-{count}")
        return count

    writers = [asyncio.ensure_future(write(log, name)) for log, name in ((plain, "plain"), (live, "live"))]

    def rotate(place: str) -> tuple[str, ...]:
        with closing(StoreFile(path)) as store, store.reading() as connection:
            connection.execute("PRAGMA secure_delete = ON")
            add_key(connection, place)
            return encrypt_again(connection)

    old = await asyncio.to_thread(rotate, f"file:{tmp_path / 'keys' / 'second.key'}")
    assert old == (config.key,)
    assert await asyncio.to_thread(rotate, f"file:{tmp_path / 'keys' / 'third.key'}") == (
        f"file:{tmp_path / 'keys' / 'second.key'}",
    )
    stop.set()
    counts = await asyncio.gather(*writers)
    await record(plain, "plain-after")
    await plain.close()
    await live.close()
    for name in ("store.key", "second.key"):
        (tmp_path / "keys" / name).unlink()
    during = [f"{name}-during-{n + 1}" for name, count in zip(("plain", "live"), counts, strict=True) for n in range(count)]
    check(path, "plain", "live-1", "plain-after", *during)
    with closing(open_database(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert not in_file(path)


@pytest.mark.integration
async def test_the_store_is_copied_and_its_key_changed_by_commands_while_a_host_runs(
    path: Path, config: StoreConfig, tmp_path: Path
) -> None:
    env = {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "STATE")}
    settings = tmp_path / "config" / "gloveport" / "gloveport.toml"
    settings.parent.mkdir(parents=True)

    async def command(*args: str, **more: str) -> Any:
        return await asyncio.to_thread(gloveport, *args, **env, **more)

    log = EventLog(path)
    await record(log, "one")
    assert "not encrypted" in (await command("store", "rotate-key")).err
    settings.write_text(f'[store]\nencrypt = true\nkey = "{config.key}"\n')
    done = await command("store", "rotate-key")
    assert (done.code, "is encrypted" in done.err) == (0, True), done.err
    await record(log, "two")
    again = await command("store", "rotate-key", "--json")
    assert (again.document["old_keys"], again.document["key"].startswith("file:")) == ([config.key], True)
    await record(log, "three")
    copy = tmp_path / "copy" / "store.sqlite"
    copy.parent.mkdir()
    assert (await command("store", "backup", str(copy))).code == 0
    assert "can't be created" in (await command("store", "backup", str(copy))).err
    await log.close()
    assert copy.stat().st_mode & 0o777 == 0o600
    assert not in_file(copy)
    check(copy, "one", "two", "three")
    check(path, "one", "two", "three")
    assert (await command("audit", "verify")).code == 0
    remove(again.document["key"])
    verified = await command("audit", "verify")
    assert (verified.code, "only the chains are checked" in verified.err) == (0, True)
    shown = await command("runs", "show", "one")
    assert (shown.code, "store-key" in shown.err) == (4, True)


@pytest.mark.integration
def test_a_store_that_is_not_encrypted_loads_no_cryptography(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys\n"
        "from gloveport import Gloveport\n"
        "async def main():\n"
        f"    async with Gloveport(store={str(tmp_path / 's.sqlite')!r}, spare=0) as port:\n"
        "        assert (await port.run('1', engine='quickjs')).ok\n"
        "asyncio.run(main())\n"
        "assert not [name for name in sys.modules if name.startswith(('cryptography', 'keyring'))]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("key", ["file:", "disk:x", 5])
def test_a_place_that_is_none_is_refused(key: Any) -> None:
    from gloveport.config.store import store_from

    with pytest.raises(OptionError, match="key of"):
        store_from({"key": key}, {})
    with pytest.raises(OptionError, match="encrypt of"):
        store_from({"encrypt": "yes"}, {})


def test_the_keyring_keeps_a_key_where_there_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("GLOVEPORT_STORE_KEY", raising=False)
    kept: dict[tuple[str, str], str] = {}

    class Ring:
        """The three functions of the package `keyring` that are used, over a dict."""

        @staticmethod
        def get_password(service: str, name: str) -> str | None:
            return kept.get((service, name))

        @staticmethod
        def set_password(service: str, name: str, text: str) -> None:
            kept[service, name] = text

    monkeypatch.setattr(sealing, "keyring_module", lambda: Ring)
    place = keys.new_place(tmp_path, "GLOVEPORT_STORE_KEY")
    assert place.startswith("keyring:store-")
    key = keys.make_key(place)
    assert keys.make_key(place) == key
    assert keys.find_keys(place, "GLOVEPORT_STORE_KEY") == [key]
    monkeypatch.setattr(sealing, "keyring_module", lambda: None)
    assert keys.new_place(tmp_path, "GLOVEPORT_STORE_KEY").startswith(f"file:{tmp_path}")
    with pytest.raises(StoreError, match="is not in keyring:"):
        keys.find_keys(place, "GLOVEPORT_STORE_KEY")
