"""What is wrong with a manifest: where it stands, what it is, and what to write instead."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class ManifestProblem:
    """One fault of one document. The document is left out, or with `is_fatal` false used nevertheless.

    `line` is 0 for what is about a directory, or the whole of a file.
    """

    file: Path
    line: int
    what: str
    remedy: str
    is_fatal: bool = True

    @property
    def location(self) -> str:
        return f"{self.file}:{self.line}" if self.line else str(self.file)

    def __str__(self) -> str:
        return f"{self.location}: {self.what}; {self.remedy}"


class BrokenManifest(Exception):
    """A document, or a file of them, that cannot be used."""

    def __init__(self, *problems: ManifestProblem) -> None:
        super().__init__("\n".join(map(str, problems)))
        self.problems = problems
