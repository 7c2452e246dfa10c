"""The environment a command starts with: built from an allow list, never a filtered copy of ours (R-PROC-7).

PATH is that of the user's login shell: programs that desktops start, this server included, often lack most of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import subprocess
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import anyio

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import windows_environment
from goat_mcp.processes.stop_signals import unblocked_for_children

READ_LIMIT_S = 3.0
_PROGRAMS = "Scripts" if platform.SYSTEM == "windows" else "bin"
_KNOWN_SHELLS = frozenset({"bash", "zsh", "sh", "dash", "ksh", "mksh", "fish"})


class LoginPath:
    """Asks the user's shell for its PATH once, at the first `read`, and remembers the answer.

    Directories that only our own PATH has follow at the end, but for those of the virtual environment we run in.
    """

    def __init__(self, *, own_path: str | None = None, shell: str | None = None, limit_s: float = READ_LIMIT_S) -> None:
        self._own_path = os.environ.get("PATH", os.defpath) if own_path is None else own_path
        self._shell = shell
        self._limit_s = limit_s
        self._reading: asyncio.Task[str] | None = None

    async def read(self) -> str:
        if self._reading is None:
            self._reading = asyncio.create_task(anyio.to_thread.run_sync(self._read))
        return await asyncio.shield(self._reading)

    def _read(self) -> str:
        own = [folder for folder in self._own_path.split(os.pathsep) if folder and folder not in _own_venv_folders()]
        return os.pathsep.join(_unique([*self._ask_shell(), *own]))

    def _ask_shell(self) -> list[str]:
        if not platform.HAS_PROCESS_GROUPS:
            return []  # a program on Windows has the user's whole PATH, and there is no login shell to ask
        shell = self._shell or _users_shell()
        if Path(shell).name not in _KNOWN_SHELLS or not Path(shell).is_file():
            return []
        mark = secrets.token_hex(8)
        home = os.environ.get("HOME") or str(Path.home())
        try:
            # Interactive too, because many set PATH in the file that only interactive shells read.
            with unblocked_for_children():
                child = subprocess.Popen(
                    [shell, "-ilc", f"echo {mark}; /usr/bin/env; echo {mark}"],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    env={"PATH": self._own_path, "HOME": home, "TERM": "dumb", "SHELL": shell},
                    cwd=home if os.path.isdir(home) else "/",  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
                    start_new_session=True,
                )
        except OSError:
            return []
        try:
            output, _ = child.communicate(timeout=self._limit_s)
        except subprocess.TimeoutExpired as late:
            # Something in a start file may hold the pipe although the shell has answered.
            output = late.output or b""
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                posix.killpg(child.pid, 9)  # what its start files left running as well
            child.wait()
            if child.stdout is not None:
                child.stdout.close()
        parts = output.decode("utf-8", "surrogateescape").split(mark)
        if len(parts) != 3:
            return []
        lines = [line for line in parts[1].splitlines() if line.startswith("PATH=")]
        return [folder for folder in lines[-1][5:].split(os.pathsep) if Path(folder).is_absolute()] if lines else []


def _users_shell() -> str:
    try:
        import pwd

        return pwd.getpwuid(posix.getuid()).pw_shell
    except (ImportError, KeyError):
        return os.environ.get("SHELL", "")


def _own_venv_folders() -> set[str]:
    """Where programs of our own virtual environment lie: a user's `python` must not become ours."""
    folders: set[str] = set()
    if sys.prefix != sys.base_prefix:
        folders.add(str(Path(sys.prefix) / _PROGRAMS))
    if named := os.environ.get("VIRTUAL_ENV"):
        folders.add(str(Path(named) / _PROGRAMS))
    return folders


def _unique(folders: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(folders))


_KEPT = ("HOME", "USER", "LOGNAME", "SHELL", "LANG", "TMPDIR", "SSH_AUTH_SOCK")
_PROXY = ("http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "no_proxy")
_FIXED = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "NO_COLOR": "1", "TERM": "dumb"}
_REFUSED = frozenset({"BASH_ENV", "ENV", "SHELLOPTS", "BASHOPTS", "PS4", "PROMPT_COMMAND", "IFS"})
_REFUSED_PREFIXES = ("LD_", "DYLD_", "BASH_FUNC_", "GOAT_MCP_")


@dataclass(frozen=True)
class CommandEnvironment:
    """Makes environments. `passed_on` names further variables of ours that commands may see."""

    login_path: LoginPath = field(default_factory=LoginPath)
    passed_on: tuple[str, ...] = ()

    async def build(self, variables: Mapping[str, str] | None = None) -> dict[str, str]:
        """A command's environment; `variables` win over all else. Raises `ToolError(INPUT)` for names not allowed."""
        variables = variables or {}
        check_names(variables)
        if platform.SYSTEM == "windows":
            names = (*windows_environment.NEEDED, *_KEPT, *_PROXY, *self.passed_on)
            built = windows_environment.kept(os.environ, names)
            ours = {**_FIXED, "PATH": await self.login_path.read()}
            return windows_environment.overlaid(windows_environment.overlaid(built, ours), variables)
        built = {
            name: value
            for name, value in os.environ.items()
            if name in _KEPT or name.startswith("LC_") or name.lower() in _PROXY or name in self.passed_on
        }
        return {**built, **_FIXED, "PATH": await self.login_path.read(), **variables}


def check_names(variables: Mapping[str, str]) -> None:
    """Refuse what is no variable, and variables that make bash or the loader run what the command does not show."""
    for name, value in variables.items():
        if not name or not name.isascii() or not name.replace("_", "a").isalnum() or name[0].isdigit():
            raise ToolError(ErrorCode.INPUT, f"env: {name!r} is no variable name", "Use letters, digits and _.")
        if name in _REFUSED or name.startswith(_REFUSED_PREFIXES):
            raise ToolError(
                ErrorCode.INPUT,
                f"env: {name} changes what a command runs and cannot be set here",
                "Write the assignment into the command itself.",
            )
        if "\0" in value:
            raise ToolError(ErrorCode.INPUT, f"env: the value of {name} holds a NUL character", "Remove it.")
