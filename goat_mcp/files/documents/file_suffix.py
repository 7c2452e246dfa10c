"""What the name of a file should end in, for bytes that came without a file. Content is believed before claims."""

from __future__ import annotations

import mimetypes
import re
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit

from goat_mcp.files.documents.file_type import image_type, is_pdf

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
