"""What one command runs beside itself, as it is found. Who runs what is not known here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.commands.shell.running_programs import RUN_BY_VARIABLE
from goat_mcp.commands.shell.words import Word

READ_AS_FILES = ("/dev/", "/proc/")


@dataclass
class Inner:
    """What one command runs beside itself."""

    commands: list[list[Word]] = field(default_factory=list[list[Word]])
    texts: list[str] = field(default_factory=list[str])
    reads_stdin: bool = False
    """It is a shell that takes its script from standard input."""
    hidden: str = ""

    def add_text(self, words: Sequence[Word], by: str) -> None:
        """Text that `by` has a shell run."""
        if any(not word.literal for word in words):
            self.hidden = f"{by} of text that is not literal"
        self.texts.append(" ".join(word.text for word in words))

    def add_commands(self, candidates: Sequence[list[Word]]) -> None:
        self.commands.extend(command for command in candidates if command)


def assigned(inner: Inner, name: str, value: Word) -> None:
    """`NAME=VALUE`: programs run the text of some variables (GIT_PAGER)."""
    if name in ("BASH_ENV", "ENV") and value.text.startswith(READ_AS_FILES):
        inner.hidden = "a shell that reads what other commands print"
    if RUN_BY_VARIABLE.match(name) or name.startswith("GIT_CONFIG_VALUE_"):
        inner.add_text([Word(value.text.removeprefix("!"), value.literal)], name)
