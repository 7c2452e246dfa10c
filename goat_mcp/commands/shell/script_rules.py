"""What rules mean for a script: allow rules cover it, a deny or ask rule matches. Their order is decided elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.commands.shell.options.text_programs import READERS
from goat_mcp.commands.shell.options.unsafe import unsafe_option
from goat_mcp.commands.shell.pattern import CommandPattern
from goat_mcp.commands.shell.script_parsing import ShellScript
from goat_mcp.commands.shell.words import bare_name

_SHOWN_CHARS = 60
_CHANGE_DIRECTORY = frozenset({"cd", "pushd", "popd"})


def allowed_by(script: ShellScript, patterns: Sequence[CommandPattern]) -> str:
    """Empty if the allow patterns cover each command of a plain script, else why not."""
    if script.not_plain:
        return f"holds {script.not_plain}, and no rule lets that pass unasked"
    if any(_changes_directory(words) for words in script.commands):
        # The rule's `make`, `./run.sh` and the hardened repository belong to the directory that the script begins in.
        other = next((words[0] for words in script.commands if not _is_same_everywhere(words[0])), "")
        if other:
            return f"changes the directory and runs {other}, which would do what that directory holds"
    for words in script.commands:
        if reason := _not_covered(words, patterns):
            return reason
    return ""


def _changes_directory(words: Sequence[str]) -> bool:
    # `command cd x` and `builtin cd x` have an exact rule.
    return not _CHANGE_DIRECTORY.isdisjoint(words if words[0] in ("command", "builtin", "eval") else words[:1])


def _is_same_everywhere(name: str) -> bool:
    """Whether a program runs nothing from the directory in which it is started."""
    is_relative = "/" in name and not name.startswith("/")
    return name in _CHANGE_DIRECTORY or (not is_relative and bare_name(name) in READERS)


def denied_by(script: ShellScript, pattern: CommandPattern) -> bool:
    """Whether the pattern of a deny or ask rule matches a command of the script, or a word that a program may run.

    The caller checks `hidden`.
    """
    return _is_command(script, pattern) or _mention(script, pattern) != ""


def why_denied(script: ShellScript, pattern: CommandPattern) -> str:
    """The word with the program that a rule names, and why it counts; empty if that is a command, or in no word."""
    if _is_command(script, pattern):
        return ""
    mention = _mention(script, pattern)
    if not mention:
        return ""
    shown = _shortened(mention)
    return f"`{shown}` names {pattern.program}, and may run it: only in what is known to be mere text a name is none"


def _is_command(script: ShellScript, pattern: CommandPattern) -> bool:
    if pattern.only_program and pattern.only_program not in script.programs:
        return False
    return any(pattern.matches_any_spelling(words) for words in script.all_commands)


def _mention(script: ShellScript, pattern: CommandPattern) -> str:
    """The word in which the program of a pattern stands, if the pattern matches there; else empty."""
    if not pattern.program or not script.mentions.may_name(pattern.program):
        return ""
    mentions = script.mentions.of(pattern.program)
    return next((text for text, command in mentions if pattern.matches_any_spelling(command)), "")


def _not_covered(words: Sequence[str], patterns: Sequence[CommandPattern]) -> str:
    shown = _shortened(" ".join(words))
    reason = f"no rule allows `{shown}`"
    for pattern in patterns:
        if not pattern.matches(words):
            continue
        if pattern.is_exact:
            return ""
        if pattern.names_any_program:
            reason = f"`{shown}`: the rule {pattern.text} names no program"
            continue
        unsafe = unsafe_option(
            words,
            named_words=pattern.named_words,
            spelled=frozenset(word for word in words if pattern.spells(word)),
        )
        if not unsafe:
            return ""
        reason = f"`{shown}`: {unsafe}"
    return reason


def _shortened(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."
