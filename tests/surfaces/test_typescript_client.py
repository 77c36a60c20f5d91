"""The TypeScript package works with this server. `make typescript` runs all of its tests, with the packages that it is made for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from gloveport.sandbox.engines.deno.engine import find_deno

pytestmark = pytest.mark.integration

PACKAGE = Path(__file__).parents[2] / "clients" / "typescript"
WS = Path(__file__).with_name("deno_ws.js")


def test_an_executor_of_the_package_does_what_codemode_expects_of_one(tmp_path: Path) -> None:
    imports = tmp_path / "imports.json"
    imports.write_text(json.dumps({"imports": {"ws": WS.as_uri()}}))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "DENO_DIR": str(tmp_path), "DENO_NO_PACKAGE_JSON": "1", "NO_COLOR": "1"}
    tests = [str(PACKAGE / "test" / name) for name in ("executor.test.ts", "values.test.ts")]
    done = subprocess.run(
        [find_deno(), "test", "--allow-all", "--no-check", "--no-lock", "--no-remote", f"--import-map={imports}", *tests],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "| 0 failed" in done.stdout
