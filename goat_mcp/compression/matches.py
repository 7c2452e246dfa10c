"""`grep` and `rg`: matches under the name of their file, which is said once, without the blanks they begin with.

Only output that names its files is taken: the names are most of what long answers cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from goat_mcp.compression.failures import names_a_failure
from goat_mcp.compression.pressed import Pressed
from goat_mcp.shell.names import Words

MAX_LINE_CHARS = 200
_MAX_PATH_CHARS = 4096
_NUMBERED = re.compile(r"(?P<file>[^:\0]+):(?P<number>\d+):(?P<text>.*)")
_PLAIN = re.compile(r"(?P<file>[^:\0]+):(?P<text>.*)")
_PLACE = re.compile(r"(?P<mark>[:-])(?P<number>\d+)(?P=mark)")
_BINARY = re.compile(r"Binary file .+ matches|(?:grep|rg): .+: binary file matches")
_OTHER_OUTPUT = frozenset("lLcqZz0h")
_OTHER_OUTPUT_LONG = (
    *("--files", "--count", "--null", "--json", "--quiet", "--heading", "--pretty", "--column", "--vimgrep", "--byte"),
    *("--only-matching", "--stats", "--label", "--passthru", "--replace", "--no-filename", "--context-separator"),
)
_TAKES_VALUE = {"rg": frozenset("efmABCdgtTMjrE")}
_TAKES_VALUE_OF_GREP = frozenset("efmABCDd")
_TAKES_VALUE_LONG = frozenset(
    {"--include", "--exclude", "--exclude-dir", "--regexp", "--file", "--context", "--after-context"}
    | {"--before-context", "--max-count", "--glob", "--iglob", "--type", "--type-not", "--max-depth", "--sort"}
)
_A_FILE = re.compile(r"[^/]\.\w{1,5}\Z")


def press_matches(words: Words, lines: Sequence[str]) -> Pressed | None:
    options = _Options.of(words)
    if not options.names_files:
        return None
    names = {found["file"] for line in lines if (found := _NUMBERED.fullmatch(line))}
    files: list[tuple[str, list[str]]] = []
    binary: list[str] = []
    for line in lines:
        if line == "--" and options.has_context:
            continue
        if _BINARY.fullmatch(line):
            binary.append(line)
            continue
        name, rest = _split(line, options, names)
        if not name:
            return None
        if not files or files[-1][0] != name:
            files.append((name, []))
        files[-1][1].append(rest)
    return Pressed((*_under_their_folders(files), *binary), len(lines))


def _under_their_folders(files: Sequence[tuple[str, list[str]]]) -> Iterator[str]:
    """A folder is said once for files that follow each other in it; a file that is alone there has its whole path."""
    for folder, together in groupby(files, key=lambda file: file[0].rpartition("/")[0]):
        group = list(together)
        has_heading = folder and len(group) > 1
        if has_heading:
            yield f"{folder}/"
        for name, matches in group:
            if has_heading:
                yield name.rpartition("/")[2]
            else:
                yield name if "/" in name else f"./{name}"
            yield from matches


def _split(line: str, options: _Options, names: set[str]) -> tuple[str, str]:
    """The file and the rest of its line; empty where there is none."""
    if not options.is_numbered:
        found = _PLAIN.fullmatch(line)
        return (found["file"], f"  {_short(found['text'])}") if found else ("", "")
    if options.has_context:
        # `FILE-12-TEXT` could be cut in many places, but each file with context has a match as well.
        for place in _PLACE.finditer(line, 0, _MAX_PATH_CHARS):
            if line[: place.start()] in names:
                return line[: place.start()], f"{place['number']}{place['mark']}{_short(line[place.end() :])}"
    found = _NUMBERED.fullmatch(line)
    return (found["file"], f"{found['number']}:{_short(found['text'])}") if found else ("", "")


def _short(text: str) -> str:
    text = text.strip()
    if len(text) <= MAX_LINE_CHARS or names_a_failure(text):
        return text
    return f"{text[:MAX_LINE_CHARS]}... (+{len(text) - MAX_LINE_CHARS} characters)"


@dataclass(frozen=True, slots=True)
class _Options:
    """What the words say of the output's shape."""

    names_files: bool
    is_numbered: bool
    has_context: bool

    @classmethod
    def of(cls, words: Words) -> _Options:
        letters, long, operands = _read(words)
        is_ripgrep = words[0] == "rg"
        gives_pattern = bool({"e", "f"} & letters) or any(word.startswith(("--regexp", "--file")) for word in long)
        places = operands if gives_pattern else operands[1:]
        is_recursive = is_ripgrep or bool({"r", "R"} & letters) or "--recursive" in long
        if len(places) > 1 or "H" in letters or "--with-filename" in long:
            names_files = True
        elif places:
            # Of one file the name is not printed, and only its form tells it from a folder here.
            is_many = bool(set("*?[{$`") & set(places[0]))
            names_files = is_many or (is_recursive and places[0] != "-" and not _A_FILE.search(places[0]))
        else:
            names_files = is_recursive
        if is_ripgrep:
            letters -= {"z", "0", "h", "r"}  # other options there
        has_other_output = bool(letters & _OTHER_OUTPUT) or any(word.startswith(_OTHER_OUTPUT_LONG) for word in long)
        return cls(
            names_files=names_files and not has_other_output and not (is_ripgrep and "I" in letters),
            is_numbered="n" in letters or "--line-number" in long,
            has_context=bool(set("ABC") & letters) or any("context" in word for word in long),
        )


def _read(words: Words) -> tuple[set[str], list[str], list[str]]:
    """The short options, the long ones, and what is none."""
    letters: set[str] = set()
    long: list[str] = []
    operands: list[str] = []
    takes_value = _TAKES_VALUE.get(words[0], _TAKES_VALUE_OF_GREP)
    rest = iter(words[1:])
    for word in rest:
        if word == "--":
            operands.extend(rest)
        elif word.startswith("--"):
            long.append(word)
            if word in _TAKES_VALUE_LONG:
                next(rest, None)
        elif word.startswith("-") and word != "-":
            for at, letter in enumerate(word[1:], 2):
                if letter.isdigit():
                    letters.add("C")
                    break
                letters.add(letter)
                if letter in takes_value:
                    if at == len(word):
                        next(rest, None)
                    break
        else:
            operands.append(word)
    return letters, long, operands
