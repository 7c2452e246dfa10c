"""Programs of ours that prepare a process from within, then become the program, which must not notice that a Python
came before it. `launcher` starts them; every confined program waits for them, so they import next to nothing.
"""

from __future__ import annotations

import _socket as socket  # the public module costs 8 ms of every start
import os
import sys

from goat_mcp.processes.linux_landlock import (
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


def landlock_main(arguments: list[str]) -> None:
    """Gives up its rights for good, then becomes the program. `landlock` makes its arguments.

    If a part of the restriction fails, it exits with code 125 and the program has not run.
    """
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
    if sys.platform != "linux":
        raise OSError("Landlock is a part of Linux")
    fd = os.open(path, os.O_PATH)
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


_BACKLOG = 128


def listener_main(arguments: list[str]) -> None:
    """Inside a sandbox with a network of its own: makes the socket on which the proxy outside listens, then becomes the
    program. Its arguments are a descriptor, a port, and the program.

    A socket belongs to the network in which it was made, whoever accepts its connections. So no process of ours has to
    stay inside to forward bytes, and no Unix socket leads out.
    """
    if sys.platform != "linux":
        raise OSError("only Linux has a network of its own for a sandbox")
    descriptor, port, *command = arguments
    environment = environment_as_given()
    try:
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.bind(("127.0.0.1", int(port)))
        listener.listen(_BACKLOG)
        channel = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, int(descriptor))
        sent = listener.fileno().to_bytes(4, sys.byteorder)
        channel.sendmsg([b"l"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, sent)])
        channel.close()
        listener.close()
    except OSError as problem:
        exit_with(CANNOT_CONFINE, f"the way to the network could not be opened, so nothing ran: {problem}")
    exec_command(command, environment)


CANNOT_CONFINE, CANNOT_RUN, NOT_FOUND = 125, 126, 127
"""Exit codes of programs that start programs."""


def environment_as_given() -> dict[str, str]:
    """This process's, without the LC_CTYPE that Python adds if there is no locale."""
    environment = dict(os.environ)
    try:
        with open("/proc/self/environ", "rb") as file:  # noqa: PTH123  # pathlib costs 5 ms of every start
            given = file.read().split(b"\0")
    except OSError:
        return environment
    if not any(entry.startswith(b"LC_CTYPE=") for entry in given):
        environment.pop("LC_CTYPE", None)
    return environment


def exec_command(command: list[str], environment: dict[str, str]) -> None:
    """Like `execvp`, which would import a module here; by now we may not be able to read that module's file."""
    _restore_signals()
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
        exit_with(NOT_FOUND, f"{name}: not found")
    else:
        exit_with(CANNOT_RUN, f"{name}: {refused.strerror}")


def exit_with(code: int, why: str) -> None:
    """End instead of running the program; stderr says why."""
    sys.stderr.write(f"goat-mcp: {why}\n")
    sys.stderr.flush()
    os._exit(code)


def _restore_signals() -> None:
    """Python ignores two signals, which a program inherits: `yes | head` would never end quietly."""
    import _signal as signal  # type: ignore[reportMissingImports]  # the public module costs 3 ms of every start

    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # type: ignore[reportUnknownVariableType,reportUnknownMemberType]
        signal.signal(ignored, signal.SIG_DFL)  # type: ignore[reportUnknownMemberType]
