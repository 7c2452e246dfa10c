"""Which protected paths were found in earlier looks, also by earlier processes: what lies in a workspace longer is
protected first, so that nothing a command makes there can take its place. How they are found lies elsewhere."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

_FILE = "found"
"""Not `.json`: so are the notes of placeholders, in the same folder."""
_MAX_KEPT = 500


@dataclass(frozen=True)
class Found:
    """Paths below a directory, those first that are known for longest. `git`: git directories and what leads to
    them; `others`: what editors, shells and agents obey."""

    git: tuple[Path, ...] = ()
    others: tuple[Path, ...] = ()

    def with_more(self, git: Iterable[Path], others: Iterable[Path]) -> Found:
        return Found(tuple(dict.fromkeys((*self.git, *git))), tuple(dict.fromkeys((*self.others, *others))))

    def still_there(self) -> Found:
        return Found(*(tuple(islice(filter(_is_there, paths), _MAX_KEPT)) for paths in (self.git, self.others)))


class ExistingPaths:
    """Blocking; for one thread at a time.

    Args:
        folder: a private one, in which it is kept. None: for the time of this process only.
    """

    def __init__(self, folder: Callable[[], Path] | None = None) -> None:
        self._folder = folder
        self._known: dict[Path, Found] = {}

    def below(self, top: Path) -> Found:
        """What was found below `top` and is still there."""
        if top not in self._known:
            self._known[top] = self._read().get(str(top), Found())
        return self._known[top].still_there()

    def keep(self, top: Path, found: Found) -> None:
        """From now on this is what is known. Where it cannot be written, this process alone knows it."""
        found = found.still_there()
        if found == self._known.get(top):
            return
        self._known[top] = found
        if self._folder is None:
            return
        # Another process may have found more meanwhile; a directory that is gone needs no entry.
        kept = {name: one for name, one in self._read().items() if Path(name).is_dir()}
        there = kept.get(str(top), Found())
        kept[str(top)] = found.with_more(there.git, there.others).still_there()
        with contextlib.suppress(OSError):
            self._write(self._folder() / _FILE, kept)

    def _read(self) -> dict[str, Found]:
        """Damaged notes name nothing: what is there is then found anew."""
        if self._folder is None:
            return {}
        try:
            data: dict[str, Any] = json.loads((self._folder() / _FILE).read_bytes())
            return {
                top: Found(tuple(map(Path, one["git"])), tuple(map(Path, one["others"]))) for top, one in data.items()
            }
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return {}

    def _write(self, file: Path, kept: Mapping[str, Found]) -> None:
        data = {top: {"git": [*map(str, one.git)], "others": [*map(str, one.others)]} for top, one in kept.items()}
        new = file.with_name(f"{file.name}.{secrets.token_hex(4)}.new")
        # ASCII, with escapes for the bytes of names that are no UTF-8.
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w", encoding="ascii") as text:
            json.dump(data, text)
        new.replace(file)


def _is_there(path: Path) -> bool:
    """At its own place: not where a link has come to lead to."""
    return os.path.lexists(path) and os.path.realpath(path) == str(path)
