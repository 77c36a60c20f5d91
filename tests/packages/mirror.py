"""A mirror of npm and PyPI on loopback: each file comes from the public registry, once, and links lead to the mirror.

`make packages` measures through it, so that it works where only a proxy knows the registries' addresses.
`python -m tests.packages.mirror` runs it alone.
"""

from __future__ import annotations

import os
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PLACES = {
    "npm": "https://registry.npmjs.org/",
    "pypi": "https://pypi.org/simple/",
    "files": "https://files.pythonhosted.org/",
}


class Mirror(BaseHTTPRequestHandler):
    """Passes GETs on."""

    def do_GET(self) -> None:
        place, _, rest = self.path[1:].partition("/")
        request = urllib.request.Request(PLACES[place] + rest, headers={"Accept": self.headers["Accept"]})
        try:
            with urllib.request.urlopen(request, timeout=120) as reply:
                status, kind, body = 200, reply.headers["Content-Type"], reply.read()
        except urllib.error.HTTPError as error:
            status, kind, body = error.code, "text/plain", b""
        if place != "files" and not rest.endswith(".tgz"):
            for name, url in PLACES.items():
                body = body.replace(url.encode(), f"http://{self.headers['Host']}/{name}/".encode())
        self.send_response(status)
        self.send_header("Content-Type", kind or "application/octet-stream")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@contextmanager
def mirror() -> Iterator[dict[str, str]]:
    """Serve the mirror, and give the environment in which pip, npm and Gloveport use it."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Mirror)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    base = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield {"NPM_CONFIG_REGISTRY": f"{base}/npm/", "PIP_INDEX_URL": f"{base}/pypi/", "PIP_CONFIG_FILE": os.devnull}
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    import subprocess
    import sys

    with mirror() as environment:  # python -m tests.packages.mirror gloveport packages add npm:jszip
        sys.exit(subprocess.run(sys.argv[1:], env={**os.environ, **environment}, check=False).returncode)
