"""Certificates are checked, against the name that was asked for; only a reach that says so goes without."""

import asyncio
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import httpcore2
import pytest
import trustme

from gloveport.errors import ToolError
from gloveport.policy.egress import Egress, Reach, Request
from tests.policy.servers import LOCAL, answering, ok, redirect, send, serving

pytestmark = pytest.mark.integration

UNVERIFIED = Reach(allow_private=True, verify_tls=False)


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[trustme.CA]:
    """A certificate authority that this machine trusts."""
    made = trustme.CA()
    made.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    return made


def context(issuer: trustme.CA, *names: str, expired: bool = False) -> ssl.SSLContext:
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issuer.issue_cert(*names, not_after=datetime(2020, 1, 1, tzinfo=UTC) if expired else None).configure_cert(made)
    return made


async def test_a_trusted_certificate_for_the_name_is_accepted_and_the_name_is_sent(authority: trustme.CA) -> None:
    tls = context(authority, "shop.example")
    asked: list[str | None] = []
    tls.sni_callback = lambda _, name, __: asked.append(name)
    async with serving(ok(b"sealed"), tls=tls) as server:
        request = Request("GET", f"https://shop.example:{server.port}/")
        reply = await send(request, LOCAL, resolve=answering(["127.0.0.1"]))
    assert reply.body == b"sealed"
    assert asked == ["shop.example"]
    assert f"\r\nHost: shop.example:{server.port}\r\n".encode() in server.requests[0]


async def test_an_address_is_checked_against_the_certificate_too(authority: trustme.CA) -> None:
    async with serving(ok(b"sealed"), tls=context(authority, "127.0.0.1")) as server:
        assert (await send(Request("GET", f"https://127.0.0.1:{server.port}/"))).body == b"sealed"


async def test_certificates_of_the_system_are_read_for_https_only_and_away_from_the_loop(
    authority: trustme.CA, monkeypatch: pytest.MonkeyPatch
) -> None:
    readers: list[threading.Thread] = []

    def read() -> ssl.SSLContext:
        readers.append(threading.current_thread())
        return made()

    made = httpcore2.default_ssl_context
    monkeypatch.setattr(httpcore2, "default_ssl_context", read)
    egress = Egress()
    async with serving(ok(b"open")) as server:
        assert (await egress.send(Request("GET", server.origin), LOCAL)).body == b"open"
    assert readers == []
    async with serving(ok(b"sealed"), tls=context(authority, "127.0.0.1")) as server:
        for _ in range(2):
            assert (await egress.send(Request("GET", f"https://127.0.0.1:{server.port}/"), LOCAL)).body == b"sealed"
    await egress.close()
    assert len(readers) == 1
    assert readers[0] is not threading.current_thread()


@pytest.mark.parametrize("wrong", ["another name", "expired", "self-made"])
async def test_a_certificate_that_does_not_fit_is_refused_unless_the_reach_says_so(
    authority: trustme.CA, wrong: str
) -> None:
    issuer = trustme.CA() if wrong == "self-made" else authority
    names = ["other.example"] if wrong == "another name" else ["localhost"]
    async with serving(ok(b"sealed"), tls=context(issuer, *names, expired=wrong == "expired")) as server:
        egress = Egress()
        request = Request("GET", f"https://localhost:{server.port}/")
        for _ in range(2):  # the second time there is an open connection that another reach made
            with pytest.raises(ToolError) as refusal:
                await egress.send(request, LOCAL)
            assert (refusal.value.code, refusal.value.retryable) == ("source-unreachable", False)
            assert "certificate of localhost is not trusted" in refusal.value.message
            assert "verify_tls" in (refusal.value.setting or "")
            assert "verify_tls" not in refusal.value.message + (refusal.value.hint or "")
            assert (await egress.send(request, UNVERIFIED)).body == b"sealed"
        await egress.close()
    assert len(server.requests) == 2


async def test_https_is_never_left_for_http(authority: trustme.CA) -> None:
    async with serving(ok()) as plain:
        for location in (f"http://localhost:{plain.port}/", f"HTTP://localhost:{plain.port}/"):
            async with serving(redirect(location), tls=context(authority, "localhost")) as server:
                with pytest.raises(ToolError, match="redirects from https to http") as refusal:
                    await send(Request("GET", f"https://localhost:{server.port}/"))
    assert refusal.value.code == "egress-denied"
    assert plain.requests == []


async def test_http_may_be_left_for_https(authority: trustme.CA) -> None:
    async with serving(ok(b"sealed"), tls=context(authority, "localhost")) as server:
        async with serving(redirect(f"https://localhost:{server.port}/")) as plain:
            assert (await send(Request("GET", plain.origin))).body == b"sealed"


async def test_a_server_without_tls_is_unreachable_by_https() -> None:
    async def plainly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(plainly, "127.0.0.1", 0)
    with pytest.raises(ToolError, match="TLS handshake") as failure:
        await send(Request("GET", f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/"))
    server.close()
    assert failure.value.code == "source-unreachable"


async def test_a_handshake_that_never_ends_is_left_at_the_deadline() -> None:
    async with serving(ok()) as server:
        reach = Reach(allow_private=True, connect_seconds=0.3)
        with pytest.raises(ToolError, match="accepted no connection") as failure:
            await send(Request("GET", f"https://127.0.0.1:{server.port}/"), reach)
    assert (failure.value.code, failure.value.retryable) == ("source-timeout", True)
