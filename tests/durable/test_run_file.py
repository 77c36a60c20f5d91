"""Runs in files: whatever a file says, it is read within bounds, and it never becomes a run that goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from gloveport.errors import OptionError
from gloveport.host.runs import run_file
from gloveport.host.runs.past_outcome import past_outcome
from gloveport.host.runs.port_store import PortStore
from gloveport.host.runs.run_file import exported, imported, read_run_file
from gloveport.store.stored_runs import StoredRuns

LARGE = "x" * 5000
STEPS = [
    'host ["start",1000,{"code":"return 1"}]',
    'guest ["call",1,"shop.pay",[{"amount":1}]]',
    "write 1",
    f'host ["reply",2000,1,true,"{LARGE}"]',
    'guest ["log","log","hello"]',
    'guest ["done","value",1,{}]',
]
RUN: dict[str, Any] = {
    "format": "gloveport-run",
    "version": 1,
    "gloveport": "0.1.0",
    "run": "0123456789abcdef",
    "agent": "default",
    "status": "completed",
    "started": 1000.0,
    "ended": 1001.0,
    "language": "typescript",
    "engine": "quickjs",
    "calls": 1,
    "error": None,
    "limits": {},
    "allow_eval": False,
    "allow_wasm": False,
    "tools": ["shop.pay"],
    "code": "return 1",
    "outcome": {"warnings": ["a warning"]},
    "steps": STEPS,
}


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[StoredRuns]:
    with closing(StoredRuns(tmp_path / "store.sqlite")) as runs:
        yield runs


def written(tmp_path: Path, **changes: Any) -> Path:
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**RUN, **changes}))
    return path


def test_an_imported_run_is_shown_and_exported_as_it_was(stored: StoredRuns, tmp_path: Path) -> None:
    imported(stored, read_run_file(written(tmp_path)))
    run = stored.find("0123")
    outcome = past_outcome(stored, run)
    assert (outcome.value, outcome.warnings, outcome.logs[0].text) == (1, ("a warning",), "hello")
    assert [call.tool for call in outcome.calls] == ["shop.pay"]
    (tmp_path / "again.json").write_bytes(exported(stored, run))
    again = read_run_file(tmp_path / "again.json")
    first = read_run_file(tmp_path / "run.json")
    assert again.recording.steps == first.recording.steps
    assert (again.code, again.limits, again.tools) == (first.code, first.limits, first.tools)
    with pytest.raises(OptionError, match="already") as refused:
        imported(stored, first)
    assert refused.value.code == "run-id-taken"


@pytest.mark.parametrize("status", ["running", "waiting", "completed", "failed", "cancelled"])
async def test_an_imported_run_never_goes_on_and_has_no_owner(stored: StoredRuns, tmp_path: Path, status: str) -> None:
    imported(stored, read_run_file(written(tmp_path, status=status, steps=STEPS[:3])))
    run = stored.find("0123456789abcdef")
    assert (run.is_final, run.owned, run.obstacle, run.agent) == (True, False, "imported", "imported:default")
    assert stored.take(run, "a chain") is None
    store = PortStore(tmp_path / "store.sqlite")
    with pytest.raises(OptionError):
        await store.request(run)
    await store.close()


def test_bytes_that_are_no_text_are_kept(stored: StoredRuns, tmp_path: Path) -> None:
    step = "guest:base64 WyJsb2ciLCJsb2ciLCJ4Il0="
    imported(stored, read_run_file(written(tmp_path, steps=[STEPS[0], step])))
    assert stored.recording(stored.find("0123")).steps[1] == ("guest", b'["log","log","x"]')
    assert run_file._read_step(run_file._step_text("guest", b"\xff")) == ("guest", b"\xff")


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"format": "other"}, "format"),
        ({"version": 2}, "version"),
        ({"run": "../../etc"}, "can't have the id"),
        ({"run": "x" * 65}, "can't have the id"),
        ({"engine": "v8"}, "no engine"),
        ({"language": "python"}, "no engine"),
        ({"calls": -1}, "out of range"),
        ({"started": 1e300}, "out of range"),
        ({"limits": {"memory_mb": "x"}}, "limits"),
        ({"limits": {"memory_mb": -5}}, "memory_mb"),
        ({"outcome": {"usage": 5}}, "outcome"),
        ({"unknown": 1}, "unknown"),
        ({"steps": []}, "no steps"),
        ({"steps": [5]}, "steps"),
        ({"steps": ["root x"]}, "begins with"),
        ({"steps": ["guest:base64 ***"]}, "can't be decoded"),
        ({"steps": [STEPS[1]]}, "begin with the start"),
        ({"steps": [STEPS[0], STEPS[0]]}, "an event of the kind 'start'"),
        ({"steps": [STEPS[0], "write 7"]}, "a write that no call"),
        ({"steps": [STEPS[0], "write " + "9" * 5000]}, "step 2"),
        ({"steps": [*STEPS[:2], "write " + "1".zfill(20) + "9"]}, "step 3"),
        ({"steps": [*STEPS[:2], 'write ["write",7,{}]']}, "a write that no call"),
        ({"tools": [f"t{n}" for n in range(100)]}, "more tools than it calls"),
        ({"tools": ["t" * 10_000]}, "more tools than it calls"),
        ({"steps": [STEPS[0], STEPS[3]]}, "a reply to no call"),
        ({"steps": [STEPS[0], 'host ["reply",1,[],true,1]']}, "step 2"),
        ({"steps": [STEPS[0], "guest " + "[" * 100_000]}, "step 2"),
        ({"steps": [STEPS[0], "guest {}"]}, "step 2"),
        ({"steps": [STEPS[0], 'guest ["call",1]']}, "a frame of the kind 'call' that no guest sends"),
        ({"steps": [STEPS[0], 'guest ["call",1,5,[]]']}, "a frame of the kind 'call'"),
        ({"steps": [STEPS[0], 'guest ["call",1,"t",{}]']}, "a frame of the kind 'call'"),
        ({"steps": [STEPS[0], 'guest ["call",1,"t",[],5]']}, "a frame of the kind 'call'"),
        ({"steps": [STEPS[0], 'guest ["call",true,"t",[]]']}, "a call with the id True"),
        ({"steps": [STEPS[0], 'guest ["call",-1,"t",[]]']}, "a call with the id -1"),
        ({"steps": [*STEPS[:2], STEPS[1]]}, "a call with the id 1"),
        ({"steps": [STEPS[0], 'guest ["timer","soon"]']}, "a frame of the kind 'timer'"),
        ({"steps": [STEPS[0], 'guest ["done","value"]']}, "a frame of the kind 'done'"),
        ({"steps": [STEPS[0], 'guest ["fork"]']}, "a frame of the kind 'fork'"),
        ({"steps": [STEPS[0], 'guest ["call",1]', STEPS[5]], "status": "failed"}, "step 2"),
        ({"steps": ['host ["start","now",{}]']}, "step 1"),
        ({"steps": ['host ["start"]']}, "step 1"),
    ],
)
def test_a_file_that_no_export_made_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(OptionError) as refused:
        read_run_file(written(tmp_path, **changes))
    assert refused.value.code == "bad-run-file"
    assert problem in refused.value.message


def test_a_frame_that_the_host_refused_ends_a_failed_run(stored: StoredRuns, tmp_path: Path) -> None:
    file = written(tmp_path, status="failed", steps=[*STEPS[:4], 'guest ["call",2,"t",[],5]'])
    outcome = past_outcome(stored, stored.find(imported(stored, read_run_file(file))))
    assert [call.id for call in outcome.calls] == [1]


def test_a_file_that_is_too_large_or_no_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "deep").write_text("[" * 1_000_000)
    (tmp_path / "text").write_text("no JSON")
    for name in ("pipe", "deep", "text", "missing", "."):
        with pytest.raises(OptionError, match="no run that Gloveport has exported"):
            read_run_file(tmp_path / name)
    monkeypatch.setattr(run_file, "MAX_FILE_BYTES", 100)
    with pytest.raises(OptionError, match="more than 100 bytes"):
        read_run_file(written(tmp_path))
    monkeypatch.setattr(run_file, "MAX_FILE_BYTES", 100_000)
    monkeypatch.setattr(run_file, "MAX_RUN_BYTES", 100)
    with pytest.raises(OptionError, match="more than 100 bytes"):
        read_run_file(written(tmp_path))
