"""Keeps what a command prints: little of it in memory, the whole in a spill file that Read may open."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

HEAD_SHARE = 0.4
"""Share of a cut output's characters that shows its beginning; the end is what matters more often."""

_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    r"|(?:\x1b\]|\x9d)[^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links
    r"|\x1b[PX^_][^\x1b\n]{0,4096}\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b[#%()*+,./-][0-~]"  # charsets
    r"|\x1b[0-OQ-WYZ\\`-~]"  # two characters
)
# Control characters, direction overrides and tag characters: shown, so that text cannot hide or reorder itself.
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\U000e0000-\U000e007f]")


def readable(data: bytes) -> str:
    """Decode as UTF-8 (bad bytes become U+FFFD), drop escape sequences, show of a progress bar what it showed last,
    and make the remaining control characters visible."""
    text = data.decode("utf-8", "replace")
    if "\x1b" in text or "\x9b" in text or "\x9d" in text:
        text = _ESCAPES.sub("", text)
    if "\r" in text:
        text = re.sub(r"\r+\n", "\n", text)
    if "\r" in text or "\b" in text:
        text = "\n".join(_overwritten(line) for line in text.split("\n"))
    return _UNSEEN.sub(_visible, text)


def _overwritten(line: str) -> str:
    """A line as a terminal would leave it: after `\\r` the newer text stands, `\\b` takes a character back."""
    if "\r" in line:
        line = next((part for part in reversed(line.split("\r")) if part.strip()), "")
    if "\b" not in line:
        return line
    kept: list[str] = []
    for character in line:
        if character != "\b":
            kept.append(character)
        elif kept:
            kept.pop()
    return "".join(kept)


def _visible(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def whole_characters(data: bytes) -> int:
    """Length of `data` without an incomplete UTF-8 character at its end."""
    for back in range(1, min(4, len(data)) + 1):
        byte = data[-back]
        if byte & 0xC0 == 0x80:
            continue
        needed = 4 if byte >= 0xF0 else 3 if byte >= 0xE0 else 2 if byte >= 0xC0 else 1
        return len(data) - back if needed > back else len(data)
    return len(data)


def cut(text: str, max_chars: int, where: str, head_share: float = HEAD_SHARE) -> str:
    """Head and tail of a too long text, `max_chars` in all, around a line that says how much is missing and `where`
    the whole is. `head_share` 0 is the tail alone."""
    keep = max_chars - len(_cut_mark(f"{len(text)} characters", where))
    head = int(keep * head_share)
    mark = _cut_mark(f"{len(text) - keep} characters", where)
    return text[:head] + (mark if head else mark[1:]) + text[len(text) - (keep - head) :]


def join_cut(head: str, tail: str, max_chars: int, missing: str, where: str, head_share: float = HEAD_SHARE) -> str:
    """As `cut`, for a text of which only the head and the tail are at hand."""
    mark = _cut_mark(missing, where)
    keep = max_chars - len(mark)
    head_chars = int(keep * head_share)
    return head[:head_chars] + (mark if head_chars else mark[1:]) + tail[-(keep - head_chars) :]


def _cut_mark(missing: str, where: str) -> str:
    return f"\n[... {missing} cut{where} ...]\n"


MEMORY_BYTES = 384 * 1024
TAIL_BYTES = 256 * 1024
HEAD_BYTES = 128 * 1024
KEPT_BYTES = 64 * 1024 * 1024
"""What the file keeps of one command's output (R-PROC-6)."""
_CONTINUATION = bytes(range(0x80, 0xC0))


@dataclass(frozen=True)
class OutputPart:
    """Output as it is shown. `end` is where the next part begins, in bytes since the command started."""

    text: str
    end: int
    truncated: bool = False


class CreateFile(Protocol):
    """Makes the file a long output goes to."""

    def __call__(self, stem: str) -> tuple[Path, int]:
        """A new empty file and a descriptor to write it with, which the caller closes."""
        ...


class OutputCapture:
    """The output of one command, stdout and stderr as they came. Not for several threads at a time.

    Up to `MEMORY_BYTES` stay in memory only; a longer output, or one that `keep_file` was called for, goes to a
    file of `create_file`, of which the first 64 MiB are kept. The last `TAIL_BYTES` always stay in memory.
    """

    def __init__(self, create_file: CreateFile) -> None:
        self._create_file = create_file
        self._recent = bytearray()
        self._descriptor = -1
        self._kept = 0
        self._closed = False
        self.total = 0
        self.path: Path | None = None
        self.problem = ""

    def add(self, data: bytes) -> None:
        self.total += len(data)
        self._recent += data
        if self.path is not None:
            self._write(data)
        elif self.total > MEMORY_BYTES:
            self.keep_file()
        if self.path is not None and len(self._recent) > 2 * TAIL_BYTES:
            del self._recent[:-TAIL_BYTES]

    def keep_file(self) -> Path:
        """Put all there is, and all that comes, into a file."""
        if self.path is None:
            self.path, self._descriptor = self._create_file("bash")
            self._write(bytes(self._recent))
            if self._closed:
                self.close()
        return self.path

    def close(self) -> None:
        """Nothing more will be added. What there is can still be read."""
        self._closed = True
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def shown(
        self, max_chars: int, start: int = 0, *, complete: bool = True, head_share: float = HEAD_SHARE
    ) -> OutputPart:
        """The output from byte `start` on, as text of about `max_chars` at most: head and tail of a longer one.

        A too long output is put into a file, if it is not there yet. While a command runs (`complete` false) an
        unfinished character at the end waits for the next part.
        """
        last = bytes(self._recent[-4:])
        unfinished = 0 if complete else len(last) - whole_characters(last)
        end = self.total - unfinished
        start = min(start, end)
        from_recent = len(self._recent) - (self.total - start)
        recent = bytes(self._recent[max(0, from_recent) : len(self._recent) - unfinished])
        if from_recent >= 0:
            text = readable(recent).rstrip("\n")
            if len(text) <= max_chars:
                return OutputPart(text, end)
            return OutputPart(cut(text, max_chars, self._where(), head_share), end, truncated=True)
        first = self._from_file(start, min(HEAD_BYTES, -from_recent))
        missing = -from_recent - len(first)
        if not missing:
            text = readable(first + recent).rstrip("\n")
            if len(text) <= max_chars:
                return OutputPart(text, end)
            return OutputPart(cut(text, max_chars, self._where(), head_share), end, truncated=True)
        head = readable(first[: whole_characters(first)])[:max_chars]
        tail = readable(recent.lstrip(_CONTINUATION)).rstrip("\n")[-max_chars:]
        hidden = f"about {end - start - max_chars} bytes"
        return OutputPart(join_cut(head, tail, max_chars, hidden, self._where(), head_share), end, truncated=True)

    def last_line(self, max_chars: int = 200) -> str:
        """The newest line that is not blank, for progress messages."""
        lines = readable(bytes(self._recent[-2000:])).split("\n")
        return next((line.strip()[:max_chars] for line in reversed(lines) if line.strip()), "")

    def _where(self) -> str:
        path = self.keep_file()
        if self.problem:
            return f"; {path} holds the first {self._kept} bytes only: {self.problem}"
        if self.total > KEPT_BYTES:
            return f"; the first {KEPT_BYTES} of {self.total} bytes are in {path}, which Read and Grep can open"
        return f"; the whole is in {path}, which Read and Grep can open"

    def _write(self, data: bytes) -> None:
        data = data[: KEPT_BYTES - self._kept]
        if not data or self.problem:
            return
        try:
            if self._descriptor >= 0:
                while data:
                    written = os.write(self._descriptor, data)
                    self._kept += written
                    data = data[written:]
        except OSError as problem:
            # A full disk must not stop the command; the notice in `_where` says what is missing.
            self.problem = problem.strerror or str(problem)

    def _from_file(self, start: int, length: int) -> bytes:
        if self.path is None:
            return b""
        try:
            with self.path.open("rb") as file:
                file.seek(start)
                return file.read(length)
        except OSError:
            return b""


class SeparateStreams:
    """Given to a command when it is started, and read when it has ended or goes on without its caller."""

    def __init__(self, create_file: CreateFile) -> None:
        self.stdout = OutputCapture(create_file)
        self.stderr = OutputCapture(create_file)

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()
