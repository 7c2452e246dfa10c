"""What rules say about a script: may it pass by allow rules, is it caught by a deny or ask rule? Which rule wins over
which is not decided here."""

from __future__ import annotations

from collections.abc import Sequence

from goat_mcp.shell.options import unsafe_option
from goat_mcp.shell.pattern import CommandPattern
from goat_mcp.shell.script import ShellScript

_SHOWN_CHARS = 60


def allowed_by(script: ShellScript, patterns: Sequence[CommandPattern]) -> str:
    """Empty if each command of a plain script is let pass by one of the allow patterns, else why not."""
    if script.not_plain:
        return f"holds {script.not_plain}, and no rule lets that pass unasked"
    names = [words[0] for words in script.commands]
    if {"cd", "pushd", "popd"} & set(names):
        # The rule's `./run.sh` and the repository that was hardened are those of the directory it begins in.
        relative = next((name for name in names if name == "git" or ("/" in name and not name.startswith("/"))), "")
        if relative:
            return f"changes the directory and runs {relative}, which could be another one there"
    for words in script.commands:
        if reason := _not_covered(words, patterns):
            return reason
    return ""


def denied_by(script: ShellScript, pattern: CommandPattern) -> bool:
    """Whether a deny or ask rule's pattern is met by any command that can be seen. The caller looks at `hidden`."""
    return any(pattern.matches_any_spelling(words) for words in script.seen)


def _not_covered(words: Sequence[str], patterns: Sequence[CommandPattern]) -> str:
    shown = " ".join(words)
    shown = shown if len(shown) <= _SHOWN_CHARS else shown[: _SHOWN_CHARS - 3] + "..."
    reason = f"no rule allows `{shown}`"
    for pattern in patterns:
        if not pattern.matches(words):
            continue
        if pattern.is_exact:
            return ""
        if pattern.names_any_program:
            reason = f"`{shown}`: the rule {pattern.text} names no program"
            continue
        unsafe = unsafe_option(words, named_words=pattern.named_words)
        if not unsafe:
            return ""
        reason = f"`{shown}`: {unsafe}"
    return reason
