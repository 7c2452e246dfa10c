"""The texts that a word of a script may become: its variables, braces and the few substitutions with known output.

For rules that deny or ask: what cannot be followed exactly as bash would is a doubt, with its reason (R-SHELL-5b).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from goat_mcp.commands.shell.command_extraction import ExtractedCommand
from goat_mcp.commands.shell.file_use import HERE, NUMBER, TIME
from goat_mcp.commands.shell.redirections import Assigned
from goat_mcp.commands.shell.words import Word

_MAX_TEXTS = 64
_MAX_DEPTH = 5
_EXPANSION = re.compile(
    r"""\$(?:(?P<name>[A-Za-z_]\w*)|\{(?P<braced>[A-Za-z_]\w*)\}
        |(?P<number>[?#$!](?!\{)|\{[#]\w+\}|\{[?#$!]\}|\(\((?:[^()]|\([^()]*\))*\)\)|\(\s*nproc\s*\))
        |(?P<time>\(\s*date(?:\s-u)?\s\+['"]?(?:%[aAbBdeFgGHIjklmMNpPsSTuUVwWyYzZ]|[0-9_:-])*['"]?\s*\))
        |(?P<here>\(\s*pwd\s*\))
        |(?P<temporary>\(\s*mktemp(?:\s-[dqu]+)?\s*\))
        |(?P<other>[\w{(\['"@*-]))|(?P<run>`)""",
    re.VERBOSE,
)
_NUMBERS = frozenset({"RANDOM", "UID", "EUID", "PPID", "BASHPID", "LINENO", "SECONDS", "EPOCHSECONDS", "SHLVL"})
_TEMPORARY = "/tmp/tmp.XXXXXXXXXX"
_BRACKETS = re.compile(r"\[[^\]]*\]")
_RANGE = re.compile(r"\{(-?\d+)\.\.(-?\d+)(?:\.\.-?\d+)?\}")
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
"""An innermost pair that bash expands. Bash leaves `{}` and `@{1}` unchanged."""
_LEFT_BRACES = re.compile(r"\{.*,.*\}", re.DOTALL)
_MAX_ALTERNATIVES = 512
_OTHER_RANGE = re.compile(r"\{[^{},]*\.\.[^{},]*\}")
_STREAM = re.compile(r"[<>]\(.*\)\Z", re.DOTALL)
_CHANGE_READING = frozenset(
    {"CDPATH", "GLOBIGNORE", "PWD", "OLDPWD", "SHELLOPTS", "BASHOPTS", "TAR_OPTIONS", "GREP_OPTIONS", "CURL_HOME"}
    | {"RIPGREP_CONFIG_PATH", "WGETRC", "POSIXLY_CORRECT", "GIT_DIR", "GIT_WORK_TREE", "ZIPOPT", "RSYNC_OLD_ARGS"}
)
"""Variables that change how bash or a program reads its words."""
_ASSIGNING = frozenset({"read", "mapfile", "readarray", "getopts"})
_DECLARING = frozenset({"declare", "typeset", "local", "export", "readonly"})
_PLAIN_DECLARATION = re.compile(r"-[xrgaA]+\Z")
_SETTING = re.compile(r"([A-Za-z_]\w*)(\+?)=(.*)\Z", re.DOTALL)
_SET_BY_WORDS = _DECLARING | {"env", "sudo", "doas", "eval"}


@dataclass(frozen=True)
class Text:
    """A text that a word may become. `magic`: its `*` and `?` are wildcards."""

    text: str
    magic: bool


class KnownValues:
    """The values of one script's variables. `problem`: why its words cannot be followed at all; empty if they can."""

    def __init__(self, assigned: Sequence[Assigned], commands: Sequence[ExtractedCommand], home: str) -> None:
        self._values: dict[str, list[Word]] = {}
        self._unknown: set[str] = set()
        self._home = home
        self.problem = ""
        for name, value in assigned:
            self._assign(name, value)
        for command in commands:
            self._look_at(command)
        for name in sorted(_CHANGE_READING & (self._values.keys() | self._unknown)):
            self.problem = f"{name} is set"
        if any(word.text.strip(" \t\n=:,") for word in self._values.get("IFS", ())) or "IFS" in self._unknown:
            self.problem = "IFS is set"

    def texts(self, word: Word) -> tuple[list[Text], str]:
        """The texts that a word may become, and why there may be more; empty if there are none."""
        if word.literal:
            doubt = "~ is not the home once HOME is set" if "~" in word.text and "HOME" in self._values else ""
            return [Text(word.text, magic=False)], doubt
        if word.is_stream and _STREAM.match(word.text):
            return [], ""  # a pipe; the commands in it count by themselves
        try:
            found = list(dict.fromkeys(self._filled(word, 0)))
        except _Doubt as doubt:
            return [Text(word.text, magic=True)], str(doubt)
        return [Text(text, magic=True) for text in found], ""

    def _filled(self, word: Word, depth: int) -> Iterator[str]:
        if word.literal:
            yield from _with_parts(word.text) if depth else (word.text,)
            return
        if depth > _MAX_DEPTH:
            raise _Doubt("its value takes too many steps")
        if word.text.endswith("$"):
            raise _Doubt("of a path behind a substitution the rest is not followed")  # our grammar tears it apart
        choices: list[list[str]] = []
        at = 0
        for found in _EXPANSION.finditer(word.text):
            choices += [[word.text[at : found.start()]], self._expanded(found, depth)]
            at = found.end()
        choices.append([word.text[at:]])
        count = 0
        for parts in product(*choices):
            for text in _without_braces("".join(parts)):
                count += 1
                if count > _MAX_TEXTS:
                    raise _Doubt("it may be too many texts")
                if _BRACKETS.search(text):
                    raise _Doubt("of the wildcards only `*` and `?` are followed")
                yield text

    def _expanded(self, found: re.Match[str], depth: int) -> list[str]:
        name = found["name"] or found["braced"]
        if name is not None:
            return self._values_of(name, depth)
        for kind, text in (("number", NUMBER), ("time", TIME), ("here", HERE), ("temporary", _TEMPORARY)):
            if found[kind] is not None:
                return [text]
        if found["run"] or found[0] == "$(":
            raise _Doubt("what a command prints is not known")
        raise _Doubt(f"the value of {found[0]} is not known")

    def _values_of(self, name: str, depth: int) -> list[str]:
        values = self._values.get(name)
        if name in self._unknown:
            raise _Doubt(f"the value of ${name} is not known")
        if name == "HOME" and values:
            raise _Doubt("HOME is set")
        found = [text for value in values or () for text in self._filled(value, depth + 1)]
        if name == "HOME":
            found.append(self._home)
        elif name == "PWD":
            found.append(HERE)
        elif name in _NUMBERS:
            found.append(NUMBER)
        elif values is None:
            raise _Doubt(f"the value of ${name} is not known")
        if len(found) > _MAX_TEXTS:
            raise _Doubt(f"${name} may be too many texts")
        return found

    def _assign(self, name: str, value: Word) -> None:
        if not value.literal and value.text == "`":
            self._unknown.add(name)
        self._values.setdefault(name, []).append(value)

    def _look_at(self, command: ExtractedCommand) -> None:
        name, words = command.name, command.words
        if name in _SET_BY_WORDS:
            for word in words:
                if (found := _SETTING.match(word.text)) is not None:
                    self._assign(found[1], Word(found[3], word.literal))
                    if found[2]:
                        self._unknown.add(found[1])
        is_special = name in _DECLARING and any(
            word.text.startswith(("-", "+")) and not _PLAIN_DECLARATION.match(word.text) for word in words
        )
        if is_special or (name == "printf" and words[:1] and words[0].text.startswith("-v")) or name in _ASSIGNING:
            if is_special or any(not word.literal for word in words):
                self.problem = f"{name} may set any variable"
            self._unknown.update(word.text.partition("[")[0].removeprefix("-v") for word in words)
            self._unknown |= {"REPLY", "MAPFILE", "OPTARG"}
        elif name in ("shopt", "set") and any(word.text[:1] in ("-", "+") for word in words):
            # `set -e` and its like change nothing here.
            if name == "shopt" or not all(_HARMLESS_SET.fullmatch(word.text) for word in words):
                self.problem = f"{name} changes how bash reads words"
        elif name in ("bash", "sh") and any(re.match(r"[-+][A-Za-z]*O", word.text) for word in words):
            self.problem = f"{name} -O changes how bash reads words"


_HARMLESS_SET = re.compile(r"[-+][euxvo]+|pipefail|errexit|nounset|xtrace|verbose|--")


class _Doubt(Exception):
    """A word cannot be followed; the reason, for people."""


def _with_parts(text: str) -> Iterator[str]:
    """A variable's text, and each of its words if bash splits it."""
    yield text
    parts = text.split()
    if len(parts) > 1:
        yield from parts


def _without_braces(text: str) -> Sequence[str]:
    if "{" not in text:
        return (text,)
    text = _RANGE.sub(NUMBER, text)
    if _OTHER_RANGE.search(text):
        raise _Doubt("of the braces only `{a,b}` and `{1..9}` are followed")
    pending, done = [text], [text] if "," in text else []  # not expanded, too: quoted braces stand for themselves
    while pending:
        current = pending.pop()
        found = _BRACES.search(current)
        if found is None:
            done.append(current)
        else:
            pending += [current[: found.start()] + part + current[found.end() :] for part in found[1].split(",")]
        if len(pending) + len(done) > _MAX_ALTERNATIVES:
            raise _Doubt("its braces give too many words")
    if any(_LEFT_BRACES.search(one) for one in done[1:]):
        raise _Doubt("its braces cannot be followed")
    return done
