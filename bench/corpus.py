"""A source tree to search: many small files in a realistic shape, the same at every run. Whoever asked removes it.

What a pattern finds is known: `RARE` stands in three files, `COMMON` in about a fifth, `ABSENT` in none.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

RARE = "quokka_sentinel"
COMMON = "retry_budget"
ABSENT = "zyzzyva_nowhere"
NEWEST_TIME_S = 1_750_000_000
_KINDS = ((".py", 40), (".ts", 20), (".md", 10), (".json", 10), (".css", 5), (".go", 10), (".txt", 5))
_VOCABULARY = (
    "account adapter batch buffer cache channel client config context cursor decode deliver encode event fetch field "
    "filter format handler index insert invoice iterate journal kernel layout ledger logger manager mapping message "
    "metric module network notify object option packet parser payload policy process protocol queue reader record "
    "registry render request response result return router schema search select server session signal socket source "
    "status storage stream string submit supply switch symbol table target template thread token trace transfer "
    "update upload validate value vector vendor verify version visit volume window worker writer"
)
_WORDS = _VOCABULARY.split()


@dataclass(frozen=True)
class Corpus:
    """A tree at `root` with `files` that are not ignored and `ignored_files` that are."""

    root: Path
    files: int
    ignored_files: int


def make_corpus(root: Path, *, files: int, ignored_files: int, on_progress: Callable[[str], None]) -> Corpus:
    """Write the tree below `root`, which must be empty or absent."""
    chance = random.Random(20)
    kinds = [kind for kind, share in _KINDS for _ in range(share)]
    lines = [_line(chance) for _ in range(4000)]
    folders = _folders(root, files // 40, chance)
    for number in range(files):
        path = chance.choice(folders) / f"{chance.choice(_WORDS)}_{number}{chance.choice(kinds)}"
        _write(path, number, lines, chance)
        if number % 5000 == 4999:
            on_progress(f"corpus: {number + 1} of {files} files")
    build = root / "build"
    build.mkdir()
    for number in range(ignored_files):
        _write(build / f"out_{number}.js", number, lines, chance)
    # ripgrep alone heeds .gitignore only inside a repository.
    (root / ".git").mkdir()
    (root / ".gitignore").write_text("build/\n*.log\nnode_modules/\n", encoding="utf-8")
    return Corpus(root, files + 1, ignored_files)


def _folders(root: Path, count: int, chance: random.Random) -> list[Path]:
    """A tree of folders, most of them four or five levels deep."""
    levels: list[list[Path]] = [[root]]
    while sum(map(len, levels)) < count:
        above = levels[-1] if len(levels[-1]) < 8 else chance.sample(levels[-1], 8 + len(levels[-1]) // 2)
        levels.append([folder / f"{chance.choice(_WORDS)}_{number}" for folder in above for number in range(6)])
    made = [folder for level in levels[1:] for folder in level]
    root.mkdir(parents=True, exist_ok=True)
    for folder in made:
        folder.mkdir()
    return made


def _line(chance: random.Random) -> str:
    words = " ".join(chance.choice(_WORDS) for _ in range(chance.randint(3, 9)))
    return f"{' ' * 4 * chance.randint(0, 3)}{words}\n"


def _write(path: Path, number: int, lines: list[str], chance: random.Random) -> None:
    start = chance.randrange(len(lines))
    body = lines[start : start + chance.randint(15, 220)]
    if number % 5 == 0:
        body.insert(len(body) // 2, f"    {COMMON} = {number}\n")
    if number % 20_000 == 11:
        body.insert(len(body) // 2, f"    {RARE} = {number}\n")
    path.write_text("".join(body), encoding="utf-8")
    modified = NEWEST_TIME_S - chance.randrange(30_000_000)
    os.utime(path, (modified, modified))
