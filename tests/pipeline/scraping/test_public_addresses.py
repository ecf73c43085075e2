import asyncio
import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.scraping.public_addresses import is_public, resolve


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "1.1.1.1", "128.16.0.1", "172.32.0.1", "100.128.0.1", "2606:4700:4700::1111", "2001:4860:4860::8888"],
)
def test_an_address_of_the_public_net_may_be_asked(address):
    assert is_public(address)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "127.255.0.1", "::1"),  # this machine
        *("0.0.0.0", "::", "0.1.2.3"),  # this machine, on many systems
        *("10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fd12:3456::1", "fec0::1"),  # private
        *("169.254.1.1", "fe80::1", "fe80::1%eth0"),  # link
        *("100.64.0.1", "100.127.255.255"),  # behind the NAT of a provider
        *("224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"),  # multicast
        *("240.0.0.1", "255.255.255.255", "4000::1", "5f00::1"),  # reserved
        *("192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff::1", "198.18.0.1"),  # documents and tests
        *("169.254.169.254", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"),  # clouds
    ],
)
def test_an_address_inside_somebodys_network_may_not_be_asked(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "form",
    [
        "::ffff:{dotted}",  # mapped
        "64:ff9b::{dotted}",  # NAT64
        "2002:{first:x}:{second:x}::1",  # 6to4
    ],
)
def test_an_address_is_as_public_as_the_one_that_it_embeds(form):
    def embed(a: int, b: int, c: int, d: int) -> str:
        return form.format(dotted=f"{a}.{b}.{c}.{d}", first=a << 8 | b, second=c << 8 | d)

    assert is_public(embed(8, 8, 8, 8))
    assert not is_public(embed(127, 0, 0, 1))
    assert not is_public(embed(10, 1, 2, 3))
    assert not is_public(embed(169, 254, 169, 254))


@pytest.mark.parametrize(
    "address", ["::127.0.0.1", "::8.8.8.8", "64:ff9b:1::808:808", "2001:0:4136:e378:8000:63bf:f7f7:f7f7"]
)
def test_other_addresses_that_embed_one_may_never_be_asked(address):
    assert not is_public(address)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f000001", "2130706433", "8.8.8.8/32", "[::1]", "8.8.8.8 "]
)
def test_what_is_no_address_is_not_public(text):
    assert not is_public(text)


@given(st.integers(0, 2**32 - 1).map(ipaddress.IPv4Address) | st.integers(0, 2**128 - 1).map(ipaddress.IPv6Address))
def test_no_address_is_public_that_python_knows_as_private(address):
    known = address.is_private or address.is_loopback or address.is_link_local or address.is_multicast
    assert not (known and is_public(str(address)))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "0x7f000001", "2130706433", "127.1", "0177.0.0.1", "::1", "[::1]", "localhost"]
)
def test_every_spelling_of_this_machine_resolves_to_an_address_that_is_refused(host):
    addresses = asyncio.run(resolve(host, 80))
    assert addresses
    assert not any(map(is_public, addresses))


def test_a_public_address_resolves_to_itself_once():
    assert asyncio.run(resolve("8.8.8.8", 443)) == ["8.8.8.8"]


@pytest.mark.parametrize("host", ["", "a..b", "x" * 70, "127.0.0.1.example.invalid"])
def test_a_host_without_an_address_is_an_error(host):
    with pytest.raises((OSError, UnicodeError)):
        asyncio.run(resolve(host, 80))


def test_a_trailing_dot_hides_nothing():
    try:
        addresses = asyncio.run(resolve("localhost.", 80))
    except OSError:
        addresses = []  # some systems make nothing of it
    assert not any(map(is_public, addresses))
