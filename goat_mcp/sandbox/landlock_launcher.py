"""What gives up its rights for good and then becomes the command it was given. Runs as a process of its own.

`landlock_command` starts it, in a Python that has loaded nothing else: every sandboxed command waits for it, so it
imports only what costs next to nothing. Where a part of the restriction cannot be kept it ends with exit code 125
and the command has not run.
"""

from __future__ import annotations

import os
import sys

from goat_mcp.subprocesses.landlock import (
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

_CANNOT_CONFINE, _CANNOT_RUN, _NOT_FOUND = 125, 126, 127
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _SECCOMP_MODE_FILTER = 24, 22, 2
_SIGPIPE, _SIGXFSZ = 13, 25
_CAPABILITIES_V3 = 0x20080522
_BYTES_PER_INSTRUCTION = 8


def main(arguments: list[str]) -> None:
    split = arguments.index("--")
    command = arguments[split + 1 :]
    options: dict[str, list[str]] = {}
    for name, value in zip(arguments[:split:2], arguments[1:split:2], strict=True):
        options.setdefault(name, []).append(value)
    environment = _environment_as_given()
    try:
        _confine(options)
    except Exception as problem:  # of whatever kind: the command must not run
        _end(_CANNOT_CONFINE, f"the sandbox could not be set up, so nothing ran: {problem}")
    _signals_as_usual()
    _become(command, environment)


def _confine(options: dict[str, list[str]]) -> None:
    kernel = Landlock()
    abi = kernel.abi
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
        except FileNotFoundError:
            continue  # most systems lack some of them
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


def _become(command: list[str], environment: dict[str, str]) -> None:
    """As `execvp`, which would import a module here, and under the restriction we may not read it any more."""
    name = command[0]
    folders = [""] if "/" in name else environment.get("PATH", os.defpath).split(os.pathsep)
    refused: OSError | None = None
    for folder in folders:
        try:
            os.execve(f"{folder}/{name}" if folder else name, command, environment)
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as problem:
            refused = refused or problem
    if refused is None:
        _end(_NOT_FOUND, f"{name}: not found")
    else:
        _end(_CANNOT_RUN, f"{name}: {refused.strerror}")


def _rule(path: str, rights: int, on_files: int) -> tuple[int, int]:
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    is_directory = os.fstat(fd).st_mode & 0o170000 == 0o040000
    return fd, rights if is_directory else rights & on_files


def _drop_capabilities() -> None:
    """What uid 0, or a gateway with file capabilities, could do beyond its files: the command gets none of it."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/sys/kernel/cap_last_cap", "rb") as file:  # noqa: PTH123  # pathlib costs 5 ms of every start
        last = int(file.read())
    for capability in range(last + 1):
        libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # refused to who has none: then there is nothing to drop
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


def _environment_as_given() -> dict[str, str]:
    """Without the LC_CTYPE that Python adds to its own environment where there is no locale."""
    environment = dict(os.environ)
    with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  # pathlib costs 5 ms of every start
        given = file.read().split(b"\0")
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        environment.pop("LC_CTYPE", None)
    return environment


def _signals_as_usual() -> None:
    """Python ignores two signals, which a program inherits: `yes | head` would never end quietly."""
    import ctypes

    libc = ctypes.CDLL(None)
    for signal in (_SIGPIPE, _SIGXFSZ):
        libc.signal(signal, None)


def _end(code: int, why: str) -> None:
    sys.stderr.write(f"goat-mcp: {why}\n")
    sys.stderr.flush()
    os._exit(code)
