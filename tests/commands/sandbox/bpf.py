"""The kernel's interpreter of filters, as far as ours use it: for machines that these tests do not run on."""

from __future__ import annotations

import struct
from collections.abc import Sequence

KILL, ALLOW, ERRNO = 0x80000000, 0x7FFF0000, 0x00050000


def answer(program: bytes, architecture: int, number: int, arguments: Sequence[int] = ()) -> int:
    """What the filter says to one system call. A fault of the program is a failed assertion."""
    padded = [*arguments, 0, 0, 0, 0, 0, 0][:6]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    instructions = list(struct.iter_unpack("<HBBI", program))
    accumulator, at = 0, 0
    while True:
        assert 0 <= at < len(instructions), "it runs over its end"
        code, jump_if, jump_else, value = instructions[at]
        at += 1
        if code == 0x20:
            (accumulator,) = struct.unpack_from("<I", data, value)
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return value
        else:
            holds = {0x15: accumulator == value, 0x35: accumulator >= value, 0x45: bool(accumulator & value)}[code]
            at += jump_if if holds else jump_else
