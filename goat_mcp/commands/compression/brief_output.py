"""What is brief already: a directory's name, `git log --oneline`, `git status --short`. It stays as it is; that it is
known lets what is printed beside it be compressed."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressed import Compressed
from goat_mcp.commands.shell.names import Words

_ONE_COMMIT = re.compile(r"[0-9a-f]{7,40} .*")
_ONE_FILE = re.compile(r"## .+|[ MTADRCU?!]{2} .+")


def press_pwd(words: Words, lines: Sequence[str]) -> Compressed | None:
    return Compressed((lines[0],), 1) if lines[0].startswith("/") else None


def press_one_line_log(words: Words, lines: Sequence[str]) -> Compressed | None:
    return _while(_ONE_COMMIT, lines)


def press_short_status(words: Words, lines: Sequence[str]) -> Compressed | None:
    return _while(_ONE_FILE, lines)


def _while(pattern: re.Pattern[str], lines: Sequence[str]) -> Compressed:
    taken = next((at for at, line in enumerate(lines) if not pattern.fullmatch(line)), len(lines))
    return Compressed(tuple(lines[:taken]), taken)
