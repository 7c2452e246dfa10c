"""Landlock: the kernel keeps one thread, and whatever it starts, to the files named here (Linux 5.13 and later).

rg walks by path name, so a directory exchanged for a link while it walks could lead it out of the workspace;
with this it cannot. Where the kernel has no Landlock nothing is restricted, and `is_available` says so.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

# The same numbers on every architecture Linux runs on today.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_PR_SET_NO_NEW_PRIVS = 38
EXECUTE, READ_FILE, READ_DIR = 1 << 0, 1 << 2, 1 << 3
_HANDLED = (1 << 13) - 1
"""Everything version 1 knows: execute, write, read, make, remove."""


@dataclass(frozen=True)
class Allowed:
    """An open file or directory (with all below it) and what may be done there."""

    fd: int
    rights: int


class Landlock:
    """The kernel's side of it. `absent` acts as if there were none."""

    def __init__(self, *, absent: bool = False) -> None:
        self._absent = absent

    @cached_property
    def is_available(self) -> bool:
        if self._absent or not sys.platform.startswith("linux") or self._libc is None:
            return False
        return self._libc.syscall(_CREATE_RULESET, None, 0, _VERSION) >= 1

    @cached_property
    def _libc(self) -> Any:
        try:
            import ctypes  # loaded with the first search only
        except ImportError:
            return None
        return ctypes.CDLL(None, use_errno=True)

    def restrict_this_thread(self, allowed: Sequence[Allowed]) -> None:
        """For good: use a thread of its own, which ends once it has started the process. Raises `OSError`."""
        import ctypes

        handled = (ctypes.c_uint64 * 1)(_HANDLED)
        ruleset = self._checked(self._libc.syscall(_CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(8), 0))
        try:
            for rule in allowed:
                packed = rule.rights.to_bytes(8, sys.byteorder) + rule.fd.to_bytes(4, sys.byteorder, signed=True)
                self._checked(self._libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, packed, 0))
            self._checked(self._libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
            self._checked(self._libc.syscall(_RESTRICT_SELF, ruleset, 0))
        finally:
            os.close(ruleset)

    @staticmethod
    def _checked(answer: int) -> int:
        import ctypes

        if answer < 0:
            problem = ctypes.get_errno()
            raise OSError(problem, os.strerror(problem))
        return answer
