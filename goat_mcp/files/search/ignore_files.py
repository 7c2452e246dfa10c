"""Where ignore rules are written: in the directories above a search, and in git's global configuration.

What the rules in them mean is the engines' business.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

IGNORE_NAMES = (".rgignore", ".ignore", ".gitignore")
"""In order of precedence."""
REPOSITORY_EXCLUDE = ".git/info/exclude"
_EXCLUDES_FILE = re.compile(rb"(?im)^\s*excludesfile\s*=\s*\"?\s*([^\"\r\n]+?)\s*\"?\s*$")


def directories_above(real_path: str) -> Iterator[Path]:
    """The parents whose ignore files apply: up to the top of the repository, or of the file system without one."""
    here = Path(real_path)
    while not (here / ".git").exists() and here != here.parent:
        here = here.parent
        yield here


def ignore_files_above(real_path: str) -> tuple[str, ...]:
    """Every file that may hold rules for a search in `real_path` and does not lie below it."""
    above = [
        str(directory / name)
        for directory in directories_above(real_path)
        for name in (*IGNORE_NAMES, REPOSITORY_EXCLUDE)
        if _is_file(directory / name)
    ]
    return (*above, *global_configuration())


def global_configuration(environment: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Git's configuration files and the excludes file they name, in git's order, as far as they exist."""
    configurations = [str(path) for path in _configuration_paths(environment) if _is_file(path)]
    excludes = global_excludes(environment)
    return (*configurations, *([str(excludes)] if excludes is not None else []))


def global_excludes(environment: Mapping[str, str] = os.environ) -> Path | None:
    """The file of `core.excludesFile`, or its default place; None where it does not exist."""
    for configuration in _configuration_paths(environment):
        try:
            named = _EXCLUDES_FILE.search(configuration.read_bytes())
        except OSError:
            continue
        if named:
            path = Path(os.fsdecode(named[1])).expanduser()
            return path if _is_file(path) else None
    for directory in _git_directories(environment):
        if _is_file(directory / "ignore"):
            return directory / "ignore"
    return None


def _is_file(path: Path) -> bool:
    return os.path.isfile(path)  # noqa: PTH113  # `Path.is_file` raises for what may not be looked at


def _configuration_paths(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("HOME")
    if home:
        yield Path(home, ".gitconfig")
    for directory in _git_directories(environment):
        yield directory / "config"


def _git_directories(environment: Mapping[str, str]) -> Iterator[Path]:
    home = environment.get("HOME")
    if environment.get("XDG_CONFIG_HOME"):
        yield Path(environment["XDG_CONFIG_HOME"], "git")
    elif home:
        yield Path(home, ".config", "git")
