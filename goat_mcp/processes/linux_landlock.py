"""Landlock: the kernel keeps one thread, and whatever it starts, to the files and ports named here (Linux 5.13 on).

Which files a search or a command gets is decided by its callers. Where the kernel has no Landlock nothing is
restricted, and `abi` is 0. Imported by its path alone in the launcher of sandboxed commands, whose start every such
command waits for: so it imports nothing of ours, and of the standard library only what costs next to nothing.
"""

from __future__ import annotations

import os
import sys

# The same numbers on every architecture Linux runs on today.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH, _NET_PORT = 1, 2
_PR_SET_NO_NEW_PRIVS = 38

EXECUTE, WRITE_FILE, READ_FILE, READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
REFER, TRUNCATE, IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
FILE_RIGHTS_OF_ABI_1 = (1 << 13) - 1
"""Everything version 1 knows: execute, write, read, make, remove."""
ON_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV
"""The rights a rule for a single file may grant."""
READING = EXECUTE | READ_FILE | READ_DIR
DEVICES = _MAKE_CHAR | _MAKE_BLOCK | IOCTL_DEV
"""To make device files, and to send devices more than bytes."""

_TCP_BIND, _TCP_CONNECT = 1 << 0, 1 << 1
_ABSTRACT_SOCKETS, _SIGNALS = 1 << 0, 1 << 1
TCP_FROM_ABI, SCOPES_FROM_ABI = 4, 6


def file_rights(abi: int) -> int:
    """All rights on files that a kernel of this ABI can withhold."""
    since = {2: REFER, 3: TRUNCATE, 5: IOCTL_DEV}
    return FILE_RIGHTS_OF_ABI_1 | sum(right for version, right in since.items() if abi >= version)


class Landlock:
    """The kernel's side of it. `absent` acts as if there were none."""

    def __init__(self, *, absent: bool = False) -> None:
        self._absent = absent
        self._abi: int | None = None

    @property
    def abi(self) -> int:
        """What the kernel offers: 0 is nothing, 4 adds TCP, 6 signals and abstract sockets."""
        if self._abi is None:
            self._abi = 0 if self._absent or not sys.platform.startswith("linux") else _kernel_abi()
        return self._abi

    @property
    def is_available(self) -> bool:
        return self.abi >= 1

    def restrict_this_thread(
        self,
        allowed: list[tuple[int, int]],
        *,
        handled: int = FILE_RIGHTS_OF_ABI_1,
        connect_ports: list[int] | None = None,
        scoped: bool = False,
    ) -> None:
        """For good, with no new privileges: use a thread, or process, of its own. Raises `OSError`.

        `allowed` are pairs of an open file or directory (with all below it) and the rights it grants; of the rights
        in `handled`, all else is refused. `connect_ports` refuses TCP but for connections to these ports (of any
        host), `scoped` signals and abstract Unix sockets that lead outside; kernels before their ABI answer EINVAL or
        E2BIG.
        """
        import ctypes  # loaded with the first search only

        libc = ctypes.CDLL(None, use_errno=True)

        def checked(answer: int) -> int:
            if answer < 0:
                problem = ctypes.get_errno()
                raise OSError(problem, os.strerror(problem))
            return answer

        tcp = 0 if connect_ports is None else _TCP_BIND | _TCP_CONNECT
        scopes = _ABSTRACT_SOCKETS | _SIGNALS if scoped else 0
        # Kernels that know the first of them only take the others as long as they are 0.
        attributes = (ctypes.c_uint64 * 3)(handled, tcp, scopes)
        ruleset = checked(libc.syscall(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(24), 0))
        try:
            for fd, rights in allowed:
                beneath = rights.to_bytes(8, sys.byteorder) + fd.to_bytes(4, sys.byteorder, signed=True)
                checked(libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, beneath, 0))
            for port in connect_ports or ():
                place = _TCP_CONNECT.to_bytes(8, sys.byteorder) + port.to_bytes(8, sys.byteorder)
                checked(libc.syscall(_ADD_RULE, ruleset, _NET_PORT, place, 0))
            checked(libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            checked(libc.syscall(_RESTRICT_SELF, ruleset, 0))
        finally:
            os.close(ruleset)


def _kernel_abi() -> int:
    try:
        import ctypes
    except ImportError:
        return 0
    return max(0, ctypes.CDLL(None).syscall(_CREATE_RULESET, None, 0, _VERSION))
