"""URLs and addresses: every parser reads an accepted URL alike, and forbidden addresses are refused (N1, N2, N3, N8)."""

from __future__ import annotations

import ipaddress
from urllib.parse import urljoin, urlsplit

from fuzz.mutation import mutate_bytes
from fuzz.target import BrokenPromise, Target
from gloveport.errors import ToolError
from gloveport.policy.egress.addresses import refusal
from gloveport.urls import Url, join, parse

SEEDS = (
    b"https://api.example.com/v1/things?q=a%20b&x[]=1#part",
    b"http://127.0.0.1:8080/",
    b"http://[::ffff:127.0.0.1]/a",
    b"http://1.1.1.1 &@2.2.2.2# @3.3.3.3/",
    b"HTTPS://xn--bcher-kva.example:443//a/../b",
    b"../../etc/passwd?x#y",
    b"//evil.example/a",
    b"http://0x7f.1/",
)
WORDS = b"http:// https:// // @ : # ? \\ [ ] %00 %2f .. . 127.0.0.1 ::1 0x7f 2130706433 \xe2\x91\xa0 \xef\xbc\x8e xn-- \t \r\n ; , 65536 64:ff9b::".split(
    b" "
)
BASE = parse("https://api.example.com:8443/v1/things?page=2")


def judge(data: bytes) -> None:
    """Require a refusal, or a URL that the standard library reads alike and that survives a round trip."""
    text = data.decode("utf-8", "replace")
    for read in (lambda: parse(text), lambda: join(BASE, text)):
        try:
            url = read()
        except ToolError as error:
            if error.code != "egress-denied":
                raise
            continue
        _judge_url(url)
    try:
        joined, theirs = join(BASE, text), urlsplit(urljoin(str(BASE), text))
    except (ToolError, ValueError):
        return
    if joined.host != _host(theirs.hostname or ""):
        raise BrokenPromise(f"we connect to {joined.host!r}, the standard library to {theirs.hostname!r}")


def _judge_url(url: Url) -> None:
    text = str(url)
    if parse(text) != url:
        raise BrokenPromise(f"{url!r} is written as {text!r}, which reads as {parse(text)!r}")
    theirs = urlsplit(text)
    seen = (theirs.scheme, _host(theirs.hostname or ""), theirs.port or {"http": 80, "https": 443}[theirs.scheme])
    if seen != (url.scheme, url.host, url.port) or theirs.username is not None:
        raise BrokenPromise(f"we read {url!r}, the standard library {theirs!r}")
    if not text.isascii() or any(character <= " " or character == "\x7f" for character in text):
        raise BrokenPromise(f"{text!r} is not valid in a request line")


def _host(host: str) -> str:
    try:
        return str(ipaddress.IPv6Address(host))
    except ValueError:
        return host


def judge_address(data: bytes) -> None:
    """Require that no spelling of a forbidden address, and no address that embeds one, is allowed."""
    address = (
        ipaddress.ip_address(data[:16].ljust(16, b"\0")) if len(data) > 4 else ipaddress.ip_address(data.ljust(4, b"\0"))
    )
    if refusal(str(address), allow_private=False) is not None:
        return
    for one in _led_to(address):
        closed = (one.is_private, one.is_loopback, one.is_link_local, one.is_multicast, one.is_reserved, one.is_unspecified)
        if any(closed):
            raise BrokenPromise(f"{address} is allowed, and leads to {one}")


def _led_to(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> list[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    """Return the addresses embedded in one, as the standard library reads it, or the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in NAT64:
        found.append(ipaddress.IPv4Address(address.packed[-4:]))
    return [one for one in found if one is not None] or [address]


NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
ADDRESSES = tuple(
    ipaddress.ip_address(text).packed
    for text in (
        "8.8.8.8",
        "127.0.0.1",
        "::ffff:10.0.0.1",
        "2002:7f00:1::",
        "64:ff9b::7f00:1",
        "2606:4700::1",
        "fe80::1",
        "2001::1",
    )
)
mutate = mutate_bytes(WORDS)
TARGETS = (
    Target("url", judge, mutate, SEEDS, ("urls.py",)),
    Target("address", judge_address, mutate_bytes(ADDRESSES), ADDRESSES, ("policy/egress/addresses.py",), max_bytes=16),
)
