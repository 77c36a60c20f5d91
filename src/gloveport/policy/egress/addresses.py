"""The addresses that a request may be sent to: our own table, the same on every Python (N1-N3).

`ipaddress.is_global` is not used: its answers differ between Pythons, and 3.11 calls `64:ff9b::7f00:1`, `fec0::1` and
`224.0.0.1` global. Of IPv6, only global unicast, and IPv4-mapped and NAT64 forms of public IPv4 addresses, are allowed.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Literal


@dataclass(frozen=True, slots=True)
class AddressRule:
    """Why an address is refused. `allow_private` allows those of the kind `private`; nothing allows the others."""

    what: str
    network: str
    kind: Literal["private", "never"] = "never"

    def __str__(self) -> str:
        return f"{self.what}, {self.network}"


# The first rule that matches an address counts, so a metadata address inside a private network is never allowed.
_RULES4 = (
    AddressRule("a cloud metadata address", "100.100.100.200/32"),
    AddressRule("a cloud metadata address", "168.63.129.16/32"),
    AddressRule("a cloud metadata address", "192.0.0.192/32"),
    AddressRule("link-local, used for cloud metadata", "169.254.0.0/16"),
    AddressRule("loopback", "127.0.0.0/8", "private"),
    AddressRule("private", "10.0.0.0/8", "private"),
    AddressRule("private", "172.16.0.0/12", "private"),
    AddressRule("private", "192.168.0.0/16", "private"),
    AddressRule("shared by a provider's customers", "100.64.0.0/10", "private"),
    AddressRule("this host", "0.0.0.0/8"),
    AddressRule("protocol assignments", "192.0.0.0/24"),
    AddressRule("documentation", "192.0.2.0/24"),
    AddressRule("documentation", "198.51.100.0/24"),
    AddressRule("documentation", "203.0.113.0/24"),
    AddressRule("6to4 relays", "192.88.99.0/24"),
    AddressRule("benchmarking", "198.18.0.0/15"),
    AddressRule("multicast", "224.0.0.0/4"),
    AddressRule("broadcast", "255.255.255.255/32"),
    AddressRule("reserved", "240.0.0.0/4"),
)
_RULES6 = (
    AddressRule("a cloud metadata address", "fd00:ec2::/32"),
    AddressRule("a cloud metadata address", "fd00:42::42/128"),
    AddressRule("a cloud metadata address", "fd00:c1::a9fe:a9fe/128"),
    AddressRule("a cloud metadata address", "fd20:ce::254/128"),
    AddressRule("loopback", "::1/128", "private"),
    AddressRule("unique local", "fc00::/7", "private"),
    AddressRule("unspecified", "::/128"),
    AddressRule("IPv4-compatible", "::/96"),
    AddressRule("NAT64 for local use", "64:ff9b:1::/48"),
    AddressRule("discarded", "100::/64"),
    AddressRule("protocol assignments and Teredo", "2001::/23"),
    AddressRule("documentation", "2001:db8::/32"),
    AddressRule("documentation", "3fff::/20"),
    AddressRule("segment routing", "5f00::/16"),
    AddressRule("link-local", "fe80::/10"),
    AddressRule("site-local", "fec0::/10"),
    AddressRule("multicast", "ff00::/8"),
)
_TABLE4 = tuple((IPv4Network(rule.network), rule) for rule in _RULES4)
_TABLE6 = tuple((IPv6Network(rule.network), rule) for rule in _RULES6)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_NOT_GLOBAL = AddressRule("not global unicast", "outside 2000::/3")
# In these networks the address that is reached is the IPv4 address in the last 32 bits.
_TRANSLATED = tuple(map(IPv6Network, ("::ffff:0:0/96", "64:ff9b::/96")))
_SIX_TO_FOUR = IPv6Network("2002::/16")
_ISATAP = frozenset({0x0000_5EFE, 0x0200_5EFE})

# These names mean a metadata service, whatever they resolve to: a cloud's resolver may give an address that is not listed.
_METADATA_NAMES = ("metadata.google.internal", "metadata.goog", "metadata", "instance-data", "instance-data.ec2.internal")


def refusal(address: str, *, allow_private: bool) -> AddressRule | None:
    """Return the rule that refuses an address in canonical form, or None when requests may go there."""
    rule = _rule(ip_address(address.partition("%")[0]))
    return None if rule is None or (allow_private and rule.kind == "private") else rule


def is_metadata_name(host: str) -> bool:
    """Return whether a host name alone means a cloud's metadata service."""
    name = host.lower().rstrip(".")
    return name in _METADATA_NAMES or name.endswith((".metadata.google.internal", ".metadata.goog"))


def _rule(address: IPv4Address | IPv6Address) -> AddressRule | None:
    if isinstance(address, IPv4Address):
        return next((rule for network, rule in _TABLE4 if address in network), None)
    number = int(address)
    inner = IPv4Address(number & 0xFFFF_FFFF)
    if any(address in network for network in _TRANSLATED):
        return _rule(inner)
    listed = next((rule for network, rule in _TABLE6 if address in network), None)
    if listed is not None:
        return listed
    if address not in _GLOBAL_UNICAST:
        return _NOT_GLOBAL
    if address in _SIX_TO_FOUR:
        return _tunnelled(IPv4Address(number >> 80 & 0xFFFF_FFFF), "6to4")
    if number >> 32 & 0xFFFF_FFFF in _ISATAP:
        return _tunnelled(inner, "ISATAP")
    return None


def _tunnelled(inner: IPv4Address, way: str) -> AddressRule | None:
    """Return the rule for the end of a tunnel, which must be public: `allow_private` does not allow tunnels."""
    rule = _rule(inner)
    return rule and AddressRule(f"{way} to {inner}, {rule.what}", rule.network)
