"""One bash script for rules. Nothing is run or opened here: `plain` reads what an allow rule may let pass, and
`command_extraction` what a deny rule must look at."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from goat_mcp.commands.shell.mentions import Mentions
from goat_mcp.commands.shell.words import MAX_COMMANDS, MAX_SCRIPT_BYTES, Words, bare_name

if TYPE_CHECKING:  # brings tree_sitter
    from goat_mcp.commands.shell.command_extraction import ExtractedCommands
    from goat_mcp.commands.shell.script_files import ScriptFiles

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
TOO_SLOW = "text that takes too long to read"


@dataclass(frozen=True)
class ShellScript:
    """`commands`: the literal words of each command, in order, if the script is plain; else empty.

    `not_plain`: empty, or the first reason why no allow rule may let the script pass.
    `all_commands`: every command that a deny or ask rule looks at, each with its program's bare name first.
    `hidden`: empty, or why more than `all_commands` may run.
    `extracted`: what rules about files look at. `mentions`: names of programs outside of commands.
    """

    commands: tuple[Words, ...]
    not_plain: str
    all_commands: tuple[Words, ...]
    hidden: str
    extracted: ExtractedCommands | None = None
    mentions: Mentions = field(default_factory=Mentions)

    @cached_property
    def programs(self) -> frozenset[str]:
        """The names of the programs of `all_commands`, in lower case."""
        return frozenset(bare_name(words[0]).casefold() for words in self.all_commands)

    @cached_property
    def files(self) -> ScriptFiles:
        """The files that its commands name."""
        from goat_mcp.commands.shell.script_files import script_files

        return script_files(self.extracted, self.hidden, str(Path.home()))


def read_script(text: str) -> ShellScript:
    """Read a script. Never raises, and its work is bounded whatever the text is (R-SHELL-6)."""
    if refused := _not_worth_parsing(text):
        return ShellScript((), refused, (), refused)
    # Here, because this brings tree_sitter: no start-up should pay for it.
    from goat_mcp.commands.shell.command_extraction import extract_commands
    from goat_mcp.commands.shell.plain_commands import plain_commands
    from goat_mcp.commands.shell.syntax_tree import parse

    tree = parse(text)
    if tree is None:
        return ShellScript((), TOO_SLOW, (), TOO_SLOW)
    commands, not_plain = plain_commands(tree)
    if len(commands) > MAX_COMMANDS:
        commands, not_plain = (), f"more than {MAX_COMMANDS} commands"
    found = extract_commands(text, tree, commands)
    return ShellScript(commands, not_plain, found.commands, found.hidden, found, found.mentions)


def _not_worth_parsing(text: str) -> str:
    if len(text) > MAX_SCRIPT_BYTES or len(text.encode("utf-8", "surrogatepass")) > MAX_SCRIPT_BYTES:
        return f"more than {MAX_SCRIPT_BYTES // 1024} KB of text"
    if text.isascii() and not _CONTROLS.search(text):
        return ""
    return next((name for character in text if (name := _invisible(character))), "")


def _invisible(character: str) -> str:
    """The name of a character that a person does not see, or takes for another; empty for visible ones."""
    if character in "\n\t":
        return ""
    category = unicodedata.category(character)
    shown = f"(U+{ord(character):04X})"
    if category == "Cc":
        return f"a control character {shown}"
    if category in ("Cf", "Cs", "Co", "Cn", "Zl", "Zp") or 0xFE00 <= ord(character) <= 0xFE0F:
        return f"an invisible character {shown}"
    if (category == "Zs" and character != " ") or character in "\u115f\u1160\u3164\uffa0\u2800":
        return f"a blank that is no space {shown}"
    return ""
