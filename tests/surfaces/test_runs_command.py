"""`gloveport runs`: what happened is listed and shown, and what waits or was interrupted goes on."""

from __future__ import annotations

import json
import time
from contextlib import closing
from pathlib import Path

import pytest

from gloveport.approvals.request import ApprovalRequest
from gloveport.approvals.shelf import ApprovalShelf
from gloveport.store.tokens import TokenStore
from tests.surfaces.command import gloveport, terminal

pytestmark = pytest.mark.integration

SHOP = '''
from pathlib import Path
from gloveport import tool

MADE = Path(__file__).with_name("made")


@tool(writes=True)
def pay(amount: int) -> str:
    """Pay."""
    with MADE.open("a") as file:
        file.write(f"{amount}\\n")
    return f"paid {amount}"


def look(n: int) -> int:
    """Look."""
    factor = MADE.with_name("factor")
    return n * (int(factor.read_text()) if factor.exists() else 2)
'''
PROGRAM = "console.log('begin'); const n = await tools.shop.look({n: 2}); return [n, await tools.shop.pay({amount: n})]"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    (tmp_path / "shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    return {f"XDG_{name}_HOME": str(tmp_path / name.lower()) for name in ("DATA", "CONFIG", "CACHE", "STATE")}


def made(tmp_path: Path) -> list[str]:
    file = tmp_path / "made"
    return file.read_text().split() if file.exists() else []


def test_a_run_that_waits_is_listed_shown_resumed_and_replayed(home: dict[str, str], tmp_path: Path) -> None:
    refused = gloveport("run", "--tools", "shop.py", "--no-input", "-e", PROGRAM, **home)
    assert refused.code == 5
    assert "waits: shop.pay" in refused.err
    (run,) = gloveport("runs", "--waiting", "--json", **home).document["runs"]
    assert f"gloveport runs resume {run['run'][:8]} --tools shop.py" in refused.err
    assert (run["status"], run["agent"], run["calls"], made(tmp_path)) == ("waiting", "default", 1, [])
    (tmp_path / "own.toml").write_text('[store]\npath = "own.sqlite"\n')  # whose runs only --config finds
    elsewhere = gloveport("run", "--tools", "shop.py", "--config", "own.toml", "--no-input", "-e", PROGRAM, **home)
    assert "--tools shop.py --config own.toml`" in elsewhere.err
    shown = gloveport("runs", "show", run["run"][:6], **home).out
    assert "tools.shop.look  ok" in shown
    assert "tools.shop.pay  waiting" in shown
    assert "begin" in shown
    assert "await tools.shop.pay" in shown
    again = gloveport("runs", "resume", run["run"][:8], "--tools", "shop.py", "--no-input", **home)
    assert (again.code, made(tmp_path)) == (5, [])
    assert "tools.shop.pay, which is not here" in gloveport("runs", "resume", run["run"], **home).err
    again = gloveport("runs", "resume", run["run"], "--tools", "shop.py", "--no-input", "--json", **home)
    assert again.document["waiting"]
    with terminal("runs", "resume", run["run"][:8], "--tools", "shop.py", **home) as screen:
        screen.until(r"Make this call\?")
        screen.press(b"y\r")
        code, rest = screen.rest()
    assert (code, "paid 4" in rest, made(tmp_path)) == (0, True, ["4"])
    assert "shop.pay({" in rest
    (run,) = gloveport("runs", "list", "--tool", "shop.*", "--json", **home).document["runs"]
    assert (run["status"], run["calls"]) == ("completed", 2)
    assert gloveport("runs", "show", run["run"], "--json", **home).document["outcome"]["value"] == [4, "paid 4"]
    assert "the same" in gloveport("runs", "replay", run["run"], **home).err
    assert made(tmp_path) == ["4"]


def test_a_run_that_waits_is_cancelled(home: dict[str, str], tmp_path: Path) -> None:
    gloveport("run", "--tools", "shop.py", "--no-input", "-e", PROGRAM, **home)
    (run,) = gloveport("runs", "list", "--json", **home).document["runs"]
    assert gloveport("runs", "cancel", run["run"], **home).code == 0
    assert gloveport("approvals", "list", "--json", **home).document["waiting"] == []
    refused = gloveport("runs", "cancel", run["run"], **home)
    assert refused.code == 2
    assert "has ended already" in refused.err
    assert "there are no such runs" in gloveport("runs", "list", "--waiting", **home).err
    assert "there is no run 'abc'" in gloveport("runs", "show", "abc", **home).err
    assert made(tmp_path) == []


PLANNED = (
    "const n = await tools.shop.look({n: 2}); return [await tools.shop.pay({amount: n}), await tools.shop.pay({amount: 1})]"
)


def test_a_plan_is_shown_and_followed_after_a_person_has_agreed(home: dict[str, str], tmp_path: Path) -> None:
    for key, code, paid in (b"n\r", 0, []), (b"y\r", 0, ["4", "1"]):
        with terminal("run", "--plan", "--tools", "shop.py", "-e", PLANNED, **home) as screen:
            shown = screen.until(r"make exactly these 2 writes without asking\?")
            assert '"amount": 4' in shown
            screen.press(key)
            assert (screen.rest()[0], made(tmp_path)) == (code, paid)


def test_only_a_person_approves_a_plan_and_only_once(home: dict[str, str], tmp_path: Path) -> None:
    planned = gloveport("run", "--plan", "--json", "--tools", "shop.py", "-e", PLANNED, **home).document
    assert [write["args"] for write in planned["plan"]["writes"]] == [{"amount": 4}, {"amount": 1}]
    apply = ("runs", "apply", planned["run"][:8], "--tools", "shop.py")
    refused = gloveport(*apply, "--yes", **home)
    assert (refused.code, "the token of an approver" in refused.err, made(tmp_path)) == (5, True, [])
    agent = gloveport(*apply, "--yes", **home, GLOVEPORT_APPROVER_TOKEN="an-agent's-token")
    assert (agent.code, "not one of an approver" in agent.err, made(tmp_path)) == (5, True, [])
    with terminal(*apply, **home) as screen:
        screen.until(r"without asking\?")
        screen.press(b"y\r")
        assert (screen.rest()[0], made(tmp_path)) == (0, ["4", "1"])
    with terminal(*apply, "--yes", **home) as screen:
        code, text = screen.rest()
    assert (code, "was used already" in text, made(tmp_path)) == (5, True, ["4", "1"])
    (other, *_) = [
        run for run in gloveport("runs", "list", "--json", **home).document["runs"] if run["run"] != planned["run"]
    ]
    with terminal("runs", "apply", other["run"][:8], "--yes", **home) as screen:
        assert "has made no plan" in screen.rest()[1]


def test_a_run_is_exported_tested_and_imported_on_another_machine(home: dict[str, str], tmp_path: Path) -> None:
    allowed = {**home, "XDG_CONFIG_HOME": str(tmp_path / "allowing")}
    assert gloveport("policy", "set", "allow", "shop.*", "--yes", **allowed).code == 0
    assert gloveport("run", "--tools", "shop.py", "-e", PROGRAM, **allowed).code == 0
    (run,) = gloveport("runs", "--json", **home).document["runs"]
    assert gloveport("runs", "export", run["run"][:8], "run.json", **home).code == 0
    assert "exists" in gloveport("runs", "export", run["run"], "run.json", **home).err
    (tmp_path / "run.json").chmod(0o644)
    assert gloveport("runs", "export", run["run"], "run.json", "--force", **home).code == 0
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o600
    (tmp_path / "link.json").symlink_to(tmp_path / "shop.py")
    assert gloveport("runs", "export", run["run"], "link.json", "--force", **home).code == 2
    changed = (tmp_path / "run.json").read_text().replace('{\\"amount\\":4}', '{\\"amount\\":5}')
    (tmp_path / "changed.json").write_text(changed)
    (tmp_path / "other.json").write_text("{}")
    assert gloveport("runs", "test", "run.json", **home).code == 0
    tested = gloveport("runs", "test", "run.json", "changed.json", "other.json", **home)
    assert (tested.code, [line[0] for line in tested.out.splitlines()]) == (1, ["✓", "✗", "✗"])
    assert '"amount":4' in tested.out
    assert "1 passed, 2 failed" in tested.err
    document = json.loads((tmp_path / "run.json").read_text())
    document["steps"][0] = document["steps"][0].replace("begin", "start")
    (tmp_path / "reworded.json").write_text(json.dumps(document))
    reworded = gloveport("runs", "test", "reworded.json", **home)
    assert (reworded.code, "the same, but for frame" in reworded.out, "start" in reworded.out) == (0, True, True)

    elsewhere = {**home, "XDG_DATA_HOME": str(tmp_path / "elsewhere")}
    assert gloveport("runs", "import", "run.json", **elsewhere).code == 0
    assert "run-id-taken" in gloveport("runs", "import", "run.json", **elsewhere).err
    (found,) = gloveport("runs", "--json", **elsewhere).document["runs"]
    assert (found["run"], found["agent"], found["status"]) == (run["run"], "imported:default", "completed")
    assert gloveport("runs", "show", run["run"], "--json", **elsewhere).document["outcome"]["value"] == [4, "paid 4"]
    assert "the same" in gloveport("runs", "replay", run["run"], **elsewhere).err
    refused = gloveport("runs", "replay", run["run"], "--live-reads", "--tools", "shop.py", **elsewhere)
    assert "replayed from its record alone" in refused.err
    assert made(tmp_path) == ["4"]


def test_a_replay_with_live_reads_makes_no_write(home: dict[str, str], tmp_path: Path) -> None:
    allowed = {**home, "XDG_CONFIG_HOME": str(tmp_path / "allowing")}
    gloveport("policy", "set", "allow", "shop.*", "--yes", **allowed)
    assert gloveport("run", "--tools", "shop.py", "-e", PROGRAM, **allowed).code == 0
    (run,) = gloveport("runs", "--json", **home).document["runs"]
    replay = ("runs", "replay", run["run"], "--live-reads", "--tools", "shop.py")
    assert "the same" in gloveport(*replay, **home).err
    (tmp_path / "factor").write_text("3")
    differs = gloveport(*replay, **home)
    assert (differs.code, "replay-diverged" in differs.err, '"amount":6' in differs.err) == (1, True, True)
    assert made(tmp_path) == ["4"]


def test_the_logs_of_a_run_are_followed_and_it_is_cancelled_while_another_process_runs_it(
    home: dict[str, str], tmp_path: Path
) -> None:
    program = "console.log('begin'); console.warn('\\u001b[31mred'); await new Promise((r) => setTimeout(r, 60000))"
    with terminal("run", "--id", "long-one", "-e", program, **home) as running:
        running.until("red")
        with terminal("runs", "logs", "long", "-f", **home) as following:
            following.until(r"begin[\s\S]*red")
            refused = gloveport("runs", "resume", "long-one", **home)
            assert (refused.code, "another process runs long-one now" in refused.err) == (1, True)
            assert gloveport("runs", "cancel", "long-one", **home).code == 0
            code, rest = following.rest()
        assert (code, "the run has ended: cancelled" in rest) == (0, True)
        code, rest = running.rest()
    assert (code, "the run was cancelled by" in rest) == (130, True)
    shown = gloveport("runs", "logs", "long-one", "--json", **home)
    assert [line["text"] for line in shown.document["logs"]] == ["begin", "\x1b[31mred"]
    assert "\x1b" not in gloveport("runs", "logs", "long-one", **home).out
    taken = gloveport("run", "--id", "long-one", "-e", "1", **home)
    assert (taken.code, "run-id-taken" in taken.err) == (2, True)


def test_the_result_of_an_interrupted_write_is_recorded_by_a_person(home: dict[str, str], tmp_path: Path) -> None:
    store = tmp_path / "data" / "gloveport" / "store.sqlite"
    with closing(TokenStore(store)) as tokens:
        token = tokens.add("ada", "approver")
    asked = {"run": "r", "call": 1, "tool": "shop.pay", "args": {"amount": 4}, "agent": "default"}
    times = {"asked": time.time(), "expires": time.time() + 1000}
    unknown, ordinary = (ApprovalRequest(**asked, **times, is_unknown=is_unknown) for is_unknown in (True, False))
    with closing(ApprovalShelf(store)) as shelf:
        shelf.put(unknown, "host")
        shelf.put(ordinary, "host")
        answer = ("approvals", "approve", unknown.id, "--value", '{"id": 7}', "--yes")
        assert "has not taken the answer" in gloveport(*answer, GLOVEPORT_APPROVER_TOKEN=token, **home).err
        (given,) = shelf.answers("host")
    assert given.answer is not None
    assert (given.answer.happened, given.answer.value, given.answer.approver) == (True, {"id": 7}, "ada")
    refused = gloveport("approvals", "approve", unknown.id, "--value", "1", "--always", **home)
    assert (refused.code, "one call" in refused.err) == (2, True)
