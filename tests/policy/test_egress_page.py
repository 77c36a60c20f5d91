"""The page on egress says what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gloveport.policy.egress import Reach, client

PAGE = (Path(__file__).parents[2] / "docs" / "egress.md").read_text()


@pytest.mark.integration
def test_the_snippet_prints_what_the_page_shows() -> None:
    code, shown = re.findall(r"^```\w*\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout == shown


def test_the_limits_are_those_of_the_code() -> None:
    reach = Reach()
    for row in (
        f"| {reach.connect_seconds} s each for the connection and for the handshake |",
        f"| {reach.total_seconds} s, then `source-timeout` |",
        f"| {reach.max_bytes // 2**20} MiB, then `reply-too-large` |",
        f"| {reach.max_redirects} |",
        f"| {client._MAX_CONNECTIONS}, of them {client._MAX_IDLE_CONNECTIONS} idle, for {client._IDLE_SECONDS} s |",
    ):
        assert row in PAGE
