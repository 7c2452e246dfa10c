"""tar: listing an archive. Making and unpacking one writes, and many of its options run programs."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.shell.options.table import Arguments, OptionTable


def _only_lists(arguments: Arguments) -> str:
    return (
        "" if {"-t", "--list"} & set(arguments.options) else "only listing an archive (tar -tf) is known to be harmless"
    )


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
    old_style = words[:1] and not words[0].startswith("-")
    problem = _TABLE.problem([f"-{words[0]}", *words[1:]] if old_style else words)
    if not problem and any(":" in word for word in words):
        return "an archive with a colon in its name is fetched from another machine"
    return problem
