"""From bytes to text and back without losing a byte. Where lines end and how text is shown live beside this.

Contract: tools.md, "Bytes": UTF-8/16/32 by BOM, else UTF-8 if valid, else a codec the user named, else latin-1 as
a guess, which maps every byte to one character and back.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from goat_mcp.core.errors import ErrorCode, ToolError

SAMPLE_BYTES = 64 * 1024
"""How much of a file's start decides whether it is binary."""
CONTROL_SAMPLE_BYTES = 16 * 1024
"""How much of that is looked at for control characters; a NUL is found thirty times faster."""
MAX_CONTROL_SHARE = 0.05
"""More control characters than this share of a sample are not text. Random bytes have about 0.1."""

# UTF-32 LE begins with UTF-16 LE's mark, so it has to be tried first.
_BOMS: tuple[tuple[bytes, str], ...] = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
# Backspace and escape occur in logs and man pages, the others in any text.
_TEXT_CONTROLS = b"\t\n\r\f\b\x1b"
_CONTROLS = bytes(byte for byte in (*range(0x20), 0x7F) if byte not in _TEXT_CONTROLS)
_UTF_8 = "utf-8"
_GUESS = "latin-1"


@dataclass(frozen=True, slots=True)
class TextFormat:
    """How a text lies in its file. `is_guess`: nobody knows the codec, latin-1 only carries the bytes through."""

    encoding: str = _UTF_8
    bom: bytes = b""
    is_guess: bool = False


UTF_8 = TextFormat()


@dataclass(frozen=True, slots=True)
class DecodedText:
    text: str
    format: TextFormat


def sniff_bom(data: bytes) -> TextFormat | None:
    """The format a byte order mark announces, if `data` begins with one."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return TextFormat(encoding, bom)
    return None


def decode_text(data: bytes, *, legacy_encoding: str | None = None) -> DecodedText:
    """The text of a whole file. `encode_text` turns it back into exactly these bytes.

    `legacy_encoding` is tried if neither a BOM nor UTF-8 fits. Raises `ToolError(ENCODING)` if Python has no
    codec of that name.
    """
    announced = sniff_bom(data)
    # A UTF-16 text that begins with U+0000 looks like UTF-32; it is no multiple of four bytes half of the time.
    for known in _candidates(data, announced):
        text = _try_decode(data[len(known.bom) :], known.encoding)
        if text is not None:
            return DecodedText(text, known)
    body = data[len(announced.bom) :] if announced else data
    bom = announced.bom if announced else b""
    if legacy_encoding is not None and not announced:
        require_codec(legacy_encoding)
        text = _decode_legacy(data, legacy_encoding)
        if text is not None:
            return DecodedText(text, TextFormat(legacy_encoding))
    return DecodedText(body.decode(_GUESS), TextFormat(_GUESS, bom, is_guess=True))


def decode_for_reading(data: bytes, *, legacy_encoding: str | None = None) -> DecodedText:
    """As `decode_text`, but UTF-16 and UTF-32 with damaged places keep their codec and show U+FFFD there.

    For showing only: the text does not turn back into the same bytes.
    """
    decoded = decode_text(data, legacy_encoding=legacy_encoding)
    announced = sniff_bom(data) if decoded.format.is_guess else None
    if announced is None or announced.encoding == _UTF_8:
        return decoded
    return DecodedText(data[len(announced.bom) :].decode(announced.encoding, "replace"), announced)


def require_codec(legacy_encoding: str) -> None:
    """Raise `ToolError(ENCODING)` unless Python has a text codec of that name."""
    try:
        "".encode(legacy_encoding)
    except LookupError:
        raise ToolError(
            ErrorCode.ENCODING,
            f"files.legacy_encoding names {legacy_encoding!r}, which is no codec Python knows",
            'Ask the user to set files.legacy_encoding to a codec name such as "cp1252", "shift_jis" or "gb18030".',
        ) from None


def encode_text(text: str, format: TextFormat) -> bytes:
    """The bytes of `text`, BOM included. Raises `ToolError(ENCODING)` naming what the codec cannot hold."""
    try:
        return format.bom + text.encode(format.encoding, _errors(format.encoding))
    except UnicodeEncodeError as problem:
        raise _cannot_hold(text, problem.start, format) from None


def check_insertion(new_text: str, format: TextFormat) -> None:
    """Refuse text that must not be added to a file of this format. Raises `ToolError(ENCODING)`.

    If the codec is a guess, only ASCII is safe: any other character might be written with the wrong byte.
    """
    try:
        new_text.encode("ascii" if format.is_guess else format.encoding)
    except UnicodeEncodeError as problem:
        raise _cannot_hold(new_text, problem.start, format) from None


def looks_binary(data: bytes) -> bool:
    """Whether the start of `data` is no text: a NUL, or many control characters, after decoding what a BOM names."""
    sample = data[:SAMPLE_BYTES]
    announced = sniff_bom(sample)
    if announced is not None and announced.encoding != _UTF_8:
        sample = sample[len(announced.bom) :].decode(announced.encoding, "ignore").encode(_UTF_8, "ignore")
    if b"\0" in sample:
        return True
    sample = sample[:CONTROL_SAMPLE_BYTES]
    controls = len(sample) - len(sample.translate(None, _CONTROLS))
    return controls > len(sample) * MAX_CONTROL_SHARE


def _candidates(data: bytes, announced: TextFormat | None) -> tuple[TextFormat, ...]:
    if announced is None:
        return (UTF_8,)
    if announced.encoding == "utf-32-le":
        return (announced, TextFormat("utf-16-le", codecs.BOM_UTF16_LE))
    return (announced,)


def _errors(encoding: str) -> str:
    # Windows file names and JavaScript write lone surrogates into UTF-16; they must survive an edit elsewhere.
    return "surrogatepass" if encoding.startswith(("utf-16-", "utf-32-")) else "strict"


def _try_decode(body: bytes, encoding: str) -> str | None:
    try:
        return body.decode(encoding, _errors(encoding))
    except UnicodeDecodeError:
        return None


def _decode_legacy(data: bytes, encoding: str) -> str | None:
    """The text, or None if this codec would not give back the same bytes."""
    try:
        text = data.decode(encoding)
        return text if text.encode(encoding) == data else None
    except UnicodeError:
        return None


def _cannot_hold(text: str, position: int, format: TextFormat) -> ToolError:
    character = text[position]
    line = text.count("\n", 0, position) + 1
    where = f"U+{ord(character):04X} in line {line} of the new text"
    if format.is_guess:
        return ToolError(
            ErrorCode.ENCODING,
            f"the file is not UTF-8 and its encoding is unknown, so only ASCII can be added; found {where}",
            "Write that part in ASCII, or ask the user to name the file's codec in files.legacy_encoding.",
        )
    return ToolError(
        ErrorCode.ENCODING,
        f"the file's encoding {format.encoding} cannot hold {where}",
        f"Use only characters that {format.encoding} has, or convert the file to UTF-8 first.",
    )
