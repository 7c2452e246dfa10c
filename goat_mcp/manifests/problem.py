"""What is wrong with a manifest: where it stands, what it is, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Level = Literal["error", "warning", "note"]
"""An `error` leaves the document out. A `warning` is about one that is used, a `note` about what may well be meant."""


@dataclass(frozen=True, order=True)
class ManifestProblem:
    """One fault of one document. `line` is 0 for what is about a directory, or the whole of a file."""

    file: Path
    line: int
    what: str
    remedy: str
    level: Level = "error"

    @property
    def is_fatal(self) -> bool:
        """Whether the document is left out."""
        return self.level == "error"

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)

    def __str__(self) -> str:
        return f"{self.location}: {self.what}; {self.remedy}"

    def as_compiler_line(self) -> str:
        """With its level, as compilers write it: editors and CI find file and line by that."""
        return f"{self.location}: {self.level}: {self.what}; {self.remedy}"

    def as_json(self) -> dict[str, str | int | bool]:
        return {
            "file": str(self.file),
            "line": self.line,
            "level": self.level,
            "what": self.what,
            "remedy": self.remedy,
            "is_fatal": self.is_fatal,
        }


class BrokenManifest(Exception):
    """A document, or a file of them, that cannot be used."""

    def __init__(self, *problems: ManifestProblem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
