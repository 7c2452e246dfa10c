"""The mark of a downloaded file on Windows, a stream beside its content: the Explorer and Office warn about one."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

STREAM = ":Zone.Identifier"
_INTERNET = 3
_IN_URLS = "/:@!$&'()*+,;=~%[]"


def zone_identifier(url: str) -> str:
    """`url` without what may be secret: a user's name and password, the query, the fragment."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    shown = quote(urlunsplit((parts.scheme, host, parts.path, "", "")), safe=_IN_URLS)
    return f"[ZoneTransfer]\r\nZoneId={_INTERNET}\r\nHostUrl={shown}\r\n"


def mark(path: Path, url: str) -> None:
    """Raises `OSError`, for example if the file system has no streams."""
    Path(f"{path}{STREAM}").write_bytes(zone_identifier(url).encode("ascii"))
