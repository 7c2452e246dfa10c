"""The commands and texts that a command runs: of shells, git, find, containers and the wrappers of `wrappers`.

For deny rules, so in doubt more is found than would run. It cannot be complete (R-SHELL-5): the command does not tell
what an interpreter, a build tool or a script file runs.

The words that `env -S TEXT` makes of a text follow other rules than a shell's (GNU coreutils, "env invocation").
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.commands.shell.running_programs import (
    BEFORE_COMMANDS,
    CONTAINERS,
    CONTAINERS_RUN_BY,
    EVALUATES_SUBSCRIPTS,
    FIND_RUNS,
    LOADER_OPTIONS,
    LOADERS,
    RUN_BY_GIT_KEY,
    RUNNING_VERBS,
    SHELLS,
    WRAPPERS,
    texts_of_options,
)
from goat_mcp.commands.shell.words import Word, bare_name, names, verb_index
from goat_mcp.commands.shell.wrappers import STREAM_FILES, InnerCommands, add_wrapped, after_options

_SHELL_OF_A_VERSION = re.compile(r"(?:-?\d[\d.]*|-static|\.(?:distrib|real|old))\Z")
"""bash5, bash-static"""
_ONLY_LOOKS_UP = re.compile(r"-p?[vV]")
_FILE_BELOW_VARIABLE = re.compile(r"\$\{?\w+\}?/")
_NOTHING_PRECEDES = ("uv", "poetry", "pipenv", "pdm", "hatch", "rye", "bundle", "npm", "pnpm", "yarn", "bun")
_GIT_VERBS_WITH_COMMANDS = names("rebase filter-branch difftool mergetool ls-remote fetch pull push clone archive grep")
_RUN_BY_SOCAT = re.compile(r"(?:EXEC|SYSTEM|SHELL):(.*)", re.DOTALL | re.IGNORECASE)


def strip_wrappers(words: Sequence[Word], *, fed: bool) -> InnerCommands:
    """What a command runs. `fed`: it gets more words that are not in the script (from `xargs`)."""
    inner = InnerCommands()
    name = bare_name(words[0].text)
    rest = list(words[1:])
    if name in ("eval", "trap", ".", "source") and rest and rest[0].text == "--":
        del rest[0]
    if _SHELL_OF_A_VERSION.sub("", name) in SHELLS:
        _shell(inner, rest, fed)
    elif name == "eval":
        inner.add_text(rest, "eval")
        if fed:
            inner.hidden = "eval with text that is not in the script"
    elif name in (".", "source"):
        if not rest or rest[0].is_stream or rest[0].text.startswith(STREAM_FILES):
            inner.hidden = f"{name} of what other commands print"
    elif name == "trap" and rest and not rest[0].text.startswith("-"):
        inner.add_text(rest[:1], "trap")
    elif name == "alias":
        for word in rest:
            if "=" in word.text:
                inner.add_text([Word(word.text.partition("=")[2], word.literal)], "alias")
    elif name == "hash" and len(rest) > 1 and re.fullmatch(r"-[a-z]*p", rest[0].text):
        inner.commands.append(rest[1:2])
    elif name in ("fd", "fdfind"):
        at = next((at for at, word in enumerate(rest, 1) if re.match(r"-[A-Za-z0-9]*[xX]\Z|--exec", word.text)), 0)
        inner.add_commands([rest[at:]] if at else [])
    elif name in ("tmux", "screen"):
        # Only their own tables of options could tell where the command begins.
        inner.add_commands([rest[at:] for at in range(len(rest)) if not rest[at].text.startswith("-")][:10])
        inner.texts.extend(word.text for word in rest if " " in word.text)
    elif name == "capsh":
        # The words behind `--` go to a shell.
        _shell(inner, _after_dashes(rest), fed)
    elif name in ("at", "batch") or (name == "crontab" and all(word.text == "-" for word in rest)):
        inner.reads_stdin = True
    elif name == "socat":
        for word in rest:
            if found := _RUN_BY_SOCAT.match(word.text):
                inner.add_text([Word(found[1], word.literal)], name)
    elif name in CONTAINERS:
        _container(inner, rest)
    elif LOADERS.match(name):
        inner.add_commands(after_options(rest, LOADER_OPTIONS))
    elif name == "find":
        _find(inner, rest)
        if fed:
            inner.hidden = "find with arguments that are not in the script"
    elif name == "git":
        _git(inner, rest)
        if fed and all(word.text.startswith("-") for word in rest):
            inner.hidden = "git with arguments that are not in the script"
    elif name == "env":
        _env(inner, rest, fed)
    elif name in RUNNING_VERBS:
        _verb(inner, rest, RUNNING_VERBS[name], may_precede=name not in _NOTHING_PRECEDES)
    elif name in WRAPPERS and not (name == "command" and rest and _ONLY_LOOKS_UP.fullmatch(rest[0].text)):
        add_wrapped(inner, name, rest, fed)
    elif name in BEFORE_COMMANDS:
        inner.add_commands(after_options(rest, frozenset()))
    for text in texts_of_options(name, rest):
        inner.add_text([text], name)
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


def _shell(inner: InnerCommands, rest: list[Word], fed: bool) -> None:
    index = 0
    while index < len(rest) and rest[index].text[:1] in ("-", "+") and len(rest[index].text) > 1:
        option = rest[index].text
        if not rest[index].literal:
            inner.hidden = "a shell with an option that is not literal"
        index += 1
        if option == "--":
            break
        if not option.startswith("--"):
            if "c" in option:
                # Between -c and its text other options may come.
                while index < len(rest) and rest[index].text[:1] in ("-", "+"):
                    index += 2 if rest[index].text[-1:] in "oO" else 1
                if index < len(rest):
                    inner.add_text(rest[index : index + 1], "a shell")
                else:
                    inner.hidden = "a shell with text that is not in the script" if fed else ""
                return
            if "s" in option:
                inner.reads_stdin = True
            if option[-1] in "oO":
                index += 1
        elif option.partition("=")[0] in ("--command", "--commands"):
            # fish and nu
            value = [Word(option.partition("=")[2], rest[index - 1].literal)] if "=" in option else rest[index:][:1]
            inner.add_text(value, "a shell")
            return
        elif option in ("--rcfile", "--init-file"):
            if index < len(rest) and rest[index].is_stream:
                inner.hidden = "a shell that reads what other commands print"
            elif index < len(rest) and rest[index].text.startswith(STREAM_FILES):
                inner.reads_stdin = True
            index += 1
    if index < len(rest) and _may_be_options(rest[index], is_last=index + 1 == len(rest)):
        inner.hidden = "a shell with a script, or options, that are not literal"
    if index >= len(rest) or rest[index].text == "-":
        inner.reads_stdin = True
        if fed:
            inner.hidden = "a shell with a script that is not named here"
    elif rest[index].is_stream or rest[index].text.startswith(STREAM_FILES):
        inner.reads_stdin = True
        inner.hidden = "a shell that reads what other commands print" if rest[index].is_stream else inner.hidden


def _may_be_options(word: Word, *, is_last: bool) -> bool:
    """Whether bash may expand a word to `-c` in place of a script's name. `"$DIR/x.sh"` counts as a name."""
    if word.literal or word.is_stream or word.text[:1] not in tuple("$`{*?["):
        return False
    if word.text == "{}" and is_last:
        return False  # one file's name, of find or xargs
    return _FILE_BELOW_VARIABLE.match(word.text) is None


def _env(inner: InnerCommands, rest: list[Word], fed: bool) -> None:
    try:
        split = split_string(rest, fed=fed)
    except UnknownWords as reason:
        inner.hidden = str(reason)
        return
    if split is None:
        add_wrapped(inner, "env", rest, fed)
    else:
        # It may hold options and variables, and another -S.
        inner.commands.append([Word("env", literal=True), *split])


def _container(inner: InnerCommands, rest: list[Word]) -> None:
    """`docker exec -i NAME sh`: only a table of its options could tell where the command begins."""
    verb = next((index for index, word in enumerate(rest) if word.text in CONTAINERS_RUN_BY), None)
    after = [] if verb is None else rest[verb + 1 :]
    begins = [index for index, word in enumerate(after) if word.literal and not word.text.startswith("-")]
    inner.add_commands([after[index:] for index in begins[:12]])


def _find(inner: InnerCommands, rest: list[Word]) -> None:
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


def _git(inner: InnerCommands, rest: list[Word]) -> None:
    texts = [word.text for word in rest]
    index = verb_index(texts)
    for at in range(index - 1):
        key, _, value = texts[at + 1].partition("=")
        if texts[at] in ("-c", "--config-env") and RUN_BY_GIT_KEY.search(key):
            inner.add_text([Word(value.removeprefix("!"), rest[at + 1].literal)], "git -c")
    if 0 < index < len(rest):
        # `git -C dir push` is a push to `Bash(git push *)`.
        inner.commands.append([Word("git", True), *rest[index:]])
    verb = rest[index].text if index < len(rest) else ""
    after = rest[index + 1 :]
    if verb == "submodule" and "foreach" in [word.text for word in after]:
        start = [word.text for word in after].index("foreach") + 1
        inner.add_text([word for word in after[start:] if not word.text.startswith("--")], "git submodule foreach")
    elif verb == "config":
        for position, word in enumerate(after[:-1]):
            if RUN_BY_GIT_KEY.search(word.text) and not word.text.startswith("-"):
                value = after[position + 1]
                inner.add_text([Word(value.text.removeprefix("!"), value.literal)], "git config")
    elif verb == "bisect" and after and after[0].text == "run" and after[1:]:
        inner.commands.append(after[1:])
    elif verb in _GIT_VERBS_WITH_COMMANDS:
        for position, word in enumerate(after):
            option, equals, value = word.text.partition("=")
            if re.match(r"-[xuO]\Z|--(?:exec|extcmd|upload-p|receive-p|open-files|.*-filter)", option):
                if equals:
                    inner.add_text([Word(value, word.literal)], f"git {verb}")
                elif position + 1 < len(after):
                    inner.add_text([after[position + 1]], f"git {verb}")


def _verb(inner: InnerCommands, rest: list[Word], verbs: set[str], *, may_precede: bool) -> None:
    at = next((index for index, word in enumerate(rest) if word.text in verbs), None)
    if at is not None:
        candidates = after_options(rest[at + 1 :], frozenset())
        # `nvm exec 18 rm`, `direnv exec . rm`: a word of its own may come first.
        inner.add_commands([*candidates, candidates[0][1:]] if may_precede else candidates)


_OPTION = "--split-string"
_TAKE_A_VALUE = ("--unset", "--chdir", "--argv0")
_LETTERS_WITH_VALUE = "uCaPLU"
"""The last three are FreeBSD's and macOS's."""
_BLANKS = " \t\n\v\f\r"
_ESCAPES = {"f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "_": " ", **{char: char for char in "\"#$'\\"}}
_REFUSED = "env of text that it would refuse"


class UnknownWords(Exception):
    """The words are unknown; the reason, for a person."""


def split_string(rest: Sequence[Word], *, fed: bool) -> list[Word] | None:
    """The arguments of env after it has split the text of `-S`; None without that option.

    `fed`: it gets more words that are not in the script (from `xargs`). Raises `UnknownWords`.
    """
    index = 0
    while index < len(rest):
        word = rest[index]
        if not word.text.startswith("-") or word.text in ("-", "--"):
            return None
        if not word.literal:
            raise UnknownWords("env with an option that is not literal")
        index += 1
        is_split, value, takes_next = _read_option(word.text)
        if is_split and value is None:
            if index == len(rest):
                if fed:
                    raise UnknownWords("env with text that is not in the script")
                return None
            value = rest[index].text
            if not rest[index].literal:
                raise UnknownWords("env of text that is not literal")
            index += 1
        if is_split and value is not None:
            return [*_split(value), *rest[index:]]
        index += takes_next
    return None


def _read_option(text: str) -> tuple[bool, str | None, bool]:
    """Whether it is `-S`, its value if in the same word, and whether another option takes the next word."""
    if text.startswith("--"):
        name, equals, value = text.partition("=")
        if _OPTION.startswith(name):
            return True, value if equals else None, False
        return False, None, not equals and any(option.startswith(name) for option in _TAKE_A_VALUE)
    for at, letter in enumerate(text[1:], start=2):
        if letter == "S":
            return True, text[at:] or None, False
        if letter in _LETTERS_WITH_VALUE:
            return False, None, at == len(text)
    return False, None, False


@dataclass
class _Reading:
    """The words read so far; `text` is the one being read, None between words."""

    words: list[Word] = field(default_factory=list[Word])
    text: str | None = None
    literal: bool = True

    def add(self, char: str, *, literal: bool = True) -> None:
        self.text = (self.text or "") + char
        self.literal = self.literal and literal

    def end_word(self) -> None:
        if self.text is not None:
            self.words.append(Word(self.text, self.literal))
        self.text, self.literal = None, True


def _split(text: str) -> list[Word]:
    reading = _Reading()
    quote = ""
    index = 0
    while index < len(text):
        char = text[index]
        index += 1
        if char == "\\" and (quote != "'" or text[index : index + 1] in ("'", "\\")):
            escaped = text[index : index + 1]
            index += 1
            if escaped == "c" and not quote:
                break
            if escaped == "_" and not quote:
                reading.end_word()
            elif escaped in _ESCAPES:
                reading.add(_ESCAPES[escaped])
            else:
                raise UnknownWords(_REFUSED)
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
            reading.add("")
        elif not quote and char in _BLANKS:
            reading.end_word()
        elif not quote and char == "#" and reading.text is None:
            break
        else:
            # `${NAME}` is replaced by env.
            reading.add(char, literal=char != "$" or quote == "'")
    if quote:
        raise UnknownWords(_REFUSED)
    reading.end_word()
    return reading.words
