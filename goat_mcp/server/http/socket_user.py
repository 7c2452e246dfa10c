"""Who runs the other end of a Unix socket. Each system says it by a call of its own."""

from __future__ import annotations

import socket
import struct

from goat_mcp.core import platform

AF_UNIX: int = getattr(socket, "AF_UNIX", 0)
_SO_PEERCRED: int = getattr(socket, "SO_PEERCRED", 0)
_LOCAL_PEERCRED = 1
_XUCRED_BYTES = 76
"""`struct xucred` in sys/ucred.h of macOS: its version, the user, groups."""


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
