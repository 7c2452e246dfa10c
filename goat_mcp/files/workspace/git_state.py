"""Which files of a git directory a commit needs, and which of the others git obeys. Pure: looks at names alone."""

from __future__ import annotations

import re
from collections.abc import Sequence

GIT = ".git"
SET_ASIDE = "set-aside-by-goat-mcp"
"""In a git directory: what sandboxed commands made there and git would obey. Git knows no such name."""

_COMMIT_FOLDERS = frozenset({"objects", "refs", "reftable", "logs", "rr-cache", "lfs", SET_ASIDE})
_COMMIT_FILE = re.compile(
    r"(?:(?:[A-Z]+_)*HEAD|(?:[A-Z]+_)+(?:EDITMSG|MSG|MODE|RR|DESCRIPTION|AUTOSTASH)|AUTO_MERGE"
    r"|NOTES_MERGE_(?:REF|PARTIAL)|(?:shared|next-)?index(?:[.-][\w.-]+)?|packed-refs(?:\.new)?|shallow(?:_\w+)?"
    r"|gc\.(?:pid|log)|description|locked|addp-hunk-edit\.diff)(?:\.lock)?"
)
_ALTERNATES = frozenset({"alternates", "http-alternates"})
_OTHER_REPOSITORIES = frozenset({"worktrees", "modules"})

RUN_BY_GIT = (
    *("config", "hooks", "commondir", "config.worktree", "gitdir", "modules"),
    *("rebase-merge", "rebase-apply", "sequencer"),
)
"""The best known of what it obeys: what runs programs, or names where the configuration lies."""
LISTS = frozenset({"info", "branches", "remotes"})
"""Directories that a commit may need to write to, with files in them that git obeys."""
RESUMED = re.compile(r"rebase-merge|rebase-apply|sequencer|BISECT_[A-Z_]+|NOTES_MERGE_WORKTREE")
"""What git makes when an operation stops halfway, and goes on from later."""
OF_A_GIT_DIRECTORY = frozenset(
    {"head", "objects", "refs", "logs", "info", "packed-refs", "worktrees", "branches", "remotes", *RUN_BY_GIT}
)
"""In lower case."""


def commit_needs(parts: Sequence[str]) -> bool:
    """Whether a commit, a checkout or a merge writes this path below a git directory, which runs nothing by it."""
    if not parts:
        return False
    first, rest = parts[0], parts[1:]
    if first in _OTHER_REPOSITORIES:
        return commit_needs(rest[1:])
    if first == "objects" and rest[:1] == ["info"] and len(rest) > 1:
        return rest[1] not in _ALTERNATES
    if first == "info":
        # `exclude` is no more than a .gitignore, which a command can write anywhere.
        return len(rest) == 1 and (rest[0] == "exclude" or rest[0].startswith("refs"))
    return first in _COMMIT_FOLDERS or (not rest and _COMMIT_FILE.fullmatch(first) is not None)
