"""Programs that run another program named in their arguments: which words, or which text, they would run.

Written for deny rules, so in doubt more is found than would run. It cannot be complete (R-SHELL-5): an interpreter,
a build tool or a script file runs what no one can tell from the command.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.shell.names import bare_name
from goat_mcp.shell.running_options import texts_of_options
from goat_mcp.shell.running_programs import (
    BEFORE_COMMANDS,
    EVALUATES_SUBSCRIPTS,
    FIND_RUNS,
    LOADER_OPTIONS,
    LOADERS,
    RUN_BY_GIT_KEY,
    RUN_BY_VARIABLE,
    RUNNING_VERBS,
    SHELLS,
    TEXT_OPTIONS,
    WRAPPERS,
)
from goat_mcp.shell.words import Word

_SHELL_OF_A_VERSION = re.compile(r"(?:-?\d[\d.]*|-static|\.(?:distrib|real|old))\Z")
"""bash5, bash-static"""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.DOTALL)


@dataclass
class Inner:
    """What one command runs beside itself."""

    commands: list[list[Word]] = field(default_factory=list[list[Word]])
    texts: list[str] = field(default_factory=list[str])
    reads_stdin: bool = False
    """It is a shell that takes its script from standard input."""
    hidden: str = ""


def unwrap(words: Sequence[Word], *, fed: bool) -> Inner:
    """What a command runs beside itself. `fed`: further words come to its end unseen (from `xargs`)."""
    inner = Inner()
    name = bare_name(words[0].text)
    rest = list(words[1:])
    if name in ("eval", "trap", ".", "source") and rest and rest[0].text == "--":
        del rest[0]
    if _SHELL_OF_A_VERSION.sub("", name) in SHELLS:
        _shell(inner, rest, fed)
    elif name == "eval":
        _text(inner, rest, "eval")
        if fed:
            inner.hidden = "eval with text that is not in the script"
    elif name in (".", "source"):
        if not rest or rest[0].is_stream or rest[0].text.startswith(("/dev/", "/proc/")):
            inner.hidden = f"{name} of what other commands print"
    elif name == "trap" and rest and not rest[0].text.startswith("-"):
        _text(inner, rest[:1], "trap")
    elif name == "alias":
        for word in rest:
            if "=" in word.text:
                _text(inner, [Word(word.text.partition("=")[2], word.literal)], "alias")
    elif name == "hash" and len(rest) > 1 and re.fullmatch(r"-[a-z]*p", rest[0].text):
        inner.commands.append(rest[1:2])
    elif name in ("fd", "fdfind"):
        at = next((at for at, word in enumerate(rest, 1) if re.match(r"-[A-Za-z0-9]*[xX]\Z|--exec", word.text)), 0)
        _append_command(inner, [rest[at:]] if at else [])
    elif name in ("tmux", "screen"):
        # Where the command begins only they know.
        _append_command(inner, [rest[at:] for at in range(len(rest)) if not rest[at].text.startswith("-")][:10])
        inner.texts.extend(word.text for word in rest if " " in word.text)
    elif name == "capsh":
        # What follows `--` goes to a shell.
        _shell(inner, _after_dashes(rest), fed)
    elif name in ("at", "batch"):
        inner.reads_stdin = True
    elif LOADERS.match(name):
        _append_command(inner, _after_options(rest, LOADER_OPTIONS))
    elif name == "find":
        _find(inner, rest)
    elif name == "git":
        _git(inner, rest)
    elif name in RUNNING_VERBS:
        _verb(inner, rest, RUNNING_VERBS[name])
    elif name in WRAPPERS:
        _wrapper(inner, name, rest, fed)
    elif name in BEFORE_COMMANDS:
        _append_command(inner, _after_options(rest, frozenset()))
    for text in texts_of_options(name, rest):
        _text(inner, [text], name)
    if name in ("compgen", "complete") and any("$" in word.text or "`" in word.text for word in rest):
        inner.hidden = f"{name} of words that bash expands"
    if name in EVALUATES_SUBSCRIPTS and any(
        word.literal and "[" in word.text and ("$(" in word.text or "`" in word.text) for word in rest
    ):
        inner.hidden = f"{name} of a subscript that bash expands"
    return inner


def _after_dashes(rest: list[Word]) -> list[Word]:
    texts = [word.text for word in rest]
    return rest[texts.index("--") + 1 :] if "--" in texts else [Word("-", literal=True)]


def assigned(inner: Inner, name: str, value: Word) -> None:
    """`NAME=VALUE`: programs run the text of some variables (GIT_PAGER)."""
    if RUN_BY_VARIABLE.match(name) or name.startswith("GIT_CONFIG_VALUE_"):
        _text(inner, [Word(value.text.removeprefix("!"), value.literal)], name)


def _text(inner: Inner, words: Sequence[Word], by: str) -> None:
    if any(not word.literal for word in words):
        inner.hidden = f"{by} of text that is not literal"
    inner.texts.append(" ".join(word.text for word in words))


def _shell(inner: Inner, rest: list[Word], fed: bool) -> None:
    index = 0
    while index < len(rest) and rest[index].text[:1] in ("-", "+") and len(rest[index].text) > 1:
        option = rest[index].text
        index += 1
        if option == "--":
            break
        if not option.startswith("--"):
            if "c" in option:
                # Between -c and its text other options may come.
                while index < len(rest) and rest[index].text[:1] in ("-", "+"):
                    index += 2 if rest[index].text[-1:] in "oO" else 1
                if index < len(rest):
                    _text(inner, rest[index : index + 1], "a shell")
                else:
                    inner.hidden = "a shell with text that is not in the script" if fed else ""
                return
            if "s" in option:
                inner.reads_stdin = True
            if option[-1] in "oO":
                index += 1
        elif option in ("--rcfile", "--init-file"):
            if index < len(rest) and rest[index].is_stream:
                inner.hidden = "a shell that reads what other commands print"
            index += 1
    if index >= len(rest):
        inner.reads_stdin = True
        if fed:
            inner.hidden = "a shell with a script that is not named here"
    elif rest[index].is_stream or rest[index].text.startswith(("/dev/", "/proc/")):
        inner.reads_stdin = True
        inner.hidden = "a shell that reads what other commands print" if rest[index].is_stream else inner.hidden


def _find(inner: Inner, rest: list[Word]) -> None:
    index = 0
    while index < len(rest):
        if rest[index].text in FIND_RUNS:
            end = index + 1
            while end < len(rest) and rest[end].text not in (";", "+"):
                end += 1
            found = [Word(word.text, word.literal and "{}" not in word.text) for word in rest[index + 1 : end]]
            if found:
                inner.commands.append(found)
            index = end
        index += 1


def _git(inner: Inner, rest: list[Word]) -> None:
    index = 0
    while index < len(rest) and rest[index].text.startswith("-"):
        option = rest[index].text
        index += 1
        if option in ("-c", "--config-env") and index < len(rest):
            key, _, value = rest[index].text.partition("=")
            if RUN_BY_GIT_KEY.search(key):
                _text(inner, [Word(value.removeprefix("!"), rest[index].literal)], "git -c")
        if option in (
            "-c",
            "-C",
            "--git-dir",
            "--work-tree",
            "--namespace",
            "--config-env",
            "--super-prefix",
            "--exec-path",
            "--attr-source",
        ):
            index += 1
    if 0 < index < len(rest):
        # `git -C dir push` is a push to `Bash(git push *)`.
        inner.commands.append([Word("git", True), *rest[index:]])
    verb = rest[index].text if index < len(rest) else ""
    after = rest[index + 1 :]
    if verb == "submodule" and "foreach" in [word.text for word in after]:
        start = [word.text for word in after].index("foreach") + 1
        _text(inner, [word for word in after[start:] if not word.text.startswith("--")], "git submodule foreach")
    elif verb == "config":
        for position, word in enumerate(after[:-1]):
            if RUN_BY_GIT_KEY.search(word.text) and not word.text.startswith("-"):
                value = after[position + 1]
                _text(inner, [Word(value.text.removeprefix("!"), value.literal)], "git config")
    elif verb == "bisect" and after and after[0].text == "run" and after[1:]:
        inner.commands.append(after[1:])
    elif verb in (
        "rebase",
        "filter-branch",
        "difftool",
        "mergetool",
        "ls-remote",
        "fetch",
        "pull",
        "push",
        "clone",
        "archive",
        "grep",
    ):
        for position, word in enumerate(after):
            option, equals, value = word.text.partition("=")
            if re.match(r"-[xuO]\Z|--(?:exec|extcmd|upload-p|receive-p|open-files|.*-filter)", option):
                if equals:
                    _text(inner, [Word(value, word.literal)], f"git {verb}")
                elif position + 1 < len(after):
                    _text(inner, [after[position + 1]], f"git {verb}")


def _verb(inner: Inner, rest: list[Word], verbs: set[str]) -> None:
    at = next((index for index, word in enumerate(rest) if word.text in verbs), None)
    if at is not None:
        candidates = _after_options(rest[at + 1 :], frozenset())
        # `nvm exec 18 rm`, `direnv exec . rm`: perhaps a word of its own comes first.
        _append_command(inner, [*candidates, candidates[0][1:]])


def _wrapper(inner: Inner, name: str, rest: list[Word], fed: bool) -> None:
    options, _, positions = WRAPPERS[name].partition("|")
    with_value = frozenset(options.split())
    for option in TEXT_OPTIONS.get(name, ()):
        for index, word in enumerate(rest):
            clustered = len(option) == 2 and re.fullmatch(f"-[A-Za-z]*{option[1]}", word.text) is not None
            if (word.text == option or clustered) and index + 1 < len(rest):
                _text(inner, rest[index + 1 : index + 2], name)
            elif word.text.startswith(f"{option}=") or (
                len(option) == 2 and word.text.startswith(option) and word.text != option
            ):
                _text(inner, [Word(word.text[len(option) :].removeprefix("="), word.literal)], name)
    if name in ("env", "sudo", "doas"):
        for word in rest:
            if not _ASSIGNMENT.match(word.text):
                continue
            variable, _, value = word.text.partition("=")
            assigned(inner, variable, Word(value, word.literal))
    placeholder = _replaced_by_xargs(rest) if name in ("xargs", "parallel") else ""
    candidates = _after_options(rest, with_value, 0 if positions == "?" else int(positions or 0))
    if positions == "?":
        candidates.append([word for word in candidates[0][1:3] if word.text != "--"] + candidates[0][3:])
    if name in ("xargs", "parallel"):
        if any(not command for command in candidates) and name == "parallel":
            inner.hidden = "parallel with commands that are not in the script"
        for command in candidates:
            if placeholder:
                command = [Word(word.text, word.literal and placeholder not in word.text) for word in command]
            if command:
                inner.commands.append(command)
            if command and name == "parallel" and " " in command[0].text:
                inner.texts.append(command[0].text)
        return
    if fed and not any(candidates):
        inner.hidden = f"{name} with a command that is not in the script"
    if name in ("watch", "ssh", "sg", "hyperfine"):
        for command in candidates:
            _text(inner, command, name) if command else None
    _append_command(inner, candidates)


def _append_command(inner: Inner, candidates: list[list[Word]]) -> None:
    inner.commands.extend(command for command in candidates if command)


def _after_options(rest: list[Word], with_value: frozenset[str], positions: int = 0) -> list[list[Word]]:
    """Where the command may begin: after the options; two places where an option's value cannot be told."""
    found: list[list[Word]] = []
    index = 0
    while index < len(rest):
        word = rest[index].text
        if word == "--":
            index += 1
            break
        if word == "-":
            # `env - rm`
            index += 1
            continue
        if word in with_value:
            index += 2
            continue
        if word.startswith("-") and len(word) > 1:
            index += 1
            # An option we do not know might take the next word, or not.
            if "=" not in word and index < len(rest) and not rest[index].text.startswith("-") and positions == 0:
                found.append(rest[index + 1 :])
            continue
        if _ASSIGNMENT.match(word):
            index += 1
            continue
        if positions:
            positions -= 1
            index += 1
            continue
        break
    else:
        index = len(rest)
    return [rest[index + positions :], *found]


def _replaced_by_xargs(rest: list[Word]) -> str:
    for index, word in enumerate(rest):
        if word.text in ("-I", "-J") and index + 1 < len(rest):
            return rest[index + 1].text
        if word.text.startswith("-I") and len(word.text) > 2:
            return word.text[2:]
        if word.text in ("-i", "--replace"):
            return "{}"
        if word.text.startswith("--replace="):
            return word.text.partition("=")[2]
        if not word.text.startswith("-"):
            break
    return ""
