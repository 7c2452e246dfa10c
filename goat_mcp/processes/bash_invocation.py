"""How a script reaches bash: whole, by a descriptor, and how bash tells where it stood at its end.

The script is in no process's arguments: `pkill -f` with a pattern from the script must not hit the shell that runs
it. It is not in the environment either, nor quoted, so its length and characters do not matter (but for NUL).
"""

from __future__ import annotations

import os
import tempfile

from goat_mcp.core import platform, posix
from goat_mcp.processes.program_lookup import program_on

_LOWEST_DESCRIPTOR = 100
"""Where bash's own and a script's `exec 3>file` descriptors do not come."""

# `eval` takes the script as `-c` would: a syntax error late in it lets the lines before run, an unfinished heredoc
# ends with it, line numbers are the script's own. The trap reports the directory after `exit` and `set -e`; the line
# after `eval` does so if the script has set an EXIT trap of its own. After `exec PROGRAM`, or `exit` under the
# script's own EXIT trap, nothing is reported and the directory stays what it was.
_WRAPPER = (
    "trap '{{ builtin pwd -P >&{report}; }} 2>/dev/null' EXIT; "
    'read -rd "" -u {script}; exec {script}<&-; '
    'eval "$REPLY"; '
    '{{ set -- "$?"; builtin pwd -P >&{report} || :; set +x; }} 2>/dev/null; builtin exit "$1"'
)

# Runs the rest of its arguments. That it was reached at all says that the sandbox stands, hence the first sign. In a
# process namespace it stays until it is the only process beside the namespace's own first one: with it would end what
# the command left running. Only then is the exit code told in words; else it is the exit code. TERM is for the command
# alone, and so is this shell's stderr, where it would tell of the signal that ended the command.
# Only Linux has these namespaces, so it may look into /proc.
_STARTED = "printf + >&{status}; "
_STARTER = _STARTED + 'exec {status}>&-; exec "$@"'
_KEEPER = (
    "trap : TERM INT HUP QUIT; " + _STARTED + "exec 99>&2 2>/dev/null; "
    '"$@" 2>&99 99>&- {status}>&-; code=$?; exec 99>&- {report}>&-; '
    "alone() {{ set -- /proc/[0-9]*; (( $# <= 2 )); }}; "
    "alone || {{ printf '%d\\n' $code >&{status}; exec >&- {status}>&- 98<> <(:); "
    "until alone; do read -rt 0.3 -u 98; done; }}; exit $code"
)


def find_bash(path: str) -> str | None:
    """The first bash on a PATH, looked for in absolute directories only."""
    return program_on(path, "bash")


def arguments(bash: str, script_descriptor: int, report_descriptor: int, *, first: str = "") -> list[str]:
    """The argument list that runs the script behind one descriptor and writes its last directory to the other.

    `first` is what bash does to itself before.
    """
    return [
        bash,
        "--noprofile",
        "--norc",
        "-c",
        first + _WRAPPER.format(script=script_descriptor, report=report_descriptor),
        "bash",
    ]


def confined_arguments(
    arguments: list[str], status_descriptor: int, report_descriptor: int, *, stays: bool
) -> list[str]:
    """`arguments`, started by a shell that tells the status descriptor that it came to that, and, if it `stays`, of
    the command's end when something else goes on."""
    script = (_KEEPER if stays else _STARTER).format(status=status_descriptor, report=report_descriptor)
    return [arguments[0], "--noprofile", "--norc", "-c", script, "bash", *arguments]


def is_keeper(command_line: str) -> bool:
    """Whether a process's arguments are those of the shell that waits for all a confined command left running."""
    return "alone() { set -- /proc/[0-9]*" in command_line and "trap : TERM" in command_line


def is_wrapper(command_line: str) -> bool:
    """Whether a process's arguments are those of `arguments`: bash itself, or a part of the script it runs beside."""
    return _WRAPPER.split("{", 1)[0] in command_line and 'eval "$REPLY"' in command_line


def script_descriptor(script: str) -> int:
    """A descriptor that reads `script` from its beginning. The caller closes it."""
    data = script.encode("utf-8")
    if platform.HAS_MEMFD:
        descriptor = posix.memfd_create("script")
    else:
        with tempfile.TemporaryFile(prefix="script-") as file:
            descriptor = os.dup(file.fileno())
    while data:
        data = data[os.write(descriptor, data) :]
    os.lseek(descriptor, 0, os.SEEK_SET)
    return raised(descriptor)


def raised(descriptor: int) -> int:
    """The same file under a number that scripts do not use; the given one is closed."""
    try:
        return posix.duplicate_above(descriptor, _LOWEST_DESCRIPTOR)
    finally:
        os.close(descriptor)


def reported_directory(report: bytes) -> str | None:
    """The directory a script ended in, from all that came through the report descriptor; None if it did not say."""
    text = os.fsdecode(report)
    half = len(text) // 2
    if len(text) % 2 == 0 and text[:half] == text[half:]:
        # Trap and last line have both reported. A directory's name may hold line ends, so lines do not tell.
        text = text[:half]
    return text.removesuffix("\n") if text.startswith("/") else None
