"""The lines that a server prints for runs and calls."""

import io
import shlex
import subprocess
import sys
import threading
from datetime import datetime
from pathlib import Path

import pytest

from gloveport.surfaces.activity_log import MAX_QUEUED_LINES, Activity, ActivityLog
from gloveport.surfaces.terminal import Stream
from gloveport.types import CallRecord

CALL = Activity("call", "an agent", "run-1", "shop.orders.list", "ok", 0.25)


class Unread(io.StringIO):
    """A file that takes nothing until it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.writing, self.read_on = threading.Event(), threading.Event()

    def write(self, text: str) -> int:
        self.writing.set()
        assert self.read_on.wait(10)
        return super().write(text)


def _clock() -> datetime:
    return datetime(2026, 5, 4, 3, 2, 1)


def test_a_line_has_the_time_the_agent_the_tool_the_status_and_the_duration() -> None:
    file = io.StringIO()
    log = ActivityLog(Stream(file, False, False), "text", _clock)
    log.record(CALL)
    log.close()
    assert file.getvalue() == "03:02:01  an agent    shop.orders.list  ok  250 ms\n"


def test_the_person_at_the_server_sees_what_could_be_changed() -> None:
    file = io.StringIO()
    why = {"error": "denied: it writes", "origin": "gloveport", "setting": "set `writes`\x1b[2J"}
    refused = CallRecord(1, "shop.pay", {}, "failed", 0, 0.25, **why)
    for form in ("text", "json"):
        log = ActivityLog(Stream(file, False, False), form, _clock)
        log.record(Activity.of_call("an agent", "run-1", refused))
        log.close()
    text, json = file.getvalue().splitlines()
    assert text == "03:02:01  an agent    shop.pay  failed  250 ms  denied: it writes  (setting: set `writes`\\x1b[2J)"
    assert '"setting":"set `writes`' in json


def test_a_client_can_not_control_the_terminal_or_flood_a_line() -> None:
    file = io.StringIO()
    log = ActivityLog(Stream(file, False, False), "text", _clock)
    log.record(Activity("run", "\x1b[2J" + "x" * 10_000, "run-1", "execute", "completed", 1, 0))
    log.close()
    assert "\x1b" not in file.getvalue()
    assert len(file.getvalue()) < 200


def test_a_reader_that_stops_stops_nothing_and_learns_how_many_lines_it_lost() -> None:
    file = Unread()
    log = ActivityLog(Stream(file, False, False), "text", _clock)
    log.record(CALL)
    assert file.writing.wait(10)  # the first line is out of the queue
    for _ in range(MAX_QUEUED_LINES + 7):
        log.record(CALL)
    file.read_on.set()
    log.close()
    assert file.getvalue().count("shop.orders.list") == MAX_QUEUED_LINES + 1
    assert file.getvalue().endswith("\n7 lines were lost\n")


@pytest.mark.integration
def test_a_warning_shows_its_commands_as_they_work_when_pasted_and_hides_no_character() -> None:
    script = (
        "import logging\n"
        "from gloveport.surfaces.activity_log import log_warnings\n"
        "log_warnings()\n"
        "logging.getLogger('gloveport').warning('\\x1b[2Jmissing; `%s` installs it', 'pip install x')\n"
    )
    command, place = [sys.executable, "-c", script], {"PATH": ""}
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, cwd="/usr", env=place).stderr
    pip = shlex.quote(str(Path(sys.executable).with_name("pip")))
    assert shown == f"WARNING gloveport: \\x1b[2Jmissing; `{pip} install x` installs it\n"
