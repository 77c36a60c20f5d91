"""Every address that is not a public one is refused, in each form that holds it."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gloveport.policy.egress.addresses import is_metadata_name, refusal
from tests.policy.servers import words

# What `allow_private` opens, by one address at each end.
OPENED = words("""
127.0.0.0 127.0.0.1 127.255.255.255 10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255
100.64.0.0 100.127.255.255 ::1 fc00:: fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff fd12:3456::1
::ffff:127.0.0.1 ::ffff:10.1.2.3 ::ffff:192.168.0.1 64:ff9b::7f00:1 64:ff9b::10.0.0.1
""")

# What nothing opens.
NEVER = words("""
169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254
fd00:ec2::23 fd00:42::42 fd20:ce::254 fd00:c1::a9fe:a9fe ::ffff:169.254.169.254 ::ffff:100.100.100.200
64:ff9b::169.254.169.254 64:ff9b::100.100.100.200 ::ffff:0:169.254.169.254
0.0.0.0 0.0.0.1 0.255.255.255 192.0.0.0 192.0.0.8 192.0.0.170 192.0.2.1 198.51.100.1 203.0.113.255 192.88.99.1
198.18.0.0 198.19.255.255 224.0.0.0 224.0.0.1 233.252.0.1 239.255.255.255 240.0.0.0 250.1.2.3 255.255.255.254
255.255.255.255 :: ::2 ::7f00:1 ::127.0.0.1 ::10.0.0.1 ::169.254.169.254 ::8.8.8.8 ::ffff:0.0.0.0 ::ffff:224.0.0.1
64:ff9b:1::7f00:1 64:ff9b:1::8.8.8.8 64:ff9b:1:7f00:0:100:: 64:ff9b::0.0.0.0 64:ff9b:2::1
2002:7f00:1:: 2002:7f00:1::1 2002:a00:1:: 2002:c0a8:101:: 2002:a9fe:a9fe:: 2002:6464:64c8:: 2002:e000:1:: 2002::
2001::1 2001:0:4136:e378:8000:63bf:80ff:fffe 2001:0:7f00:1:: 2001:2::1 2001:10::1 2001:20::1 2001:1ff:ffff::
2001:db8::1 3fff::1 3fff:fff:: 5f00::1 100::1 100:0:0:1::1 fe80::1 fe80::5efe:7f00:1 febf::1 fec0::1 feff::1 ff00::
ff02::1 ff0e::1 2600::5efe:7f00:1 2600::200:5efe:a00:1 2600::5efe:169.254.169.254 2600:1:2:3:0:5efe:127.0.0.1 200::1
400::1 800::1 1000::1 4000::1 6000::1 8000::1 a000::1 c000::1 e000::1 f000::1 f800::1 fe00::1 ::ffff:ffff:0:0 0:0:1::1
fe80::1%eth0 ::ffff:255.255.255.255 ::ffff:0:127.0.0.1 ::ffff:0:8.8.8.8
""")

PUBLIC = words("""
8.8.8.8 1.1.1.1 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 169.253.255.255 169.255.0.0
172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 192.0.1.0 192.0.3.0 198.17.255.255 198.20.0.0 223.255.255.255
168.63.129.15 2000:: 2600::1 2606:4700:4700::1111 2a00:1450::1 3ffe::1 2001:200::1 2001:4860:4860::8888 2001:db7::1
2001:db9::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 2002:808:808::1 2600::5efe:8.8.8.8 3fff:1000::1 3fff:ffff::
""")


@pytest.mark.parametrize("address", OPENED)
def test_a_private_address_is_refused_until_it_is_opened(address: str) -> None:
    rule = refusal(address, allow_private=False)
    assert rule is not None
    assert rule.kind == "private"
    assert refusal(address, allow_private=True) is None


@pytest.mark.parametrize("address", NEVER)
def test_what_is_neither_public_nor_private_is_always_refused(address: str) -> None:
    assert refusal(address, allow_private=False) is not None
    assert refusal(address, allow_private=True) is not None


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_reached(address: str) -> None:
    assert refusal(address, allow_private=False) is None


def test_the_lists_are_long_and_hold_nothing_twice() -> None:
    addresses = OPENED + NEVER + PUBLIC
    assert len(addresses) == len(set(addresses))
    assert len(OPENED + NEVER) >= 80


@given(st.ip_addresses(v=4).filter(lambda inner: int(inner) != 1))  # ::1 is loopback, and not a form of 0.0.0.1
def test_a_form_that_holds_an_ipv4_address_is_never_judged_more_kindly_than_it(inner: IPv4Address) -> None:
    number = int(inner)
    forms = [0xFFFF << 32 | number, 0xFFFF << 48 | number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80]
    forms += [0x64FF9B0001 << 80 | number, number, 0x2600 << 112 | 0x5EFE << 32 | number]
    for allow_private in (False, True):
        if refusal(str(inner), allow_private=allow_private) is not None:
            for form in forms:
                assert refusal(str(IPv6Address(form)), allow_private=allow_private) is not None, IPv6Address(form)


# Written down once more, from IANA's special-purpose registries, so that a slip in the table shows.
REGISTRY = [IPv4Network(text) for text in words("""
0.0.0.0/8 10.0.0.0/8 100.64.0.0/10 127.0.0.0/8 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.88.99.0/24
192.168.0.0/16 198.18.0.0/15 198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 168.63.129.16/32""")]  # fmt: skip


@given(st.one_of(st.ip_addresses(v=4), st.sampled_from(REGISTRY).flatmap(lambda network: st.ip_addresses(network=network))))
def test_ipv4_is_refused_exactly_where_the_registries_say_so(address: IPv4Address) -> None:
    special = any(address in network for network in REGISTRY)
    assert (refusal(str(address), allow_private=False) is not None) == special


@given(st.ip_addresses(v=6))
def test_ipv6_outside_global_unicast_is_refused_unless_it_translates_a_public_ipv4_address(address: IPv6Address) -> None:
    if address in IPv6Network("2000::/3"):
        return
    translated = any(address in IPv6Network(prefix) for prefix in ("::ffff:0:0/96", "64:ff9b::/96"))
    public = refusal(str(address), allow_private=False) is None
    inner = str(ip_address(int(address) & 0xFFFFFFFF))
    assert public == (translated and refusal(inner, allow_private=False) is None)


@pytest.mark.parametrize(
    "name",
    [
        "metadata.google.internal",
        "METADATA.GOOGLE.INTERNAL",
        "metadata.google.internal.",
        "metadata",
        "metadata.goog",
        "a.metadata.google.internal",
        "instance-data",
    ],
)
def test_names_of_metadata_services_are_known(name: str) -> None:
    assert is_metadata_name(name)


@pytest.mark.parametrize("name", ["google.internal", "mymetadata.google.internal.example.org", "metadata.example.org"])
def test_other_names_are_not_taken_for_them(name: str) -> None:
    assert not is_metadata_name(name)
