"""What an exit code says: some programs answer "no" with 1, and that is no failure."""

from __future__ import annotations

from goat_mcp.processes.script_words import SimpleCommand, simple_commands

_ANSWER_BY_EXIT = frozenset({"grep", "egrep", "fgrep", "rg", "find", "diff", "test", "[", "[["})
_GIT_ANSWERS = frozenset({"diff", "grep"})
_GIT_OPTIONS_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


def exit_1_is_an_answer(script: str) -> bool:
    """Whether exit code 1 of this script only says "nothing found", "different" or "no": its last command decides."""
    commands = simple_commands(script)
    if not commands:
        return False
    last = commands[-1]
    return last.name in _ANSWER_BY_EXIT or (last.name == "git" and _git_verb(last) in _GIT_ANSWERS)


def _git_verb(command: SimpleCommand) -> str:
    words = iter(command.words[1:])
    for word in words:
        if word in _GIT_OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""
