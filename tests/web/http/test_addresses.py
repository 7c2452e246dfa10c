"""Which addresses are public (R-NET-3)."""

from __future__ import annotations

import socket
from ipaddress import IPv4Address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.web.http.addresses import canonical_ipv4, why_not_public

PUBLIC = """
8.8.8.8 93.184.216.34 1.1.1.1 172.32.0.1 100.63.255.255 100.128.0.0 192.0.1.1 223.255.255.255
2606:4700:4700::1111 2a00:1450:4001::1 2001:200::1 ::ffff:8.8.8.8
"""
NOT_PUBLIC = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.0 100.100.100.200 127.0.0.1 127.255.255.255 168.63.129.16
169.254.169.254 172.16.0.1 172.31.255.255 192.0.0.1 192.0.0.192 192.0.2.1 192.88.99.1 192.168.0.1 198.18.0.1
198.19.255.255 198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::2 ::7f00:1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 64:ff9b::7f00:1 64:ff9b::808:808
64:ff9b:1::1 100::1 2001::1 2001:0:53aa::1 2001:10::1 2001:20::1 2001:db8::1 2002:7f00:1:: 2002:808:808:: 3fff::1
3fff:fff::1 4000::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 2606:4700::1%1 fec0::1 feff::1 ff02::1 ff0e::1
localhost 1.2.3 1.2.3.4.5 0x7f.1
"""


@pytest.mark.parametrize("address", PUBLIC.split())
def test_a_public_address_may_be_dialled(address: str) -> None:
    assert why_not_public(address) is None


@pytest.mark.parametrize("address", [*NOT_PUBLIC.split(), "", "127.0.0.1 "])
def test_any_other_address_is_not(address: str) -> None:
    assert why_not_public(address) is not None


@given(st.ip_addresses(v=4))
def test_a_mapped_address_is_what_it_maps(address: IPv4Address) -> None:
    assert why_not_public(f"::ffff:{address}") == why_not_public(str(address))


@given(st.from_regex(r"(0x[0-9a-f]{0,9}|0?[0-9]{1,11})(\.(0x[0-9a-f]{0,3}|0?[0-9]{1,4})){0,3}", fullmatch=True))
def test_an_odd_spelling_is_read_as_systems_read_it(text: str) -> None:
    try:
        system = socket.inet_ntoa(socket.inet_aton(text))
    except OSError:
        system = None

    if system is not None:
        assert canonical_ipv4(text) == system
