"""The environment a command starts with: built from an allow list, never a filtered copy of ours (R-PROC-7).

PATH is that of the user's login shell: programs that desktops start, this server included, often lack most of it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import selectors
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, cast

import anyio

from goat_mcp.core import platform, posix
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.processes import windows_environment
from goat_mcp.processes.stop_signals import unblocked_for_children

READ_LIMIT_S = 3.0
_HOMEBREW = ("opt/homebrew/bin", "opt/homebrew/sbin")
"""Of Macs with processors of Apple's; on others it is in /usr/local, which is in /etc/paths."""
_FOR_START_FILES = ("USER", "LOGNAME", "LANG", "TMPDIR")
_NO_QUESTIONS = {"DISABLE_AUTO_UPDATE": "true", "ZSH_TMUX_AUTOSTART": "false", "ZSH_TMUX_AUTOSTARTED": "true"}
"""Start files of zsh that are in wide use would update themselves, or start another program, for a person."""
_PROGRAMS = "Scripts" if platform.SYSTEM == "windows" else "bin"
_KNOWN_SHELLS = frozenset({"bash", "zsh", "sh", "dash", "ksh", "mksh", "fish"})


class LoginPath:
    """Asks the user's shell for its PATH once, at the first `read`, and remembers the answer.

    Directories that only our own PATH has follow at the end, but for those of the virtual environment we run in. If the
    shell does not answer, those follow that it would have added on a Mac; they are looked for below `root`.
    """

    def __init__(
        self,
        *,
        own_path: str | None = None,
        shell: str | None = None,
        limit_s: float = READ_LIMIT_S,
        root: Path = Path("/"),
    ) -> None:
        self._root = root
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
        told = self._ask_shell()
        return os.pathsep.join(_unique([*told, *own] if told else [*own, *path_helper_folders(self._root)]))

    def _ask_shell(self) -> list[str]:
        shell = login_shell(self._shell)
        if shell is None:
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
                    env={
                        **{name: os.environ[name] for name in _FOR_START_FILES if name in os.environ},
                        **_NO_QUESTIONS,
                        "PATH": self._own_path,
                        "HOME": home,
                        "TERM": "dumb",
                        "SHELL": shell,
                    },
                    cwd=home if os.path.isdir(home) else "/",  # noqa: PTH112  # `Path.is_dir` raises for what may not be looked at
                    start_new_session=True,
                )
        except OSError:
            return []
        try:
            with cast("IO[bytes]", child.stdout) as pipe:
                output = _read_until(pipe, mark.encode(), time.monotonic() + self._limit_s)
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                posix.killpg(child.pid, 9)  # what its start files left running as well
            child.wait()
        parts = output.decode("utf-8", "surrogateescape").split(mark)
        if len(parts) != 3:
            return []
        lines = [line for line in parts[1].splitlines() if line.startswith("PATH=")]
        return [folder for folder in lines[-1][5:].split(os.pathsep) if Path(folder).is_absolute()] if lines else []


def login_shell(named: str | None = None) -> str | None:
    """The user's shell, if it is one that can be asked; `named` is another one to ask.

    None on Windows: a program there has the user's whole PATH, and there is no login shell.
    """
    if not platform.HAS_PROCESS_GROUPS:
        return None
    shell = named or posix.user_record().shell or os.environ.get("SHELL", "")
    return shell if Path(shell).name in _KNOWN_SHELLS and Path(shell).is_file() else None


def _read_until(pipe: IO[bytes], mark: bytes, deadline_s: float) -> bytes:
    """What comes until the mark has come twice: something in a start file may hold the pipe for longer."""
    output = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while output.count(mark) < 2 and selector.select(max(0.0, deadline_s - time.monotonic())):
            data = os.read(pipe.fileno(), 65_536)
            if not data:
                break
            output += data
    return output


def path_helper_folders(root: Path = Path("/")) -> list[str]:
    """What macOS puts on the PATH of a login shell (`man path_helper`), with Homebrew's. Other systems have neither."""
    folders: list[str] = []
    lists = [root / "etc/paths", *sorted((root / "etc/paths.d").glob("*"))]
    for file in lists:
        with contextlib.suppress(OSError):
            folders += [line.strip() for line in file.read_text("utf-8", "replace").splitlines()]
    if folders:
        folders[:0] = [f"/{place}" for place in _HOMEBREW if (root / place).is_dir()]
    return [folder for folder in folders if folder.startswith("/")]


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
