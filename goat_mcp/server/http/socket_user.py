"""Who runs the other end of a connection within this machine. Each system says it in a way of its own."""

from __future__ import annotations

import ipaddress
import socket
import struct
import sys
from contextlib import suppress
from pathlib import Path

from goat_mcp.core import platform

AF_UNIX: int = getattr(socket, "AF_UNIX", 0)
_SO_PEERCRED: int = getattr(socket, "SO_PEERCRED", 0)
_LOCAL_PEERCRED = 1
_XUCRED_BYTES = 76
"""`struct xucred` in sys/ucred.h of macOS: its version, the user, groups."""

_MAPPED = f"{0:016X}{int.from_bytes(bytes([0, 0, 255, 255]), sys.byteorder):08X}"
"""`::ffff:` as /proc/net writes it."""


def peer_user(connection: socket.socket) -> int | None:
    """The user's number; None for another socket, or if the system does not say."""
    if not platform.HAS_UNIX_SOCKETS or connection.family != AF_UNIX:
        return None
    if platform.SYSTEM == "linux":
        return struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, _SO_PEERCRED, struct.calcsize("3i")))[1]
    if platform.SYSTEM == "macos":
        version, user = struct.unpack_from("=II", connection.getsockopt(0, _LOCAL_PEERCRED, _XUCRED_BYTES))
        return user if version == 0 else None
    return None


def tcp_peer_user(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """The same of a TCP connection, by the addresses of both ends; None as well if the other end is elsewhere.
    Blocking."""
    if not platform.HAS_PROC:
        return None
    with suppress(OSError, ValueError):
        ends = [_as_in_proc(host, port) for host, port in (peer, own)]
        # A program may reach an IPv4 address by a socket of IPv6.
        mapped = [_MAPPED + end for end in ends]
        for file in ("tcp", "tcp6"):
            for line in Path("/proc/net", file).read_text(encoding="ascii").splitlines()[1:]:
                if (row := line.split())[1:3] in (ends, mapped):
                    return int(row[7])
    return None


def _as_in_proc(host: str, port: int) -> str:
    """`0100007F:1F90`: each 32 bits as a number of this machine. Raises `ValueError`."""
    packed = ipaddress.ip_address(host).packed
    words = (int.from_bytes(packed[at : at + 4], sys.byteorder) for at in range(0, len(packed), 4))
    return f"{''.join(f'{word:08X}' for word in words)}:{port:04X}"
