"""The last step of a launcher: become the program, which must not notice that a Python came before it."""

from __future__ import annotations

import os
import sys

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
