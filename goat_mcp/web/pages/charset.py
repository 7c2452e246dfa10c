"""The characters of a page: BOM, header, meta element, XML declaration, a guess, in this order (WHATWG's)."""

from __future__ import annotations

import codecs
import re

_BOMS = ((codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be"))
_HEADER = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META = re.compile(rb"<meta[^>]{0,400}?charset\s*=\s*[\"']?([A-Za-z0-9_.:-]{1,40})", re.IGNORECASE)
_META_WITHIN_BYTES = 2048
_XML = re.compile(rb"<\?xml[^>]{0,200}?\sencoding\s*=\s*[\"']([A-Za-z0-9_.:-]{1,40})")
# Servers say the narrower set and mean the wider one, which is what browsers read (WHATWG's Encoding).
_MEANT = {
    "ascii": "cp1252",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "shift_jis": "cp932",
    "tis-620": "cp874",
    "utf-16": "utf-16-le",
}
# Codecs that are no character sets of pages: some take quadratic time, some run escapes.
_NOT_OF_PAGES = frozenset(
    {"idna", "punycode", "utf-7", "unicode-escape", "unicode_escape", "raw-unicode-escape", "raw_unicode_escape"}
    | {"undefined", "mbcs", "oem"}
)


def decode_page(body: bytes, content_type: str) -> str:
    """The text of a body. Damaged places become U+FFFD; a label that nobody knows is not used."""
    for bom, encoding in _BOMS:
        if body.startswith(bom):
            return body[len(bom) :].decode(encoding, "replace")
    for label in (_in_header(content_type), _in_meta(body, content_type), _in_declaration(body)):
        encoding = _codec(label)
        if encoding is not None:
            return body.decode(encoding, "replace")
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError as problem:
        # A character that was cut where a body was too long does not make it another encoding.
        is_cut = problem.reason == "unexpected end of data" and not body[: problem.start].isascii()
        return body.decode("utf-8" if is_cut else "cp1252", "replace")


def _in_header(content_type: str) -> str | None:
    found = _HEADER.search(content_type)
    return None if found is None else found[1]


def _in_meta(body: bytes, content_type: str) -> str | None:
    if "html" not in content_type and not body[:512].lstrip().startswith(b"<"):
        return None
    return _of_ascii(_META.search(body[:_META_WITHIN_BYTES]))


def _in_declaration(body: bytes) -> str | None:
    return _of_ascii(_XML.match(body))


def _of_ascii(found: re.Match[bytes] | None) -> str | None:
    """A label that was read as ASCII: the page cannot be in a wide encoding whatever it says."""
    if found is None:
        return None
    label = found[1].decode("ascii")
    return "utf-8" if label.lower().startswith(("utf-16", "utf-32")) else label


def _codec(label: str | None) -> str | None:
    if label is None:
        return None
    try:
        name = codecs.lookup(label).name
        " ".encode(name)
    except (LookupError, UnicodeError, ValueError):
        return None  # unknown, or one that does not make bytes of text (base64, zip)
    return None if name in _NOT_OF_PAGES else _MEANT.get(name, name)
