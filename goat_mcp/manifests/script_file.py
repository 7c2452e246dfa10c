"""How a script file is run: by the program its first line names, as the kernel would, or else by bash."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.files.workspace import Workspace

MAX_READ_BYTES = 20_000
"""More than rules look into (R-SHELL-6), so that a longer one is seen to be too long."""
_CHUNK_BYTES = 1 << 20
_SHELLS = re.compile(r"(?:\S*/)?(?:ba|da|z|k|mk|a)?sh(?:-static)?\Z")
_PLAIN = ("bash",)


@dataclass(frozen=True)
class ScriptFile:
    """A script in the workspace. `text` is its beginning where a shell runs it, else empty."""

    path: Path
    program: tuple[str, ...]
    text: str
    sha256: str

    def argv(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        return (*self.program, str(self.path), *arguments)


def script_file(workspace: Workspace, asked: str) -> ScriptFile:
    """The script at a path, which may be relative to the workspace. Raises `ToolError` as opening a file does."""
    absolute = asked if asked.startswith(("/", "@")) else f"{workspace.primary}/{asked}"
    with workspace.open_file(workspace.resolve(absolute)) as opened:
        start, sha256 = _read(opened.fd)
        path = opened.real_path
    program = _program(start)
    is_shell = any(_SHELLS.match(word) for words in program for word in words.split())
    return ScriptFile(path, program, start.decode("utf-8", "replace") if is_shell else "", sha256)


def _read(fd: int) -> tuple[bytes, str]:
    """The beginning, and the hash of all: read once, so that it is the beginning of what was hashed."""
    with open(fd, "rb", closefd=False) as file:
        start = file.read(MAX_READ_BYTES)
        digest = hashlib.sha256(start)
        while part := file.read(_CHUNK_BYTES):
            digest.update(part)
    return start, digest.hexdigest()


def _program(start: bytes) -> tuple[str, ...]:
    """The program of a `#!` line and its one argument, if there is any: the kernel splits no further."""
    if not start.startswith(b"#!"):
        return _PLAIN
    line = start[2:].split(b"\n", 1)[0].decode("utf-8", "replace").strip(" \t\r")
    return tuple(line.split(None, 1)) or _PLAIN
