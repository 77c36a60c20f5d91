"""However a forbidden address is spelled, no connection to it is made; and it is the address that is refused, not the spelling."""

from ipaddress import IPv4Address

import pytest

from gloveport.errors import ToolError
from gloveport.policy.egress import Egress, Reach, Request
from tests.policy.servers import LOCAL, Dialled, answering, ok, send, serving, words


def spellings(address: str) -> list[str]:
    """The ways to write an IPv4 address that the system's resolver understands."""
    number = int(IPv4Address(address))
    a, b, c, d = IPv4Address(address).packed
    return [
        address,
        str(number),
        hex(number),
        hex(number).upper().replace("0X", "0x"),
        f"0{number:o}",
        f"{a}.{number & 0xFFFFFF}",
        f"{a}.{b}.{number & 0xFFFF}",
        f"{a:#x}.{b:#x}.{c:#x}.{d:#x}",
        f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"000{a:o}.{b:#x}.{number & 0xFFFF}",
        f"0x{a:08x}.{number & 0xFFFFFF:#x}",
    ]


def inside_six(address: str) -> list[str]:
    """The IPv6 addresses that hold an IPv4 address."""
    a, b, c, d = IPv4Address(address).packed
    high, low = f"{a << 8 | b:x}", f"{c << 8 | d:x}"
    return [
        f"[::ffff:{address}]",
        f"[::ffff:{high}:{low}]",
        f"[0:0:0:0:0:FFFF:{high}:{low}]",
        f"[::{address}]",
        f"[::{high}:{low}]",
        f"[::ffff:0:{address}]",
        f"[64:ff9b::{address}]",
        f"[64:ff9b::{high}:{low}]",
        f"[64:ff9b:1::{address}]",
        f"[2002:{high}:{low}::]",
        f"[2002:{high}:{low}::1]",
        f"[2600::5efe:{address}]",
        f"[2600::200:5efe:{high}:{low}]",
    ]


NEVER = words(
    "169.254.169.254 100.100.100.200 168.63.129.16 192.0.0.192 0.0.0.0 192.0.2.1 198.18.0.1 203.0.113.7 224.0.0.1 240.0.0.1 255.255.255.255"
)
PRIVATE = words("127.0.0.1 127.8.9.10 10.0.0.1 172.16.5.4 192.168.1.1 100.64.0.1")
FORBIDDEN = [spelling for address in NEVER + PRIVATE for spelling in spellings(address) + inside_six(address)]
OTHERS = words("""
localhost LOCALHOST [::1] [0:0:0:0:0:0:0:1] [0000::0001] [::] [fe80::1] [fec0::1] [fc00::1] [fd00:ec2::254] [ff02::1] [2001:db8::1]
[3fff::1] [5f00::1] [100::1] [2001::1] metadata.google.internal METADATA.google.internal metadata metadata.goog instance-data
""")

# Spellings that no judgement is needed for: our parser has no place for them.
UNREADABLE = words("""
①②⑦.⓪.⓪.① １２７.０.０.１ 127。0。0。1 127．0．0．1 127｡0｡0｡1 ⑯⑨.254.169.254 %31%32%37.0.0.1 127.0.0.%31 127.0.0.1%00 127.0.0.1%2f
localhost. 127.0.0.1. 169.254.169.254. [::1%lo] [::1%25lo] [fe80::1%25eth0] [::1 ::1] ::1 [127.0.0.1] [[::1]] [::ffff:127.0.0.1%25]
user@127.0.0.1 user:pass@127.0.0.1 example.com@127.0.0.1 127.0.0.1@example.com example.com:80@127.0.0.1 @127.0.0.1 :@127.0.0.1
1.1.1.1&@127.0.0.1 example.com\\127.0.0.1 127.0.0.1\\@example.com example.com%40127.0.0.1 example.com%00.evil
127.0.0.1:80:80 127.0.0.1:0 127.0.0.1:65536 127.0.0.1:99999 127.0.0.1:+80 127.0.0.1:８０ 127.0.0.1:0x50 127.0.0.1:-1 127..0.1 .localhost
-localhost localhost- ⓛⓞⓒⓐⓛⓗⓞⓢⓣ localhoſt ｌocalhost loc\u00adalhost local\u200bhost 127.0.0.1\u3002 [v1.fe80::a] [:::1] [::1]x [] \u2025
""")


async def refused(host: str, reach: Reach) -> ToolError:
    dialled = Dialled()
    with pytest.raises(ToolError) as refusal:
        await send(Request("GET", f"http://{host}/"), reach, connect_address=dialled)
    assert refusal.value.code == "egress-denied", refusal.value.message
    assert dialled.addresses == []
    return refusal.value


def test_there_are_many_spellings() -> None:
    assert len(set(FORBIDDEN + OTHERS + UNREADABLE)) >= 400


@pytest.mark.parametrize("host", FORBIDDEN + OTHERS)
async def test_a_forbidden_address_is_refused_however_it_is_spelled(host: str) -> None:
    error = await refused(host, Reach())
    assert "may not be reached" in error.message


@pytest.mark.parametrize("host", [text for address in NEVER for text in spellings(address) + inside_six(address)])
async def test_allow_private_opens_no_spelling_of_what_is_never_opened(host: str) -> None:
    error = await refused(host, LOCAL)
    assert error.hint is None


@pytest.mark.parametrize("host", UNREADABLE)
async def test_a_host_that_parsers_could_differ_about_is_refused_even_where_loopback_is_allowed(host: str) -> None:
    error = await refused(host, LOCAL)
    assert error.message.startswith("a URL was refused")


@pytest.mark.integration
@pytest.mark.parametrize("host", [*spellings("127.0.0.1"), "localhost", "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]"])
async def test_where_loopback_is_allowed_the_same_spellings_reach_it(host: str) -> None:
    async with serving(ok(b"canary")) as server:
        reply = await send(Request("GET", f"http://{host}:{server.port}/"), LOCAL)
    assert reply.body == b"canary"


@pytest.mark.integration
@pytest.mark.parametrize("host", spellings("8.8.8.8"))
async def test_the_same_spellings_of_a_public_address_lead_to_it(host: str) -> None:
    async with serving(ok(b"canary")) as server:
        egress = Egress(connect_address=(dialled := Dialled(server.port)))
        assert (await egress.send(Request("GET", f"http://{host}/"), Reach())).body == b"canary"
        await egress.close()
    assert dialled.addresses == ["8.8.8.8"]


async def test_a_refusal_names_host_address_rule_and_the_way_to_allow_it() -> None:
    egress = Egress(resolve=answering(["10.1.2.3"]))
    with pytest.raises(ToolError) as refusal:
        await egress.send(Request("GET", "https://wiki.corp.example/"), Reach())
    assert refusal.value.message == "wiki.corp.example (10.1.2.3) may not be reached: private, 10.0.0.0/8"
    assert (refusal.value.setting or "").startswith("to allow it, set allow_private = true in [sources.NAME]")
    assert not refusal.value.retryable


async def test_one_forbidden_answer_among_public_ones_refuses_the_host() -> None:
    for answers in (["8.8.8.8", "127.0.0.1"], ["127.0.0.1", "8.8.8.8"], ["2606:4700::1", "8.8.8.8", "fe80::1"]):
        dialled = Dialled()
        with pytest.raises(ToolError, match="may not be reached"):
            await send(
                Request("GET", "http://rebind.example/"), Reach(), resolve=answering(answers), connect_address=dialled
            )
        assert dialled.addresses == []


@pytest.mark.integration
async def test_a_name_is_looked_up_once_and_the_judged_address_is_dialled() -> None:
    async with serving(ok(b"", "Connection: close")) as server:
        dialled = Dialled(server.port)
        egress = Egress(
            resolve=answering(["8.8.8.8"], ["127.0.0.1"], ["8.8.4.4"], ["169.254.169.254"]), connect_address=dialled
        )
        request = Request("GET", "http://rebind.example/")
        assert (await egress.send(request, Reach())).status == 200
        with pytest.raises(ToolError, match=r"127\.0\.0\.1"):
            await egress.send(request, Reach())
        assert (await egress.send(request, Reach())).status == 200
        with pytest.raises(ToolError, match=r"169\.254\.169\.254"):
            await egress.send(request, LOCAL)
    assert dialled.addresses == ["8.8.8.8", "8.8.4.4"]
    assert b"\r\nHost: rebind.example\r\n" in server.requests[0].replace(b"GET / HTTP/1.1\r\n", b"\r\n")


@pytest.mark.integration
async def test_the_next_address_is_tried_when_one_takes_no_connection() -> None:
    async with serving(ok(b"second"), host="127.0.0.2") as server:
        egress = Egress(resolve=answering(["127.0.0.3", "127.0.0.2"]))
        reply = await egress.send(Request("GET", f"http://two.example:{server.port}/"), LOCAL)
        await egress.close()
    assert reply.body == b"second"


@pytest.mark.integration
async def test_a_connection_opened_for_one_reach_serves_no_other() -> None:
    async with serving(ok()) as server:
        egress = Egress()
        request = Request("GET", f"{server.origin}/")
        await egress.send(request, LOCAL)
        with pytest.raises(ToolError, match="loopback"):
            await egress.send(request, Reach())
        await egress.close()
