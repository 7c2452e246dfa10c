"""Allow rules that a person chose to remember: one JSON line each, in a file for each workspace.

A rule holds only for the principal who gave it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from goat_mcp.calls.permissions.rule import BrokenRule, Rule, parse_rule
from goat_mcp.core import posix
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_safety import why_not_ours, why_writable
from goat_mcp.state.own_file import open_own
from goat_mcp.state.private_file import write_private

FOLDER = "rules"
_MAX_BYTES = 4 * 1024 * 1024
_ID_CHARS = 8


@dataclass(frozen=True, slots=True)
class RememberedRule:
    """One line. `id` is short, and that of the same answer given again. `at_s` is when it was given, 0 if unknown."""

    id: str
    rule: Rule
    principal: str
    at_s: float


class RememberedRules:
    """The rules of one workspace, `scope`. Several processes may add to them; each sees what the others added.

    A line that cannot be read is left out and told to `warn` once: fewer things are then allowed.
    """

    def __init__(self, state: StateDirectory, scope: str, warn: Callable[..., None]) -> None:
        self._state = state
        self._scope = scope
        self._warn = warn
        self._looked_at = str(self.path)
        self._seen: tuple[int, int, int] | None = None
        self._rules: dict[str, tuple[Rule, ...]] = {}

    @property
    def path(self) -> Path:
        return self._state.path / FOLDER / f"{self._scope}.jsonl"

    def of(self, principal: str) -> tuple[Rule, ...]:
        """The rules this principal gave, as they stand in the file now."""
        try:
            found = os.stat(self._looked_at)  # noqa: PTH116  # each call looks: making a path costs more than the look
        except OSError:
            return ()
        seen = (found.st_ino, found.st_size, found.st_mtime_ns)
        if seen != self._seen:
            self._rules = self._read()
            self._seen = seen
        return self._rules.get(principal, ())

    def add(self, principal: str, texts: Sequence[str], directory: str = "") -> None:
        """Write rules down, those about commands for one directory. Raises `OSError` if that cannot be done."""
        folder = self._state.folder(FOLDER)
        place = {"directory": directory} if directory else {}
        lines = [
            json.dumps({"allow": text, "principal": principal, **place, "ts": round(time.time(), 3)}) + "\n"
            for text in texts
        ]
        with self._state.editing(FOLDER):
            self._append(folder / f"{self._scope}.jsonl", lines)

    def _append(self, path: Path, lines: list[str]) -> None:
        descriptor = open_own(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
        try:
            size = os.fstat(descriptor).st_size
            if size and posix.pread(descriptor, 1, size - 1) != b"\n":
                lines.insert(0, "\n")  # the last writer was killed in the middle of a line
            os.write(descriptor, "".join(lines).encode())
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def oldest_first(self) -> tuple[RememberedRule, ...]:
        """Everybody's, each once. Raises `OSError` if they cannot be read."""
        found = (one for _, one in self._lines() if one is not None)
        return tuple({one.id: one for one in found}.values())

    def forget(self, which: str) -> tuple[RememberedRule, ...]:
        """Take back what has this id, or this text. Raises `OSError`.

        An answer that another process writes down at this very moment may be lost: then it is asked for again.
        """
        with self._state.editing(FOLDER):
            return self._forget(which)

    def _forget(self, which: str) -> tuple[RememberedRule, ...]:
        lines = list(self._lines())
        gone = {one.id: one for _, one in lines if one is not None and which in (one.id, one.rule.text)}
        if gone:
            kept = [line for line, one in lines if one is None or one.id not in gone]
            write_private(self.path, "".join(f"{line}\n" for line in kept).encode())
        return tuple(gone.values())

    def _read(self) -> dict[str, tuple[Rule, ...]]:
        found: dict[str, tuple[Rule, ...]] = {}
        try:
            for _, one in self._lines():
                if one is not None:
                    found[one.principal] = (*found.get(one.principal, ()), one.rule)
        except OSError as problem:
            self._warn("remembered rules are not used", path=str(self.path), problem=problem.strerror or str(problem))
            return {}
        return found

    def _lines(self) -> Iterator[tuple[str, RememberedRule | None]]:
        """Each line, with None for one that is no rule. Raises `OSError`."""
        for number, line in enumerate(self._text().splitlines(), start=1):
            if not line.strip():
                continue
            origin = f"{self.path}:{number}"
            try:
                yield line, _parsed(line, origin)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as problem:
                reason = str(problem) if isinstance(problem, BrokenRule) else "no such line was written here"
                self._warn("a remembered rule is left out", path=origin, problem=reason)
                yield line, None

    def _text(self) -> str:
        """Raises `OSError` for a file that somebody else could have written."""
        descriptor = open_own(self.path, os.O_RDONLY)
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as file:
            found = os.fstat(file.fileno())
            if why := why_not_ours(found) or why_writable(found):
                raise OSError(errno.EPERM, why)
            return file.read(_MAX_BYTES)


def _parsed(line: str, origin: str) -> RememberedRule:
    entry = cast("dict[str, Any]", json.loads(line))
    text, principal, directory = entry["allow"], entry["principal"], entry.get("directory", "")
    if not all(isinstance(value, str) for value in (text, principal, directory)):
        raise TypeError
    rule = replace(parse_rule(text, origin=origin), directory=directory)
    at_s: Any = entry.get("ts", 0)
    key = json.dumps([rule.text, principal, directory])
    id = hashlib.sha256(key.encode()).hexdigest()[:_ID_CHARS]
    return RememberedRule(id, rule, principal, float(at_s) if isinstance(at_s, int | float) else 0.0)
