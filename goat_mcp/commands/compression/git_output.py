"""What `git diff`, `git log` and `git show` print, in fewer words.

Of a diff: each file's changed lines and their places, without unchanged lines around them. A file's name stands behind
`===`, with which no changed line begins; behind git's `---` it would look like a deleted `-- text`. Of a log: one line
for each commit, below its day and author, with the files it names; of a message the first line stays, and of the rest
the lines that name a file, an issue or a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from goat_mcp.commands.compression.compressor import Compressed, names_a_failure
from goat_mcp.commands.shell.words import Words

_QUOTED = re.compile(r'"(?P<inside>(?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(rb"\\(?:(?P<octal>[0-7]{3})|(?P<letter>.))")
_LETTERS = {b"a": b"\a", b"b": b"\b", b"t": b"\t", b"n": b"\n", b"v": b"\v", b"f": b"\f", b"r": b"\r"}
_PREFIX = re.compile(r'"?(?P<prefix>[abciwo]/)')


def plain_name(name: str) -> str:
    """A file's name without git's quotes and escapes. One that is no text, or more than a line, keeps them.

    Source: git-config(1), core.quotePath.
    """
    quoted = _QUOTED.fullmatch(name)
    if quoted is None:
        return name
    try:
        decoded = _ESCAPE.sub(_unescaped, quoted["inside"].encode()).decode()
    except (UnicodeError, ValueError):
        return name
    return decoded if decoded.isprintable() else name


def without_prefix(name: str) -> str:
    """The plain name behind `a/`, `b/` or another letter that git puts before it."""
    prefix = _PREFIX.match(name)
    return plain_name(name[: prefix.start("prefix")] + name[prefix.end() :] if prefix else name)


def _unescaped(escape: re.Match[bytes]) -> bytes:
    if octal := escape["octal"]:
        return bytes([int(octal, 8)])
    return _LETTERS.get(escape["letter"], escape["letter"])


_STAT_FILE = re.compile(r" (?P<file>\S(?:.*\S)?) +\| +(?P<count>\d+)(?: [+-]+)?")
_STAT_KEPT = re.compile(r" .+ \| +Bin .*| \d+ files? changed.*| (?:create|delete) mode .+| mode change .+| rename .+")


def stat_line(line: str) -> str | None:
    """The short form of a line of the table of `--stat`; None for other lines."""
    if found := _STAT_FILE.fullmatch(line):
        return f" {found['file']} | {found['count']}"
    return line if _STAT_KEPT.fullmatch(line) else None


def take_stat(lines: Sequence[str]) -> Compressed:
    """The table of `--stat`: each file with its number of changed lines, without the graph."""
    kept: list[str] = []
    for line in lines:
        shown = stat_line(line)
        if shown is None:
            break
        kept.append(shown)
    return Compressed(tuple(kept), len(kept))


_BEGINS = "diff --git "
_HUNK = re.compile(r"@@ -(?P<old>\d+)(?:,(?P<old_count>\d+))? \+(?P<new>\d+)(?:,(?P<new_count>\d+))? @@(?: .*)?")
_ABOUT = re.compile(
    r"(?:index [0-9a-f]+\.\.[0-9a-f]+.*|(?:dis)?similarity index \d+%|old mode \d+|new mode \d+|new file mode \d+|"
    r"deleted file mode \d+|(?:rename|copy) (?:from|to) .+|Binary files .+ differ)"
)


def compress_git_diff(words: Words, lines: Sequence[str]) -> Compressed | None:
    stat = take_stat(lines) if "--stat" in words or "--patch-with-stat" in words else Compressed((), 0)
    files = take_files(lines, stat.taken)
    return None if files is None else Compressed((*stat.lines, *files.lines), stat.taken + files.taken)


def take_files(lines: Sequence[str], start: int) -> Compressed | None:
    """The files of a diff that begin at `start`. None: something in them is no plain diff."""
    kept: list[str] = []
    at = start
    while at < len(lines) and lines[at].startswith(_BEGINS):
        file = _File(lines[at][len(_BEGINS) :])
        at += 1
        while at < len(lines) and _ABOUT.fullmatch(lines[at]):
            file.learn(lines[at])
            at += 1
        if _names_both_sides(lines, at):
            file.learn(lines[at])
            file.learn(lines[at + 1])
            at += 2
        while at < len(lines) and (hunk := _HUNK.fullmatch(lines[at])):
            end = file.take_hunk(hunk, lines, at + 1)
            if end is None:
                return None
            at = end
        kept.extend(file.shown())
    return Compressed(tuple(kept), at - start)


def _names_both_sides(lines: Sequence[str], at: int) -> bool:
    """Whether `--- OLD`, `+++ NEW` and a hunk stand here."""
    signs = ("--- ", "+++ ", "@@ ")
    return at + 2 < len(lines) and all(line.startswith(sign) for line, sign in zip(lines[at:], signs, strict=False))


@dataclass
class _File:
    """One file of a diff. `names` is what follows `diff --git`."""

    names: str
    facts: list[str] = field(default_factory=list[str])
    name: str = ""
    old_mode: str = ""
    is_deleted: bool = False
    changed: list[str] = field(default_factory=list[str])
    deleted_lines: int = 0

    def learn(self, line: str) -> None:
        if line.startswith("deleted file"):
            self.is_deleted = True
        elif line.startswith("new file"):
            self.facts.append("new")
        elif line.startswith("old mode "):
            self.old_mode = line.removeprefix("old mode ")
        elif line.startswith("new mode "):
            self.facts.append(f"mode {self.old_mode} -> {line.removeprefix('new mode ')}")
        elif line.startswith(("rename from ", "copy from ")):
            how, name = line.split(" from ", 1)
            self.facts.append(f"{how} from {plain_name(name)}")
        elif line.startswith(("rename to ", "copy to ")):
            self.name = plain_name(line.split(" to ", 1)[1])
        elif line.startswith("Binary files "):
            self.facts.append("binary")
        elif line.startswith(("--- ", "+++ ")) and line[4:] != "/dev/null":
            self.name = self._without_prefix(line[4:].rstrip("\t"))

    def take_hunk(self, hunk: re.Match[str], lines: Sequence[str], start: int) -> int | None:
        """Returns the hunk's end by its own counts; None if it does not hold what it counts."""
        old, new = int(hunk["old"]), int(hunk["new"])
        old_left, new_left = int(hunk["old_count"] or 1), int(hunk["new_count"] or 1)
        at = start
        in_run = False
        changed_before = len(self.changed)
        while at < len(lines) and (old_left or new_left or lines[at].startswith("\\ ")):
            line = lines[at]
            mark = line[:1]
            if mark in ("+", "-"):
                if not in_run:
                    self.changed.append(f"@@ {new}" if old == new else f"@@ -{old} +{new}")
                in_run = True
                self.changed.append(line)
            elif mark == "\\":
                self.changed.append(line)
            elif mark in (" ", ""):
                in_run = False
            else:
                return None
            is_old, is_new = mark in ("-", " ", ""), mark in ("+", " ", "")
            old, old_left = old + is_old, old_left - is_old
            new, new_left = new + is_new, new_left - is_new
            self.deleted_lines += mark == "-"
            at += 1
        return None if old_left or new_left or len(self.changed) == changed_before else at

    def shown(self) -> list[str]:
        facts = self.facts
        changed = self.changed
        if self.is_deleted:
            facts = [*facts, f"deleted, {self.deleted_lines} lines"]
            changed = []
        return [f"=== {self.name or self._name_of_header()}" + (f" ({', '.join(facts)})" if facts else ""), *changed]

    def _name_of_header(self) -> str:
        """If no other line names the file, it kept its name: `a/NAME b/NAME`."""
        half = len(self.names) // 2
        return self._without_prefix(self.names[half + 1 :])

    def _without_prefix(self, name: str) -> str:
        half = len(self.names) // 2
        has_no_prefix = self.names[:half] == self.names[half + 1 :]
        return plain_name(name) if has_no_prefix else without_prefix(name)


_COMMIT = re.compile(r"commit (?P<hash>[0-9a-f]{40}|[0-9a-f]{64})(?P<refs> \(.+\))?")
_HEADER = re.compile(r"(?P<key>Merge|Author|AuthorDate|Commit|CommitDate|Date): +(?P<value>.+)")
_NAME = re.compile(r"(?P<name>.*?) *<[^<>]*>")
_DATE = re.compile(r"[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) (?P<day>\d+) [\d:]{8} (?P<year>\d{4})(?: [-+]\d{4})?")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d(?=[T ])")
_MONTHS = "JanFebMarAprMayJunJulAugSepOctNovDec"
_NAMES_SOMETHING = re.compile(r"[\w-]\.[A-Za-z]\w{0,4}\b|\w/\w|#\d+|:\d+\b|^[A-Z][\w-]+-by: ")
_LISTS_FILES = ("--name-only", "--name-status", "--raw")
_SHOWN_HASH = 8


def compress_git_log(words: Words, lines: Sequence[str]) -> Compressed | None:
    log = _Log(lines, lists_files=any(word in _LISTS_FILES for word in words))
    while log.take_commit():
        pass
    return Compressed(tuple(log.kept), log.at) if log.at and not log.failed else None


class _Log:
    """Reads commit by commit. `failed`: something in it is no log."""

    def __init__(self, lines: Sequence[str], *, lists_files: bool) -> None:
        self.kept: list[str] = []
        self.at = 0
        self.failed = False
        self._lines = lines
        self._lists_files = lists_files
        self._under = ""
        self._hash_chars = _unique_hash_chars(lines)

    def take_commit(self) -> bool:
        commit = _COMMIT.fullmatch(self._line())
        if commit is None:
            return False
        self.at += 1
        merge = self._take_headers()
        message = self._take_message()
        subject = message[0] if message else ""
        telling = [line for line in message[1:] if _NAMES_SOMETHING.search(line) or names_a_failure(line)]
        left_out = sum(map(bool, message[1:])) - len(telling)
        self.kept.append(
            f"{commit['hash'][: self._hash_chars]} {subject}{commit['refs'] or ''}{merge}"
            + (f" (+{left_out} lines)" if left_out else "")
        )
        self.kept.extend(f"  {line}" for line in telling)
        self._take_files()
        return not self.failed

    def _line(self) -> str:
        return self._lines[self.at] if self.at < len(self._lines) else ""

    def _take_headers(self) -> str:
        """Author and day head the commits that share them. Returns the note on a merge."""
        merge, author, day = "", "", ""
        while header := _HEADER.fullmatch(self._line()):
            key, value = header["key"], header["value"]
            if key == "Merge":
                merge = f" (merge {value})"
            elif key == "Author":
                named = _NAME.fullmatch(value)
                author = named["name"] if named else value
            elif key in ("Date", "AuthorDate"):
                day = _day(value)
            self.at += 1
        if (under := f"{day} {author}".strip()) != self._under:
            self._under = under
            self.kept.append(f"{under}:")
        return merge

    def _take_message(self) -> list[str]:
        if self._line() == "" and self.at < len(self._lines):
            self.at += 1
        message: list[str] = []
        while self.at < len(self._lines) and (self._line().startswith("    ") or self._is_gap_in_message()):
            message.append(self._line().strip())
            self.at += 1
        return message

    def _is_gap_in_message(self) -> bool:
        follows = self._lines[self.at + 1] if self.at + 1 < len(self._lines) else ""
        return self._line() == "" and follows.startswith("    ")

    def _take_files(self) -> None:
        while self.at < len(self._lines):
            line = self._line()
            if line.startswith("diff --git "):
                files = take_files(self._lines, self.at)
                if files is None:
                    self.failed = True
                    return
                self.kept.extend(files.lines)
                self.at += files.taken
                continue
            if (stat := stat_line(line)) is not None:
                self.kept.append(stat)
            elif self._lists_files and line and not _COMMIT.fullmatch(line):
                self.kept.append(line)
            elif line not in ("", "---"):
                return
            self.at += 1


def _unique_hash_chars(lines: Sequence[str]) -> int:
    """How many characters of the hashes tell the commits apart."""
    hashes = {found["hash"] for line in lines if (found := _COMMIT.fullmatch(line))}
    for chars in (_SHOWN_HASH, 12, 20):
        if len({hash[:chars] for hash in hashes}) == len(hashes):
            return chars
    return 64


def _day(date: str) -> str:
    if found := _DATE.fullmatch(date):
        month = _MONTHS.find(found["month"]) // 3 + 1
        return f"{found['year']}-{month:02d}-{int(found['day']):02d}"
    iso = _ISO_DATE.match(date)
    return iso[0] if iso else date
