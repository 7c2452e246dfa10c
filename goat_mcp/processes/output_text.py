"""From a terminal program's bytes to text a model can read. Pure; how long output is cut is in `output_capture`."""

from __future__ import annotations

import re

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


def cut(text: str, max_chars: int, where: str) -> str:
    """Head and tail of a too long text, `max_chars` in all, around a line that says how much is missing and `where`
    the whole is."""
    keep = max_chars - len(_cut_mark(f"{len(text)} characters", where))
    head = int(keep * HEAD_SHARE)
    return text[:head] + _cut_mark(f"{len(text) - keep} characters", where) + text[len(text) - (keep - head) :]


def join_cut(head: str, tail: str, max_chars: int, missing: str, where: str) -> str:
    """As `cut`, for a text of which only the head and the tail are at hand."""
    mark = _cut_mark(missing, where)
    keep = max_chars - len(mark)
    head_chars = int(keep * HEAD_SHARE)
    return head[:head_chars] + mark + tail[-(keep - head_chars) :]


def _cut_mark(missing: str, where: str) -> str:
    return f"\n[... {missing} cut{where} ...]\n"
