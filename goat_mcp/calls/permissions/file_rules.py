"""What the rules say of a file, whoever asks: the workspace, a search, a sandbox. Calls are judged elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from goat_mcp.calls.permissions.rules import RuleSet


class FileRules:
    """`rules` for the workspace as it is when one asks: `roots`."""

    def __init__(self, rules: RuleSet, roots: Callable[[], Sequence[Path]]) -> None:
        self._rules = rules
        self._roots = roots

    @property
    def hide_some(self) -> bool:
        """Whether some files may not be read, or not unasked."""
        return self._rules.hides_files

    def why_denied(self, path: str, writes: bool) -> str:
        """The rule that forbids to read or write a file; empty where there is none."""
        if not self._rules.deny.rules:
            return ""
        return self._rules.denying_path(path, self._named_roots(), writes=writes)

    def hides(self, path: str) -> bool:
        """Whether a search leaves the file out."""
        return self._rules.hides(path, self._named_roots())

    def forbids_to_read(self, path: str) -> bool:
        """Whether nobody may be asked for it."""
        return bool(self.why_denied(path, writes=False))

    def never_read(self) -> list[Path]:
        """The files that a rule names as they are, and not by a pattern."""
        return [Path(path) for path in self._rules.never_read(self._named_roots())]

    @property
    def keep_some(self) -> bool:
        """Whether commands may not change some files."""
        return self._rules.keeps_files

    def forbids_commands_to_write(self, path: str) -> bool:
        """Whether a command may not change a file, or what is in a directory."""
        return self._rules.denies_commands_to_write(path, self._named_roots())

    def never_written(self) -> list[Path]:
        """As `never_read`, of what commands may not change."""
        return [Path(path) for path in self._rules.never_written(self._named_roots())]

    def _named_roots(self) -> tuple[str, ...]:
        return tuple(map(str, self._roots()))
