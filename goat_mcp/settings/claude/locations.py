"""A JSON file whose parts know the line they stand on, so that a rule or an error can name it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from goat_mcp.settings.json_spans import array_at, object_at, skip_blanks

MAX_BYTES = 1024 * 1024


class BrokenClaudeSettings(ValueError):
    """A file that cannot be used; the text names file, line and what is wanted."""


class JsonFile:
    """The text of one file. Parts are named by where they begin in it; `root` is the whole.

    Raises `BrokenClaudeSettings`, as all that reads it does.
    """

    def __init__(self, path: Path, data: bytes | None = None) -> None:
        self.path = path
        data = _content_of(path) if data is None else data
        if len(data) > MAX_BYTES:
            raise BrokenClaudeSettings(f"{path}: is longer than {MAX_BYTES} bytes")
        try:
            self._text = data.decode("utf-8-sig")
            json.loads(self._text)
        except UnicodeDecodeError:
            raise BrokenClaudeSettings(f"{path}: is not UTF-8 text") from None
        except json.JSONDecodeError as broken:
            raise BrokenClaudeSettings(f"{path}:{broken.lineno}: not valid JSON: {broken.msg}") from None
        except (ValueError, RecursionError):
            raise BrokenClaudeSettings(f"{path}: not valid JSON: nested too deep, or a number too long") from None
        self.root = skip_blanks(self._text, 0)

    def place(self, at: int) -> str:
        """`PATH:LINE`."""
        return f"{self.path}:{self._text.count(chr(10), 0, at) + 1}"

    def broken(self, at: int, message: str) -> BrokenClaudeSettings:
        return BrokenClaudeSettings(f"{self.place(at)}: {message}")

    def value(self, at: int) -> Any:
        return json.JSONDecoder().raw_decode(self._text, at)[0]

    def members(self, at: int, name: str) -> dict[str, int]:
        """Where the values of the object `name` begin. A key that is there twice is an error: one would not count."""
        if self._text[at] != "{":
            raise self.broken(at, f"{name} has to be an object")
        found: dict[str, int] = {}
        for member in object_at(self._text, at).members:
            if member.key in found:
                raise self.broken(member.start, f"{name} has {member.key!r} twice")
            found[member.key] = member.value_start
        return found

    def items(self, at: int, name: str) -> list[int]:
        """Where the items of the list `name` begin."""
        if self._text[at] != "[":
            raise self.broken(at, f"{name} has to be a list")
        return [item.start for item in array_at(self._text, at).items]

    def text(self, at: int, name: str) -> str:
        value = self.value(at)
        if not isinstance(value, str) or not value.strip():
            raise self.broken(at, f"{name} has to be a text that is not empty")
        return value


def _content_of(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise BrokenClaudeSettings(f"{path}: there is no such file")
        with path.open("rb") as file:
            return file.read(MAX_BYTES + 1)
    except OSError as problem:
        raise BrokenClaudeSettings(f"{path}: cannot be read: {problem.strerror}") from None
