"""How many of a command's first words say what it does: `git commit`, `npm run test`, `python3 -m pytest`.

For rules with a wildcard behind them (`git commit *`). What such a rule lets pass is decided by `script_rules`; here is
which prefix of a command makes sense, and why one does not.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from goat_mcp.commands.shell.options.build_tools import CHECKERS, SINGLE_TABLES, TOOLS
from goat_mcp.commands.shell.options.file_programs import FILE_PROGRAMS
from goat_mcp.commands.shell.options.table import leads_elsewhere
from goat_mcp.commands.shell.options.text_programs import READERS, TEXT_PROGRAMS, WEB_PROGRAMS
from goat_mcp.commands.shell.options.unsafe import inner_command, is_interpreter
from goat_mcp.commands.shell.options.verbs import RUNNING_VERBS, VERB_TOOLS
from goat_mcp.commands.shell.script_parsing import ShellScript
from goat_mcp.commands.shell.script_rules import CommandPattern, allowed_by
from goat_mcp.commands.shell.words import Word, Words, bare_name, names
from goat_mcp.commands.shell.wrapper_stripping import strip_wrappers
from goat_mcp.commands.shell.written_files import files_written

_SUBCOMMAND = re.compile(r"[a-z][a-z0-9]*(?:[:-][a-z0-9]+)*")
_FILE = re.compile(r"/|\.[A-Za-z]\w*\Z")
_RUN_SCRIPTS = frozenset({"run", "run-script"})
_GIT_GROUPS = names("bundle notes reflog remote sparse-checkout stash submodule worktree")
"""Verbs of git whose next word says what they do."""
_TEST_MODULES = frozenset({"unittest"})
_MODULES = _TEST_MODULES | frozenset(CHECKERS) | frozenset(VERB_TOOLS) | TOOLS
"""What an interpreter runs by its name. Other modules may take code, or run it (`timeit`, `pdb`)."""
_REACH_ANYTHING = names("http https xh xhs lynx w3m links xdotool ydotool wtype goat-mcp")
"""They load from any host, press keys on the user's desktop, or are what the user answers with: none has a verb that
keeps them to something."""


def command_prefix(words: Words) -> int:
    """How many words make a prefix that a person may be offered; 0 if none does."""
    count = _length(words)
    return count if count and not prefix_problem(words, count) else 0


def prefix_problem(words: Words, count: int) -> str:
    """Empty, or why no rule for all commands that begin with the first `count` words would let this one pass."""
    try:
        pattern = CommandPattern.parse(prefix_pattern(words[:count]))
    except ValueError as problem:
        return str(problem)
    return allowed_by(ShellScript((words,), "", (), ""), [pattern])


def prefix_pattern(prefix: Sequence[str]) -> str:
    """As in a rule about commands: `git commit *`."""
    return f"{shlex.join(prefix)} *"


def _length(words: Sequence[str]) -> int:
    name, rest = bare_name(words[0]), words[1:]
    if at := inner_command(name, words):
        if at >= len(words) or (is_interpreter(name) and words[at] not in _MODULES):
            return 0
        inner = 1 if words[at] in _TEST_MODULES else _length(words[at:])
        return at + inner if inner else 0
    if _runs_others(words):
        return 0
    if is_interpreter(name):
        at = 2 if list(rest[:1]) == ["run"] else 1
        return at + 1 if at < len(words) and _is_own_file(words[at]) else 0
    if name == "cd" or name in _REACH_ANYTHING:
        return 0
    if name in CHECKERS or name in READERS:
        return 1
    if name in TEXT_PROGRAMS or name in WEB_PROGRAMS or name in FILE_PROGRAMS:
        return 0  # to any file, or any host
    if next(files_written((name, *rest)), None) is not None:
        return 0
    return _with_verb(name, words)


def _with_verb(name: str, words: Sequence[str]) -> int:
    verb, after = (words[1], words[2:]) if len(words) > 1 else ("", ())
    if not _SUBCOMMAND.fullmatch(verb):
        return 1 if _is_own_file(words[0]) else 0
    if name == "git":
        return 3 if verb in _GIT_GROUPS and after and _SUBCOMMAND.fullmatch(after[0]) else 2
    if (name, verb) == ("go", "run"):  # what it runs may be a module of anybody's
        return 3 if after and not after[0].startswith("-") and "@" not in after[0] and _is_local(after[0]) else 0
    if name in TOOLS:
        if verb in _RUN_SCRIPTS and name in ("npm", "pnpm", "yarn", "bun"):
            return 3 if after and not after[0].startswith("-") else 0
        return 2
    if name in VERB_TOOLS:
        tool = VERB_TOOLS[name]
        is_group = any(len(verbs) > 1 and verbs[0] == verb for verbs in (*tool.looking, *tool.named))
        return min(3 if is_group else 2, len(words))
    if name in SINGLE_TABLES:
        return 2
    return 0 if verb in RUNNING_VERBS or leads_elsewhere(words[0]) else 2


def _is_own_file(word: str) -> bool:
    """Whether it is a file of the project: what it runs is the project's affair."""
    return not word.startswith("-") and not leads_elsewhere(word) and _FILE.search(word) is not None


def _is_local(package: str) -> bool:
    """Whether it is a package or a file below the directory: `.`, `./cmd/server`, `main.go`."""
    return not leads_elsewhere(package) and (package == "." or package.startswith("./") or package.endswith(".go"))


def _runs_others(words: Sequence[str]) -> bool:
    inner = strip_wrappers([Word(word, literal=True) for word in words], fed=False)
    return bool(inner.commands or inner.texts or inner.hidden or inner.reads_stdin)
