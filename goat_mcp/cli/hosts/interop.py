"""A server that a host on Windows starts, as goat-mcp in WSL can start it: programs of Windows run by interop.

Source: Microsoft, "Working across Windows and Linux file systems": `.exe` files run by their path; variables reach them
if `WSLENV` names them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PureWindowsPath

from goat_mcp.cli.hosts.entry_keys import EntryDraft, NotImportable, texts_of
from goat_mcp.cli.hosts.host import HostEnvironment
from goat_mcp.cli.hosts.wsl_entry import wsl_launch
from goat_mcp.core.errors import ToolError
from goat_mcp.core.wsl_paths import WslPaths

_READ_BY_CMD = re.compile(r"[&|<>^%!]")
_LOST = re.compile(r'["\t\r\n]')
"""Interop does not quote these (microsoft/WSL#2411, #2164)."""
_SCRIPTS = (".cmd", ".bat")
_LOCAL = re.compile(r"https?://(?:localhost|127\.|\[::1\])", re.I)


def start_from_wsl(draft: EntryDraft, windows: HostEnvironment, paths: WslPaths) -> None:
    """Change the command, the directory and the environment of an entry. Raises `NotImportable`."""
    entry = draft.entry
    if _LOCAL.match(str(entry.get("url", ""))):
        draft.notes.append(
            "url: localhost is this distribution; a server on Windows answers there with mirrored networking"
        )
    command = entry.get("command")
    if not isinstance(command, str):
        return
    if entry.get("cwd"):
        entry["cwd"] = _here(paths, "cwd", str(entry["cwd"]))
    args = texts_of(entry.get("args"))
    inner = wsl_launch(command, args)
    is_here = inner is not None and inner.distribution.lower() == paths.distribution.lower()
    if inner is not None and is_here and not inner.has_shell and not inner.user:
        draft.notes.append("command: it runs in this distribution, so wsl.exe is left out")
        entry["command"], entry["args"] = inner.command, [*inner.args]
        draft.env = {**_handed_on(draft.env), **inner.env}
        if inner.cd and "cwd" not in entry:
            entry["cwd"] = inner.cd if inner.cd.startswith(("/", "~")) else _here(paths, "cwd", inner.cd)
        return
    program, name = _program(command, windows, paths)
    if bad := next((word for word in (name, *args) if not word or _LOST.search(word)), None):
        raise NotImportable(f"args: WSL would hand on {bad!r} to a program of Windows as something else")
    if program.suffix.lower() in _SCRIPTS:
        if bad := next((word for word in (name, *args) if _READ_BY_CMD.search(word)), None):
            raise NotImportable(f"command: {program.name} is a script of cmd.exe, which would read {bad!r} as more")
        shell = Path(paths.drives + "/") / "c" / "Windows" / "System32" / "cmd.exe"
        # `call`: a line that begins with a quotation mark loses its first and its last one.
        program, args = shell, ["/d", "/c", "call", name, *args]
    entry["command"], entry["args"] = str(program), args
    if not args:
        del entry["args"]
    if draft.env:
        draft.env["WSLENV"] = ":".join(draft.env)
    draft.notes.append(f"command: it stays a program of Windows, started by interop: {program}")


def _handed_on(env: Mapping[str, str]) -> dict[str, str]:
    """Of a host's variables those that `wsl.exe` handed on: `WSLENV` names them. Raises `NotImportable`."""
    found: dict[str, str] = {}
    for name, _, flags in (one.partition("/") for one in env.get("WSLENV", "").split(":")):
        if name in env and "w" not in flags:
            if set(flags) & {"p", "l"}:
                raise NotImportable(f"env.{name}: WSLENV has its paths translated; write them as Linux does")
            found[name] = env[name]
    return found


def _program(command: str, windows: HostEnvironment, paths: WslPaths) -> tuple[Path, str]:
    """The file, and its name for Windows."""
    if "\\" in command or "/" in command:
        found = Path(_here(paths, "command", command))
        candidates: Sequence[Path] = [found, *(found.with_name(found.name + end) for end in _endings(windows))]
        name = str(PureWindowsPath(command))
    else:
        if not windows.environ.get("PATH"):
            raise NotImportable(f"command: where Windows has {command} is not known; write its whole path there")
        candidates = [
            folder / f"{command}{end}"
            for folder in _search_path(windows, paths)
            for end in ("", *_endings(windows))
            if end or "." in command
        ]
        name = command
    program = next((one for one in candidates if _is_file(one)), None)
    if program is None:
        raise NotImportable(f"command: {command} is not found on Windows")
    if program.suffix.lower() not in (".exe", ".com", *_SCRIPTS):
        raise NotImportable(f"command: {command} is no program that WSL can start")
    return program, name


def _endings(windows: HostEnvironment) -> list[str]:
    return windows.environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").lower().split(";")


def _search_path(windows: HostEnvironment, paths: WslPaths) -> list[Path]:
    found: list[Path] = []
    for text in windows.environ.get("PATH", "").split(";"):
        try:
            folder = paths.linux(text.strip('"'))
        except ToolError:
            continue
        found += [Path(folder)] if folder else []
    return found


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:
        return False


def _here(paths: WslPaths, key: str, text: str) -> str:
    try:
        path = paths.linux(text)
    except ToolError as problem:
        raise NotImportable(f"{key}: {problem.message}") from None
    if path is None:
        raise NotImportable(f"{key}: {text} is no whole path of Windows")
    return path
