"""Gives up the rights of root by which modes of files do not count, and then is `goat-mcp`. Run as a script."""

from __future__ import annotations

import ctypes
import sys

from goat_mcp_launch import main

DROP_FROM_BOUNDING_SET = 24
VERSION_3 = 0x20080522
RIGHTS = (1, 2)
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: only root has them, and nobody else can give them up."""


def give_up_rights() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    for right in RIGHTS:
        libc.prctl(DROP_FROM_BOUNDING_SET, right, 0, 0, 0)  # what it starts does not get them back
    header = (ctypes.c_uint32 * 2)(VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)()  # effective, permitted, inheritable, for the low and the high numbers
    if libc.capget(header, sets) == 0:
        for which in range(3):
            sets[which] &= ~sum(1 << right for right in RIGHTS)
        if libc.capset(header, sets) != 0:
            raise OSError(ctypes.get_errno(), "the rights of root cannot be given up")


give_up_rights()
sys.argv[0] = "goat-mcp"
main()
