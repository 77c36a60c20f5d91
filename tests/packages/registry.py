"""A small registry of npm and PyPI on loopback, whose packages a test makes; it also counts what is fetched."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def make_wheel(name: str, version: str, files: Mapping[str, str | bytes], *, requires: tuple[str, ...] = ()) -> bytes:
    """Return a wheel with these files."""
    made = io.BytesIO()
    lines = [f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}", *(f"Requires-Dist: {each}" for each in requires)]
    with zipfile.ZipFile(made, "w") as archive:
        for path, content in files.items():
            archive.writestr(zipfile.ZipInfo(path), content)
        archive.writestr(zipfile.ZipInfo(f"{name}-{version}.dist-info/METADATA"), "\n".join(lines) + "\n")
    return made.getvalue()


def make_tarball(files: Mapping[str, str | bytes], *more: tarfile.TarInfo) -> bytes:
    """Return a tarball of npm with these files, and other members."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for path, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            member = tarfile.TarInfo(f"package/{path}")
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
        for member in more:
            archive.addfile(member)
    return made.getvalue()


@dataclass
class Registry:
    """What the registry has. `fetched` are the paths that were asked for; `index` is what it says about any package."""

    base: str = ""
    wheels: dict[str, dict[str, bytes]] = field(default_factory=dict)  # by name and file name
    tarballs: dict[str, dict[str, tuple[bytes, dict[str, Any]]]] = field(default_factory=dict)  # by name and version
    fetched: list[str] = field(default_factory=list)
    corrupted: bool = False
    as_json: bool = True
    index: tuple[str, bytes] | None = None
    token: str = ""

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which Gloveport uses this registry."""
        return {
            "NPM_CONFIG_REGISTRY": f"{self.base}/npm/",
            "PIP_INDEX_URL": f"{self.base}/pypi",
            "PIP_CONFIG_FILE": os.devnull,
        }

    def wheel(
        self, name: str, version: str, files: Mapping[str, str | bytes], *requires: str, tag: str = "py3-none-any"
    ) -> None:
        """Publish a wheel."""
        self.wheels.setdefault(name, {})[f"{name}-{version}-{tag}.whl"] = make_wheel(
            name, version, files, requires=requires
        )

    def npm(self, name: str, version: str, files: Mapping[str, str | bytes], **about: Any) -> None:
        """Publish a package of npm."""
        manifest = json.dumps({"name": name, "version": version, **about})
        self.tarballs.setdefault(name, {})[version] = make_tarball({"package.json": manifest, **files}), about

    def answer(self, path: str) -> tuple[str, bytes] | None:
        """Return the type and body of an answer."""
        self.fetched.append(path)
        if self.index is not None and not path.startswith(("/tar/", "/whl/")):
            return self.index
        place, _, rest = path[1:].partition("/")
        if place == "npm" and (name := rest.replace("%2f", "/")) in self.tarballs:
            return "application/json", json.dumps(self._document(name)).encode()
        if place == "tar":
            name, _, version = rest.rpartition("/")
            return "application/octet-stream", self._sent(self.tarballs[name][version][0])
        if place == "pypi" and (name := rest.strip("/")) in self.wheels:
            return self._index(name)
        if place == "whl":
            name, _, file = rest.partition("/")
            return "application/octet-stream", self._sent(self.wheels[name][file])
        return None

    def _sent(self, data: bytes) -> bytes:
        return data + b"x" if self.corrupted else data

    def _document(self, name: str) -> dict[str, Any]:
        versions = {}
        for version, (data, about) in self.tarballs[name].items():
            integrity = f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"
            dist = {"tarball": f"{self.base}/tar/{name}/{version}", "integrity": integrity}
            versions[version] = {"name": name, "version": version, "dist": dist, **about}
        return {"name": name, "dist-tags": {"latest": [*versions][-1]}, "versions": versions}

    def _index(self, name: str) -> tuple[str, bytes]:
        files = [
            {"filename": file, "url": f"../../whl/{name}/{file}", "hashes": {"sha256": hashlib.sha256(data).hexdigest()}}
            for file, data in self.wheels[name].items()
        ]
        if self.as_json:
            return "application/vnd.pypi.simple.v1+json", json.dumps({"name": name, "files": files}).encode()
        links = "".join(f'<a href="{f["url"]}#sha256={f["hashes"]["sha256"]}">{f["filename"]}</a>' for f in files)  # pyright: ignore
        return "text/html", f"<!DOCTYPE html><body>{links}</body>".encode()


@contextmanager
def serve(registry: Registry) -> Iterator[Registry]:
    """Serve a registry on loopback."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            allowed = not registry.token or self.headers["Authorization"] == registry.token
            found = registry.answer(self.path) if allowed else None
            self.send_response(401 if not allowed else 404 if found is None else 200)
            kind, body = found or ("text/plain", b"")
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    registry.base = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
