"""`grep` and `rg`: matches below the name of their file, which stands once, without their indentation.

Only output that names its files is compressed: the names are most of what long answers cost. A name may hold what
separates it from its line (`app-10:15:00.log:3:text`), and so may the text (`app.log:3:10:15:00 text`). If exactly one
reading of such a line names an existing file, that one is taken; else the line stays as it is.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby, islice

from goat_mcp.commands.compression.compressor import Compressed, names_a_failure
from goat_mcp.commands.shell.words import Words


@dataclass(frozen=True)
class NamedFiles:
    """Which names are files, seen from the directory in which the program ran. None: that directory is unknown."""

    directory: str | None = None
    _known: dict[str, bool] = field(default_factory=dict[str, bool])

    def only_one(self, names: Sequence[str]) -> int | None:
        """The index of the only name that is a file; None if there is none, or more than one."""
        found = [at for at, name in enumerate(names) if self._is_file(name)]
        return found[0] if len(found) == 1 else None

    def _is_file(self, name: str) -> bool:
        if self.directory is None:
            return False
        if name not in self._known:
            try:
                mode = os.stat(os.path.join(self.directory, name)).st_mode  # noqa: PTH116, PTH118  # for each line again
            except (OSError, ValueError):
                mode = 0
            self._known[name] = stat.S_ISREG(mode)
        return self._known[name]


UNKNOWN_FILES = NamedFiles()
MAX_LINE_CHARS = 200
_MAX_READINGS = 8
"""Of one line; each is looked for among the files."""
_MAX_PATH_CHARS = 4096
_PLAIN = re.compile(r"(?P<file>[^:\0]+):(?P<text>.*)")
_NUMBER = re.compile(r"(?P<mark>:)(?P<number>[1-9]\d*)(?=:)")
_NUMBER_IN_CONTEXT = re.compile(r"(?P<mark>[:-])(?P<number>[1-9]\d*)(?=(?P=mark))")
_NAMED_FOR_ITS_KIND = re.compile(r".*[^/]\.[A-Za-z]\w{0,4}")
_LIKE_A_MATCH = re.compile(r"\d+[:-]")
_BINARY = re.compile(r"Binary file .+ matches|(?:grep|rg): .+: binary file matches")
_OTHER_OUTPUT = frozenset("lLcqZz0h")
_OTHER_OUTPUT_LONG = (
    *("--files", "--count", "--null", "--json", "--quiet", "--heading", "--pretty", "--column", "--vimgrep", "--byte"),
    *("--only-matching", "--stats", "--label", "--passthru", "--replace", "--no-filename", "--context-sep"),
    *("--no-context-sep", "--group-sep", "--no-group-sep"),
)
_TAKES_VALUE = {"rg": frozenset("efmABCdgtTMjrE")}
_TAKES_VALUE_OF_GREP = frozenset("efmABCDd")
_TAKES_VALUE_LONG = frozenset(
    {"--include", "--exclude", "--exclude-dir", "--regexp", "--file", "--context", "--after-context"}
    | {"--before-context", "--max-count", "--glob", "--iglob", "--type", "--type-not", "--max-depth", "--sort"}
)
_A_FILE = re.compile(r"[^/]\.\w{1,5}\Z")


def compress_matches(words: Words, lines: Sequence[str], named: NamedFiles = UNKNOWN_FILES) -> Compressed | None:
    options = _Options.of(words)
    if not options.names_files:
        return None
    if options.has_context and not options.is_numbered:
        return None  # nothing parts `FILE-TEXT`
    files: list[_File] = []
    binary = [line for line in lines if _BINARY.fullmatch(line)]
    for section in _sections(lines, options):
        matches = (
            _consecutive(section, named)
            if options.has_context
            else map(partial(_match, options=options, named=named), section)
        )
        for match in matches:
            if match is None:
                return None
            if not files or files[-1].name != match.file or not match.file:
                files.append(_File(match.file, []))
            files[-1].lines.append(match.line)
    return Compressed((*_under_their_folders(files), *binary), len(lines))


def _sections(lines: Sequence[str], options: _Options) -> Iterator[list[str]]:
    """With context: the consecutive lines of one file, section by section. Without: all lines."""
    section: list[str] = []
    for line in lines:
        if line == "--" and options.has_context:
            yield section
            section = []
        elif not _BINARY.fullmatch(line):
            section.append(line)
    yield section


@dataclass(frozen=True, slots=True)
class _Match:
    """A line as it is shown below the name of its file. Without a name: the line as it was printed."""

    file: str
    line: str


@dataclass(frozen=True, slots=True)
class _File:
    name: str
    lines: list[str]


def _match(line: str, options: _Options, named: NamedFiles) -> _Match | None:
    """None if this is no match, or names no file."""
    if not options.is_numbered:
        return _match_without_number(line, named)
    readings = list(islice(_NUMBER.finditer(line, 1, _MAX_PATH_CHARS), _MAX_READINGS + 1))
    if reading := _only_one(line, readings, named):
        return _read_at(line, reading)
    return _Match("", _as_printed(line)) if readings else None


def _only_one(line: str, readings: Sequence[re.Match[str]], named: NamedFiles) -> re.Match[str] | None:
    """The only reading, or the only one that names a file."""
    if len(readings) == 1:
        return readings[0]
    if not readings or len(readings) > _MAX_READINGS:
        return None
    at = named.only_one([line[: reading.start()] for reading in readings])
    return None if at is None else readings[at]


def _match_without_number(line: str, named: NamedFiles) -> _Match | None:
    found = _PLAIN.fullmatch(line)
    if found is None:
        return None
    name, text = found["file"], found["text"]
    if _NAMED_FOR_ITS_KIND.fullmatch(name):
        # Most code holds colons. A name that goes on behind one does so with the minutes of a time, or another colon.
        is_sure = ":" not in text or not (text[:1].isdecimal() or text.startswith(":"))
    else:
        is_sure = ":" not in text and not text.startswith(" ")  # `fatal: text` is what programs say
    if not is_sure:
        ends = [colon.start() for colon in islice(re.finditer(":", line[:_MAX_PATH_CHARS]), _MAX_READINGS + 1)]
        at = named.only_one([line[:end] for end in ends]) if len(ends) <= _MAX_READINGS else None
        if at is None:
            return _Match("", _as_printed(line))
        name, text = line[: ends[at]], line[ends[at] + 1 :]
    return _Match(name, f"  {_short(text)}")


def _consecutive(section: Sequence[str], named: NamedFiles) -> Iterator[_Match | None]:
    """`FILE-12-TEXT` can be cut in many places, but in each of a section's lines the name is the same, and the numbers
    go up by one."""
    first = section[0] if section else ""
    readings = list(_NUMBER_IN_CONTEXT.finditer(first, 1, _MAX_PATH_CHARS))
    for at, line in enumerate(section):
        readings = [reading for reading in readings if _reads_on(line, first, reading, at)]
    reading = _only_one(first, readings, named)
    for line in section:
        found = _NUMBER_IN_CONTEXT.match(line, reading.start()) if reading else None
        yield _read_at(line, found) if found else None


def _reads_on(line: str, first: str, reading: re.Match[str], at: int) -> bool:
    """Whether a line has the name that `reading` gives the first one, and the number `at` lines on."""
    number = f"{int(reading['number']) + at}"
    end = reading.start()
    mark = line[end : end + 1]
    return mark in (":", "-") and line.startswith(f"{mark}{number}{mark}", end) and line.startswith(first[:end])


def _read_at(line: str, found: re.Match[str]) -> _Match:
    text = _short(line[found.end() + 1 :])
    return _Match(line[: found.start()], f"{found['number']}{found['mark']}{text}")


def _as_printed(line: str) -> str:
    return line if "/" in line.partition(":")[0] else f"./{line}"


def _under_their_folders(files: Sequence[_File]) -> Iterator[str]:
    """A folder stands once above consecutive files in it; a single file has its whole path."""
    for (_, folder), together in groupby(files, key=lambda file: (bool(file.name), file.name.rpartition("/")[0])):
        group = list(together)
        has_heading = folder and len(group) > 1
        if has_heading:
            yield f"{folder}/"
        for file in group:
            name = file.name.rpartition("/")[2]
            if has_heading and not _LIKE_A_MATCH.match(name):
                yield name
            elif file.name:
                yield file.name if "/" in file.name else f"./{file.name}"
            yield from file.lines


def _short(text: str) -> str:
    text = text.strip()
    if len(text) <= MAX_LINE_CHARS or names_a_failure(text):
        return text
    return f"{text[:MAX_LINE_CHARS]}... (+{len(text) - MAX_LINE_CHARS} characters)"


@dataclass(frozen=True, slots=True)
class _Options:
    """The shape of the output, by the command's options."""

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
    """The short options, the long ones, and the operands."""
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
