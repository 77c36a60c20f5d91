"""`make schemathesis` sends requests that schemathesis makes from the API's own document, as every role."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

TOOLS = str(Path(__file__).parents[1] / "examples" / "demo_tools.py")
COMMAND = [sys.executable, "-m", "gloveport.surfaces.cli.main"]
SCHEMATHESIS = Path(sys.executable).parent / "st"
TESTER = "tester"  # the beginning of the names that hold tokens
ROLES = ("approver", "admin", "host")  # beside that of the server's own token, agent
EXAMPLES = os.environ.get("EXAMPLES", "60")


def main() -> int:
    """Serve the demo tools, and try the API with the token of each role; return the exit code of the first that fails."""
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "HOME": home, "XDG_DATA_HOME": f"{home}/data", "XDG_CONFIG_HOME": f"{home}/config"}
        tokens = {role: _token(role, env) for role in ROLES}
        settings = Path(home) / "gloveport.toml"
        settings.write_text(f"[agents.{TESTER}-host]\n")
        server = subprocess.Popen(
            [*COMMAND, "serve", "--json", "--quiet", "--port", "0", "--config", str(settings), TOOLS],
            env=env,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert server.stdout is not None
            about = json.loads(server.stdout.readline())
            tokens = {"agent": Path(about["token_file"]).read_text().strip(), **tokens}
            return next((code for role, token in tokens.items() if (code := _try(role, about["url"], token, home))), 0)
        finally:
            server.terminate()
            server.wait(60)


def _token(role: str, env: dict[str, str]) -> str:
    """Make the token of a role, at a terminal: it takes a person."""
    ours, theirs = pty.openpty()
    command = [*COMMAND, "agents", "add", f"{TESTER}-{role}", "--role", role, "--json"]
    made = subprocess.run(command, env=env, stdin=theirs, stdout=subprocess.PIPE, text=True, check=True, timeout=60)
    os.close(ours)
    os.close(theirs)
    return json.loads(made.stdout)["token"]


def _try(role: str, url: str, token: str, folder: str) -> int:
    print(f"as {role}", flush=True)
    headers = {"Authorization": f"Bearer {token}"}
    request = urllib.request.Request(f"{url}/v1/openapi.json", headers=headers)
    document = Path(folder) / "openapi.json"
    with urllib.request.urlopen(request, timeout=60) as reply:
        document.write_bytes(reply.read())
    # A stream of events ends with its run: a client with a deadline of its own tests it (tests/surfaces/test_api.py).
    command = [str(SCHEMATHESIS), "run", str(document), "--url", url, "-H", f"Authorization: Bearer {token}"]
    command += ["--max-examples", EXAMPLES, "--exclude-path-regex", "events$", "--no-color"]
    command += ["--request-timeout", "60"]  # the first check of types waits for its checker
    hooks = {"SCHEMATHESIS_HOOKS": "interop.schemathesis_hooks", "PYTHONPATH": str(Path(__file__).parents[1])}
    return subprocess.run(command, check=False, cwd=folder, env={**os.environ, **hooks}).returncode


if __name__ == "__main__":
    sys.exit(main())
