"""A file as text, a block of whole lines at a time: marks, UTF-16, binary files, endless lines."""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

_FIRST_BYTES = 64 * 1024
_BLOCK_BYTES = 1024 * 1024
_MAX_LINE_BYTES = 8 * 1024 * 1024
"""Of a longer line only this much is searched."""
_WIDE_MARKS = ((codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))


@dataclass(frozen=True)
class FileText:
    """`is_binary`: there is a NUL byte at its beginning."""

    is_binary: bool
    blocks: Iterator[str]


def open_text(file: BinaryIO, *, whole: bool, stops_at_nul: bool) -> FileText:
    """The text of an open file. `whole` gives it as one block, for matches that span lines."""
    first = file.read(_FIRST_BYTES)
    wide = next((name for mark, name in _WIDE_MARKS if first.startswith(mark)), None)
    if wide is not None:
        text = (first + file.read()).decode(wide, "replace").removeprefix("\ufeff")
        return FileText(False, iter([text]))
    is_binary = b"\0" in first
    first = first.removeprefix(codecs.BOM_UTF8)
    if whole:
        return FileText(is_binary, iter([_decoded(first + file.read())]))
    return FileText(is_binary, _blocks(first, file, stops_at_nul))


def _blocks(first: bytes, file: BinaryIO, stops_at_nul: bool) -> Iterator[str]:
    rest = first
    while chunk := file.read(_BLOCK_BYTES):
        nul = chunk.find(b"\0") if stops_at_nul else -1
        data = rest + (chunk if nul < 0 else chunk[:nul])
        if nul >= 0:
            rest = data
            break
        end = data.rfind(b"\n") + 1
        if end:
            yield _decoded(data[:end])
            rest = data[end:]
        else:
            rest = data[:_MAX_LINE_BYTES]
    if rest:
        yield _decoded(rest)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
