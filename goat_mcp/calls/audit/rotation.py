"""The names of a record's files: `audit.jsonl`, which grows, and before it `audit.000001.jsonl` and so on."""

from __future__ import annotations

import re
from pathlib import Path


def kept_files(path: Path) -> list[tuple[int, Path]]:
    """The finished files beside `path` with their numbers, oldest first."""
    pattern = re.compile(rf"{re.escape(path.stem)}\.(\d{{6,12}}){re.escape(path.suffix)}")
    try:
        found = [(match, file) for file in path.parent.iterdir() if (match := pattern.fullmatch(file.name))]
    except FileNotFoundError:
        return []
    return sorted((int(match.group(1)), file) for match, file in found)


def kept_name(path: Path, number: int) -> Path:
    return path.with_name(f"{path.stem}.{number:06d}{path.suffix}")


def next_number(path: Path) -> int:
    """The number that the growing file will be kept under."""
    kept = kept_files(path)
    return kept[-1][0] + 1 if kept else 1
