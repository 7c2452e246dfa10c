"""Filters of system calls: the bytes of a BPF program, for `bwrap --seccomp` and for our Landlock launcher.

A second layer, mostly against sockets that no namespace and no Landlock restricts: Unix sockets by path reach any
listener (R-PROC-3, trap 2), vsock reaches the machine's host. All calls are allowed but those named here. ptrace is
allowed: the PID namespace, or Landlock, protects other processes. Only x86_64 and aarch64 have a filter.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

from goat_mcp.core import platform, posix

_NUMBERS = {
    # name: (x86_64, aarch64)
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioctl": (16, 29),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "quotactl": (179, 60),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "sendmmsg": (307, 269),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
_COLUMN = {"x86_64": 0, "aarch64": 1}


def system_call_numbers(machine: str) -> dict[str, int]:
    """The numbers of the calls that the filter looks at, by name, for a machine of `os.uname`. Empty if unknown."""
    column = _COLUMN.get(machine)
    return {} if column is None else {name: numbers[column] for name, numbers in _NUMBERS.items()}


_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_STREAM, _SEQPACKET, _TYPE_MASK = 1, 5, 0xF
_ANY_PROTOCOL, _TCP = 0, 6
_CLONE_NEWUSER = 0x10000000
_MSG_FASTOPEN = 0x20000000
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
_X32_BIT = 0x40000000

_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x54, 0x06
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16


class Sockets(Enum):
    """Which sockets a program may make. Pairs of connected Unix sockets are always allowed."""

    NETWORK = "network"
    """To the network, and netlink, with which programs list interfaces."""
    TCP = "tcp"
    """As above, but TCP only. Connecting in the first packet is refused: Landlock does not check that."""
    NONE = "none"
    """Netlink only."""


class _Instruction(NamedTuple):
    code: int
    value: int
    jump_if: int = 0
    jump_else: int = 0


_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The kernel's numbers of the machines."""

_NOT_IMPLEMENTED = ("io_uring_setup", "io_uring_enter", "io_uring_register", "clone3")
"""ENOSYS; programs then use calls that can be filtered: a ring makes sockets unseen, clone3 hides its flags."""
_REFUSED = (
    *("mount", "umount2", "pivot_root", "setns", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount", "fspick"),
    *("mount_setattr", "open_by_handle_at", "swapon", "swapoff", "acct", "quotactl", "syslog", "reboot"),
    *("settimeofday", "clock_settime", "clock_adjtime"),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module"),
    # Keyrings belong to no namespace; the others have let programs into the kernel more often than they are needed.
    *("add_key", "request_key", "keyctl", "bpf", "perf_event_open", "userfaultfd"),
)


def system_call_filter(
    sockets: Sockets, machine: str | None = None, *, sees_other_processes: bool = False
) -> bytes | None:
    """The filter for the kernel: eight bytes for each instruction, in the machine's byte order.

    `machine` is a name of `os.uname`. None if there is no filter for it. A program that `sees_other_processes` could
    end them by a limit on their time, which is no signal: it may set limits for itself only.
    """
    if machine is None:
        machine = posix.machine() if platform.SYSTEM == "linux" else ""
    calls = system_call_numbers(machine)
    if not calls:
        return None
    program = [
        _Instruction(_LOAD, _ARCHITECTURE_AT),
        # 32-bit programs make their system calls under other numbers, so none of them is let in.
        _Instruction(_EQUAL, _ARCHITECTURES[machine], 1, 0),
        _Instruction(_RETURN, _KILL_PROCESS),
        _Instruction(_LOAD, _NUMBER_AT),
    ]
    if machine == "x86_64":
        program += [_Instruction(_AT_LEAST, _X32_BIT, 0, 1), _answer(errno.ENOSYS)]
    for name in _NOT_IMPLEMENTED:
        program += _on(calls[name], [_answer(errno.ENOSYS)])
    for name in _REFUSED:
        program += _on(calls[name], [_answer(errno.EPERM)])
    for name in ("clone", "unshare"):
        program += _on(calls[name], _refuse_bits(0, _CLONE_NEWUSER))
    program += _on(calls["ioctl"], _refuse_values(1, (_TIOCSTI, _TIOCLINUX)))
    program += _on(calls["socket"], _sockets(sockets))
    program += _on(calls["socketpair"], _pairs())
    if sockets is Sockets.TCP:
        program += _on(calls["sendto"], _refuse_bits(3, _MSG_FASTOPEN))
        program += _on(calls["sendmsg"], _refuse_bits(2, _MSG_FASTOPEN))
        program += _on(calls["sendmmsg"], _refuse_bits(3, _MSG_FASTOPEN))
    if sees_other_processes:
        itself = _on(0, [_Instruction(_RETURN, _ALLOW)])
        program += _on(calls["prlimit64"], [_argument(0), *itself, _answer(errno.EPERM)])
    program.append(_Instruction(_RETURN, _ALLOW))
    return b"".join(struct.pack("=HBBI", one.code, one.jump_if, one.jump_else, one.value) for one in program)


def _answer(number: int) -> _Instruction:
    return _Instruction(_RETURN, _ERRNO | number)


def _on(value: int, then: Sequence[_Instruction]) -> list[_Instruction]:
    """If the loaded value is this one: `then`, which has to end in an answer on every way."""
    return [_Instruction(_EQUAL, value, 0, len(then)), *then]


def _argument(index: int) -> _Instruction:
    """Load an argument. Its lower half only, as the kernel takes these arguments: they are ints."""
    return _Instruction(_LOAD, _ARGUMENTS_AT + 8 * index)


def _refuse_bits(index: int, bits: int) -> list[_Instruction]:
    return [
        _argument(index),
        _Instruction(_ANY_BIT, bits, 0, 1),
        _answer(errno.EPERM),
        _Instruction(_RETURN, _ALLOW),
    ]


def _refuse_values(index: int, values: Sequence[int]) -> list[_Instruction]:
    refusals = [step for value in values for step in _on(value, [_answer(errno.EPERM)])]
    return [_argument(index), *refusals, _Instruction(_RETURN, _ALLOW)]


def _sockets(sockets: Sockets) -> list[_Instruction]:
    allow = [_Instruction(_RETURN, _ALLOW)]
    network = {Sockets.NETWORK: allow, Sockets.TCP: _tcp_only(), Sockets.NONE: [_answer(errno.EACCES)]}[sockets]
    return [
        _argument(0),
        *_on(_NETLINK, allow),
        *_on(_INET, network),
        *_on(_INET6, network),
        *_on(_UNIX, [_answer(errno.EACCES)]),
        _answer(errno.EAFNOSUPPORT),
    ]


def _tcp_only() -> list[_Instruction]:
    return [
        _argument(1),
        _Instruction(_AND, _TYPE_MASK),
        _Instruction(_EQUAL, _STREAM, 1, 0),
        _answer(errno.EACCES),
        _argument(2),
        *_on(_ANY_PROTOCOL, [_Instruction(_RETURN, _ALLOW)]),
        *_on(_TCP, [_Instruction(_RETURN, _ALLOW)]),
        _answer(errno.EACCES),
    ]


def _pairs() -> list[_Instruction]:
    # One of a pair of datagram sockets could be connected again, to a path. The others stay with each other for good.
    return [
        _argument(1),
        _Instruction(_AND, _TYPE_MASK),
        *_on(_STREAM, [_Instruction(_RETURN, _ALLOW)]),
        *_on(_SEQPACKET, [_Instruction(_RETURN, _ALLOW)]),
        _answer(errno.EACCES),
    ]
