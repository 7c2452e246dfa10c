"""The file that is about to be changed: its bytes, the version that a later write must still find, and its text as the
UTF-8 that edits work on, turned back without touching a byte that is not edited."""

from __future__ import annotations

import codecs
from collections.abc import Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.line_ends import common_ends
from goat_mcp.files.documents.text_encoding import (
    TextFormat,
    check_insertion,
    decode_text,
    encode_text,
    looks_binary,
    sniff_bom,
)
from goat_mcp.files.editing.matching import to_bytes
from goat_mcp.files.workspace import Files, FileVersion, OpenedFile, WorkspacePath

MAX_BYTES = 256 * 1024 * 1024
"""A change holds the file in memory twice."""
_HASHED_BESIDE_BYTES = 1024 * 1024
"""Above this size the hash is worked out while the caller goes on; it takes 0.06 s for 100 MB, or much longer."""


@dataclass(frozen=True)
class CurrentFile:
    """`data` is the whole content. Use `version` while the file is open."""

    data: bytes
    _file: OpenedFile
    _hashing: Future[FileVersion] | None

    @property
    def version(self) -> FileVersion:
        return self._file.version(self.data) if self._hashing is None else self._hashing.result()


@contextmanager
def open_current(files: Files, path: WorkspacePath, real_path: Path) -> Generator[CurrentFile]:
    """Read the file at `path`, whose lock is held under `real_path`.

    Raises `ToolError`: as `Files.open_file`; TOO_LARGE; STALE if a link on the way has been changed meanwhile.
    """
    with files.open_file(path) as file:
        if file.real_path != real_path:
            raise ToolError(ErrorCode.STALE, f"{path} leads to another file than a moment ago", "Call again.")
        if file.stat.st_size > MAX_BYTES:
            raise ToolError(
                ErrorCode.TOO_LARGE,
                f"{path} has {file.stat.st_size:,} bytes; files above {MAX_BYTES:,} bytes are not changed as a whole",
                "Change it with a program that works on streams (sed, awk), run by Bash.",
            )
        data = file.read()
        if len(data) < _HASHED_BESIDE_BYTES:
            yield CurrentFile(data, file, None)
            return
        with ThreadPoolExecutor(max_workers=1, thread_name_prefix="goat-hash") as beside:
            yield CurrentFile(data, file, beside.submit(file.version, data))


_CHECKED_BYTES = 1024 * 1024
"""UTF-8 is checked in pieces of this size: a decoded copy of a large file would take up to four times its size."""


@dataclass(frozen=True)
class StoredText:
    """`content` is UTF-8 without a BOM; `format` is how it lies on disk."""

    content: bytes
    format: TextFormat

    def stored(self, content: bytes) -> bytes:
        """New content as the file will hold it. Raises `ToolError(ENCODING)` for what its codec cannot hold."""
        if self.format.encoding == "utf-8":
            return self.format.bom + content if self.format.bom else content
        return encode_text(content.decode("utf-8", "surrogatepass"), self.format)

    def check_insertion(self, old: str, new: str) -> None:
        """Refuse characters that must not be added. What `old` and `new` begin and end with alike is not added."""
        head, tail = common_ends(old, new)
        check_insertion(new[head : len(new) - tail], self.format)


def load_text(data: bytes, *, legacy_encoding: str | None, path: str) -> StoredText:
    """Raises `ToolError(BINARY)` for what Read would not show either."""
    if looks_binary(data):
        raise ToolError(
            ErrorCode.BINARY,
            f"{path} is a binary file ({len(data):,} bytes); nothing was written",
            "Change it with a program made for its format, run by Bash.",
        )
    announced = sniff_bom(data)
    if announced is None or announced.encoding == "utf-8":
        content = data[len(announced.bom) :] if announced else data
        if _is_utf_8(content):
            return StoredText(content, announced or TextFormat())
    decoded = decode_text(data, legacy_encoding=legacy_encoding)
    return StoredText(to_bytes(decoded.text), decoded.format)


def _is_utf_8(content: bytes) -> bool:
    if content.isascii():
        return True
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(content), _CHECKED_BYTES):
            decoder.decode(content[start : start + _CHECKED_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True
