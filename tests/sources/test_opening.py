"""How sources are opened, whatever their kind."""

import subprocess
import sys

import pytest

pytestmark = pytest.mark.integration

# Which modules of libraries are loaded by the thread that runs the event loop, while a source that is not there is opened.
LOADING = """
import asyncio, sys, threading
import gloveport.policy.egress.client
from gloveport.config import SourceConfig
from gloveport.errors import SourceError
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.sources.opening import open_source
from gloveport.sources.context import SourceContext
from pathlib import Path

class Watch:
    def find_spec(self, name, path=None, target=None):
        if watching and threading.current_thread() is threading.main_thread():
            print(name)

async def main():
    global watching
    egress = gloveport.policy.egress.client.Egress()
    outside = SourceContext(egress, EnvironmentCredentials({}, {}), Path("/nonexistent"), tasks=None)
    location = ("/nonexistent/command",) if sys.argv[1] == "mcp" else "/nonexistent/definition"
    config = SourceConfig("far", sys.argv[1], location, base_url="https://example.com")
    await asyncio.to_thread(int)  # which loads what threads need
    watching = True
    try:
        await open_source(config, outside)
    except SourceError:
        watching = False

watching = False
sys.meta_path.insert(0, Watch())
asyncio.run(main())
"""


@pytest.mark.parametrize("kind", ["openapi", "graphql", "mcp"])
def test_what_a_kind_of_source_needs_is_not_loaded_by_the_event_loop(kind: str) -> None:
    ran = subprocess.run([sys.executable, "-c", LOADING, kind], check=False, capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == []


COMPILERS = """
import sys
import gloveport.sources.graphql.compile.compiler
import gloveport.sources.graphql.compile.definition
import gloveport.sources.mcp.compile.tools
import gloveport.sources.openapi.compile.task
print(*(name for name in sys.modules if name.startswith(("gloveport.policy", "gloveport.sandbox", "httpx2"))))
"""


def test_the_compilers_of_definitions_load_no_egress_and_no_credentials() -> None:
    ran = subprocess.run([sys.executable, "-c", COMPILERS], check=False, capture_output=True, text=True, timeout=60)
    assert (ran.returncode, ran.stdout.split()) == (0, []), ran.stderr
