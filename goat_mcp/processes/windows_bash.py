"""Git's bash on Windows: where it is, and how a script reaches it and it reports where it stood at its end.

Bash inherits no descriptors of ours there, so the script comes in a file and the directory goes into another. Nothing
but plain words is in bash's arguments: how it splits and quotes those of Windows programs is its own way.
"""

from __future__ import annotations

import ntpath
import shlex
from collections.abc import Callable, Mapping

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes.windows_environment import variable
from goat_mcp.processes.windows_program import find_program

CLAUDE_CODES_VARIABLE = "CLAUDE_CODE_GIT_BASH_PATH"
RUN_VARIABLE = "GOAT_MCP_RUN"
_WSL_FOLDERS = frozenset({"system32", "sysnative", "syswow64", "windowsapps"})
"""A `bash.exe` in one of these starts Linux in WSL, where Windows' paths mean nothing."""

# As `_WRAPPER` of `bash_invocation`. Git's `pwd -W` writes the path as Windows does.
_REPORT = "{{ builtin pwd -W || builtin pwd -P; }} 2>/dev/null >|{report}"
_WRAPPER = """\
IFS=$' \\t\\n'; unset {run}; set +f
trap {trap} EXIT
read -rd '' <{script}
eval "$REPLY"
{{ set -- "$?"; {report}; set +x; }} 2>/dev/null; builtin exit "$1"
"""


def find_git_bash(named: str, environment: Mapping[str, str], is_file: Callable[[str], bool]) -> str:
    """The bash.exe of Git: the one `named` in the settings, else Claude Code's, else that beside git.exe or where
    Git's installers put it. Raises `ToolError(NOT_CONFIGURED)`."""
    for origin, path in (
        ("the setting bash.git_bash", named),
        (CLAUDE_CODES_VARIABLE, variable(environment, CLAUDE_CODES_VARIABLE)),
    ):
        if not path:
            continue
        if ntpath.isabs(path) and is_file(path) and not _is_wsl(path):
            return _starter(path, is_file)
        raise ToolError(
            ErrorCode.NOT_CONFIGURED,
            f"{origin} is {path!r}, which is not the absolute path of Git's bash.exe",
            "Ask the user to correct it, e.g. to C:\\Program Files\\Git\\bin\\bash.exe.",
        )
    for root in _git_folders(environment, is_file):
        for place in (("bin", "bash.exe"), ("usr", "bin", "bash.exe")):
            path = ntpath.join(root, *place)
            if is_file(path) and not _is_wsl(path):
                return path
    raise ToolError(
        ErrorCode.NOT_CONFIGURED,
        "there is no Git for Windows, whose bash runs commands here",
        "Ask the user to install Git for Windows, or to name its bash.exe in the setting bash.git_bash.",
    )


def _starter(path: str, is_file: Callable[[str], bool]) -> str:
    """`bin\\bash.exe` if `usr\\bin\\bash.exe` was named: it puts Git's own programs on the PATH."""
    folder, usr = ntpath.dirname(path), ntpath.join("usr", "bin")
    if folder.lower().endswith(f"\\{usr}"):
        starter = ntpath.join(folder[: -len(usr)], "bin", "bash.exe")
        return starter if is_file(starter) else path
    return path


def _git_folders(environment: Mapping[str, str], is_file: Callable[[str], bool]) -> list[str]:
    folders: list[str] = []
    git = find_program("git", environment, is_file)
    if git is not None:
        # Git\\cmd\\git.exe, Git\\bin\\git.exe or Git\\mingw64\\bin\\git.exe.
        folder = ntpath.dirname(ntpath.dirname(git))
        folders += [folder, ntpath.dirname(folder)]
    for name, below in (
        ("ProgramW6432", "Git"),
        ("ProgramFiles", "Git"),
        ("ProgramFiles(x86)", "Git"),
        ("LocalAppData", "Programs\\Git"),
        ("UserProfile", "scoop\\apps\\git\\current"),
    ):
        if ntpath.isabs(place := variable(environment, name)):
            folders.append(ntpath.join(place, below))
    return folders


def _is_wsl(path: str) -> bool:
    return not _WSL_FOLDERS.isdisjoint(ntpath.normpath(path).lower().split("\\"))


def bash_path(path: str) -> str:
    """A path as Git's bash writes it: `/c/Users/x` for `C:\\Users\\x`. Other paths only get their slashes."""
    drive, rest = ntpath.splitdrive(path)
    rest = rest.replace("\\", "/")
    if len(drive) == 2 and drive[1] == ":":
        return f"/{drive[0].lower()}{rest}"
    return drive.replace("\\", "/") + rest


def arguments(bash: str) -> list[str]:
    """The argument list that runs the file that `RUN_VARIABLE` names, which is made by `run_file`."""
    return [bash, "--noprofile", "--norc", "-c", f"set -f; IFS=; . ${RUN_VARIABLE}", "bash"]


def run_file(script: str, report: str) -> str:
    """What runs the script in one file, and writes its last directory into the other."""
    says = _REPORT.format(report=shlex.quote(report))
    return _WRAPPER.format(run=RUN_VARIABLE, script=shlex.quote(script), report=says, trap=shlex.quote(says))
