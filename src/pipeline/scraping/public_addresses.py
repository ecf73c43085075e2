"""Which addresses on the net may be asked for a document: public ones alone, nothing inside anyone's own network."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

# The lists are our own, because what ipaddress calls global differs between releases of Python, and includes multicast.
_NOT_PUBLIC = [
    ip_network(network)
    for network in (
        *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
        *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
        *("224.0.0.0/4", "240.0.0.0/4"),
        "168.63.129.16/32",  # looks public, but is the host of every machine in one of the large clouds
        *("2001::/23", "2001:db8::/32", "3fff::/20"),  # the first holds Teredo, which embeds addresses
    )
]
_UNICAST = ip_network("2000::/3")  # all that was ever given out
_TRANSLATED = ip_network("64:ff9b::/96")  # NAT64: how a network without IPv4 reaches it


def is_public(address: str) -> bool:
    """Return whether this address may be asked: one of the public net, in whatever form; False for what is none.

    An IPv6 address that embeds one of IPv4 (mapped, 6to4, NAT64) is as public as that; Teredo never is.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if isinstance(parsed, IPv6Address) and (embedded := _embedded(parsed)):
        parsed = embedded
    if isinstance(parsed, IPv6Address) and (parsed not in _UNICAST or parsed.scope_id):
        return False
    return not any(parsed in network for network in _NOT_PUBLIC)


async def resolve(host: str, port: int) -> list[str]:
    """Return the addresses that the system makes of a host, be it a name or an address in any form it understands.

    ``OSError`` or ``UnicodeError`` where it makes nothing of it.
    """
    found = await asyncio.get_running_loop().getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address in _TRANSLATED:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour
