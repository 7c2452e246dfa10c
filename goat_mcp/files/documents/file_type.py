"""What a file is by its first bytes, and what the name of a file should end in. Content is believed before names."""

from __future__ import annotations

import re
from pathlib import PurePosixPath
from typing import Literal
from urllib.parse import unquote, urlsplit

HEAD_BYTES = 512
"""How much of a file's start all functions here need at most."""

ImageType = Literal["image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp"]

_BINARY_TYPES: tuple[tuple[bytes, str], ...] = (
    (b"\x7fELF", "an ELF executable or library"),
    (b"MZ", "a Windows executable"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O executable"),
    (b"\xca\xfe\xba\xbe", "a Java class or universal Mach-O file"),
    (b"\0asm", "a WebAssembly module"),
    (b"PK\x03\x04", "a zip archive (also docx, xlsx, jar, whl)"),
    (b"PK\x05\x06", "an empty zip archive"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "zstd data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
    (b"Rar!\x1a\x07", "a RAR archive"),
    (b"SQLite format 3\0", "an SQLite database"),
    (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
    (b"\0\0\x01\0", "an icon file"),
    (b"8BPS", "a Photoshop image"),
    (b"OggS", "Ogg audio or video"),
    (b"fLaC", "FLAC audio"),
    (b"ID3", "MP3 audio"),
    (b"\x1aE\xdf\xa3", "Matroska or WebM video"),
    (b"wOFF", "a WOFF font"),
    (b"wOF2", "a WOFF2 font"),
    (b"\0\x01\0\0\0", "a TrueType font"),
    (b"OTTO", "an OpenType font"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document"),
    (b"PAR1", "a Parquet file"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
)


def image_type(head: bytes) -> ImageType | None:
    """The media type of an image a model can be shown, else None. SVG is text and not among them."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    # "BM" alone begins many a text; a bitmap has four zero bytes and the size of its header behind it.
    if head.startswith(b"BM") and head[6:10] == b"\0\0\0\0" and head[14:18] in _BMP_HEADER_SIZES:
        return "image/bmp"
    return None


_BMP_HEADER_SIZES = tuple(size.to_bytes(4, "little") for size in (12, 40, 52, 56, 64, 108, 124))


def is_pdf(head: bytes) -> bool:
    return head.startswith(b"%PDF-")


def binary_type(head: bytes) -> str:
    """Words for what a binary file is."""
    for magic, words in _BINARY_TYPES:
        if head.startswith(magic):
            return words
    if head[257:262] == b"ustar":
        return "a tar archive"
    if head[4:8] == b"ftyp":
        return "an image or video in an MP4-like container (" + head[8:12].decode("ascii", "replace").strip() + ")"
    if head.startswith(b"RIFF"):
        return "RIFF audio or video"
    return "of unknown type"


def size_text(size: int) -> str:
    """A byte count a reader takes in at a glance: `345 bytes`, `1.2 MB (1,234,567 bytes)`."""
    amount, unit = float(size), "bytes"
    for larger_unit in ("KB", "MB", "GB", "TB"):
        if amount < 1000:
            break
        amount, unit = amount / 1000, larger_unit
    return f"{size} bytes" if unit == "bytes" else f"{amount:.1f} {unit} ({size:,} bytes)"


_OF_IMAGE = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    "image/bmp": ".bmp",
}
_SOUND = re.compile(r"\.[a-z0-9]{1,8}\Z")
_CLAIMS_NOTHING = frozenset({"", "application/octet-stream", "binary/octet-stream"})


def file_suffix(head: bytes, mime_type: str = "", uri: str = "") -> str:
    """`.pdf`, `.png`, ... from the first bytes, else from the claimed type, else from the URI's path, else `.bin`."""
    image = image_type(head)
    if image is not None:
        return _OF_IMAGE[image]
    if is_pdf(head):
        return ".pdf"
    claimed = mime_type.split(";")[0].strip().lower()
    if claimed not in _CLAIMS_NOTHING:
        import mimetypes  # most sessions never need it

        # Without files of the system's, which would make the answer depend on the machine.
        guessed = mimetypes.MimeTypes(filenames=()).guess_extension(claimed)
        if guessed is not None and guessed not in (*_OF_IMAGE.values(), ".pdf"):
            return guessed
    named = PurePosixPath(_last_name(uri)).suffix.lower()
    return named if _SOUND.match(named) else ".bin"


def _last_name(uri: str) -> str:
    """What may be a file's name in a URI; in `note://a.txt` it stands where others have a host."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return ""
    return unquote(parts.path or ("" if parts.scheme in ("http", "https") else parts.netloc))
