"""tar: listing an archive. Making and unpacking one writes, and many of its options run programs."""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.shell.options.table import Arguments, OptionTable


def _only_lists(arguments: Arguments) -> str:
    if not arguments.has("-t", "--list"):
        return "only listing an archive (tar -tf) is known to be harmless"
    if any(":" in name for name in arguments.values("-f", "--file")):
        return "an archive with a colon in its name is fetched from another machine"
    return ""


_TABLE = OptionTable(
    "tvzjJa",
    "f",
    "",
    "list verbose gzip bzip2 xz zstd auto-compress full-time utc help version",
    "file exclude",
    check=_only_lists,
)


def tar_problem(words: Sequence[str]) -> str:
    """Empty, or why a tar command does more than list."""
    if words[:1] and not words[0].startswith("-"):
        # Old style: each letter with a value takes one of the next words, in turn.
        if not re.fullmatch(r"[tvzjJa]*f?[tvzjJa]*", words[0]):
            return f"{words[0]} is not known to be harmless"
        letters, names = words[0].replace("f", ""), words[1:2] if "f" in words[0] else ()
        words = [f"-{letters}", *(f"--file={name}" for name in names), *words[1 + len(names) :]]
    return _TABLE.problem(words)
