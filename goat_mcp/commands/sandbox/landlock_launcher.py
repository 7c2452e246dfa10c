"""Gives up its rights for good, then becomes the program. Runs as a process of its own.

`landlock` makes its arguments, `launcher` starts it. If a part of the restriction fails, it exits with code 125 and
the program has not run.
"""

from __future__ import annotations

import os

from goat_mcp.commands.sandbox.exec_command import CANNOT_CONFINE, environment_as_given, exec_command, exit_with
from goat_mcp.processes.landlock import (
    DEVICES,
    ON_FILES,
    READ_FILE,
    READING,
    SCOPES_FROM_ABI,
    TCP_FROM_ABI,
    WRITE_FILE,
    Landlock,
    file_rights,
)

_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 22, 2
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_CAPABILITIES_V3 = 0x20080522
_BYTES_PER_INSTRUCTION = 8


def main(arguments: list[str]) -> None:
    split = arguments.index("--")
    command = arguments[split + 1 :]
    options: dict[str, list[str]] = {}
    for name, value in zip(arguments[:split:2], arguments[1:split:2], strict=True):
        options.setdefault(name, []).append(value)
    environment = environment_as_given()
    try:
        _confine(options)
    except Exception as problem:  # of whatever kind: the command must not run
        exit_with(CANNOT_CONFINE, f"the sandbox could not be set up, so nothing ran: {problem}")
    exec_command(command, environment)


def _confine(options: dict[str, list[str]]) -> None:
    kernel = Landlock()
    abi = min(kernel.abi, int(options["--abi"][0]))
    rights = file_rights(abi)
    writing = rights & ~DEVICES
    allowed: list[tuple[int, int]] = []
    for path in options.get("--write", []):
        allowed.append(_rule(path, writing, ON_FILES))
    for path in options.get("--device", []):
        allowed.append(_rule(path, READ_FILE | WRITE_FILE, ON_FILES))
    for path in options.get("--read", []):
        try:
            allowed.append(_rule(path, READING, ON_FILES))
        except OSError:
            continue  # most systems lack some of them, and what we may not open the program could not either
    _drop_capabilities()
    ports = options.get("--connect")
    kernel.restrict_this_thread(
        allowed,
        handled=rights,
        connect_ports=[int(port) for port in ports if port != "none"] if ports and abi >= TCP_FROM_ABI else None,
        scoped=abi >= SCOPES_FROM_ABI,
    )
    for program in options.get("--seccomp", []):
        _filter_system_calls(bytes.fromhex(program))


def _rule(path: str, rights: int, on_files: int) -> tuple[int, int]:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    is_directory = os.fstat(fd).st_mode & 0o170000 == 0o040000
    return fd, rights if is_directory else rights & on_files


def _drop_capabilities() -> None:
    """Drop the rights of uid 0, or of a gateway with file capabilities.

    Landlock alone is not enough: with CAP_PERFMON newer kernels show every environment in /proc.
    """
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    capability = 0
    while libc.prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) >= 0:
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused to who has none: then there is nothing to drop
        capability += 1
    header = (ctypes.c_uint32 * 2)(_CAPABILITIES_V3, 0)
    none = (ctypes.c_uint32 * 6)()
    if libc.capset(ctypes.byref(header), ctypes.byref(none)):
        raise OSError(ctypes.get_errno(), "capabilities cannot be dropped")


def _filter_system_calls(program: bytes) -> None:
    import ctypes

    class Program(ctypes.Structure):
        _fields_ = [("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p)]

    libc = ctypes.CDLL(None, use_errno=True)
    filter_ = Program(len(program) // _BYTES_PER_INSTRUCTION, program)
    if libc.prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, ctypes.byref(filter_), 0, 0):
        raise OSError(ctypes.get_errno(), "system calls cannot be filtered")
