"""What rules say about a script: may it pass by allow rules, is it caught by a deny or ask rule? Which rule wins over
which is not decided here."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.commands.shell.options.text_programs import READERS
from goat_mcp.commands.shell.options.unsafe import unsafe_option
from goat_mcp.commands.shell.pattern import CommandPattern
from goat_mcp.commands.shell.script import ShellScript
from goat_mcp.commands.shell.words import bare_name

_SHOWN_CHARS = 60
_CHANGE_DIRECTORY = frozenset({"cd", "pushd", "popd"})


def allowed_by(script: ShellScript, patterns: Sequence[CommandPattern]) -> str:
    """Empty if each command of a plain script is let pass by one of the allow patterns, else why not."""
    if script.not_plain:
        return f"holds {script.not_plain}, and no rule lets that pass unasked"
    if any(_changes_directory(words) for words in script.commands):
        # The rule's `make`, `./run.sh` and the hardened repository are those of the directory the script begins in.
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
    """Whether a program runs nothing that the directory it is started in could have brought along."""
    is_relative = "/" in name and not name.startswith("/")
    return name in _CHANGE_DIRECTORY or (not is_relative and bare_name(name) in READERS)


def denied_by(script: ShellScript, pattern: CommandPattern) -> bool:
    """Whether a deny or ask rule's pattern is met by any command that can be seen, or by a word that a program may
    run. The caller looks at `hidden`."""
    return any(pattern.matches_any_spelling(words) for words in script.seen) or _mention(script, pattern) != ""


def why_denied(script: ShellScript, pattern: CommandPattern) -> str:
    """In which word the program stands that a rule names; empty if it is a command of the script, or in none."""
    if any(pattern.matches_any_spelling(words) for words in script.seen):
        return ""
    mention = _mention(script, pattern)
    if not mention:
        return ""
    shown = _shortened(mention)
    return f"`{shown}` names {pattern.program}, and may run it: only in what is known to be mere text a name is none"


def _mention(script: ShellScript, pattern: CommandPattern) -> str:
    if not pattern.program:
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
