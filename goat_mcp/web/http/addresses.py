"""Which IP addresses are public: the standard library's word for it, and what it leaves out (R-NET-3).

`ipaddress.is_global` holds for multicast, NAT64, 6to4, site-local and IPv4-compatible addresses, so for IPv6 only what
is handed out as global unicast is taken, less the blocks that lead somewhere else.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

IpAddress = IPv4Address | IPv6Address
LEADS_TO_ONESELF = frozenset({"loopback", "this network", "unspecified"})
"""Kinds of addresses that mean the machine which dials them."""

_IPV4_BLOCKS = tuple(
    (IPv4Network(block), name)
    for block, name in (
        ("0.0.0.0/8", "this network"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared, with metadata services in it"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's host"),
        ("169.254.0.0/16", "link-local, with metadata services in it"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarks"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
_GLOBAL_UNICAST = IPv6Network("2000::/3")
_IPV6_BLOCKS = tuple(
    (IPv6Network(block), name)
    for block, name in (
        ("::/128", "unspecified"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4-compatible"),
        ("64:ff9b::/96", "NAT64"),
        ("64:ff9b:1::/48", "NAT64"),
        ("100::/64", "discard"),
        ("2001::/23", "protocol assignments, with Teredo in it"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "6to4"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
_IPV4_PARTS = re.compile(r"(0x[0-9a-f]*|[0-9]+)(\.(0x[0-9a-f]*|[0-9]+)){0,3}\Z")


def why_not_public(address: str) -> str | None:
    """What kind of address this is if it must not be dialled; None for a public one.

    What is no address, or has a scope (`fe80::1%eth0`), is not public either.
    """
    if "%" in address:
        return "scoped"
    try:
        parsed = ip_address(address)
    except ValueError:
        return "no IP address"
    return _kind(parsed)


def _kind(address: IpAddress) -> str | None:
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return _kind(address.ipv4_mapped)
        for block, name in _IPV6_BLOCKS:
            if address in block:
                return name
        return None if address in _GLOBAL_UNICAST and address.is_global else "reserved"
    for block, name in _IPV4_BLOCKS:
        if address in block:
            return name
    return None if address.is_global else "reserved"


def canonical_ipv4(text: str) -> str | None:
    """The usual spelling of what systems read as an IPv4 address (`0x7f.1`, `2130706433`, `0177.0.0.1`).

    None if it stands for no address.
    """
    if not _IPV4_PARTS.match(text):
        return None
    numbers: list[int] = []
    for part in text.split("."):
        is_octal = part.startswith("0") and len(part) > 1
        try:
            numbers.append(int(part[2:] or "0", 16) if part.startswith("0x") else int(part, 8 if is_octal else 10))
        except ValueError:
            return None
    *heads, last = numbers
    if any(head > 255 for head in heads) or last >= 256 ** (4 - len(heads)):
        return None
    value = last
    for index, head in enumerate(heads):
        value += head << (8 * (3 - index))
    return str(IPv4Address(value))
