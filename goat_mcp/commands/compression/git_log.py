"""`git log` and `git show`: one line for each commit, below its day and author, with the files it names.

Of a message the first line stays, and of the rest the lines that name a file, an issue or a failure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from goat_mcp.commands.compression.compressor import Compressed, names_a_failure
from goat_mcp.commands.compression.git_diff import stat_line, take_files
from goat_mcp.commands.shell.words import Words

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
