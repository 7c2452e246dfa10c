"""What bytes read as, that they come back unchanged, and what may not be written into them."""

from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.text_encoding import (
    SAMPLE_BYTES,
    DecodedText,
    TextFormat,
    check_insertion,
    decode_text,
    encode_text,
    looks_binary,
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", DecodedText("", TextFormat())),
        (b"plain", DecodedText("plain", TextFormat())),
        ("é".encode(), DecodedText("é", TextFormat())),
        (codecs.BOM_UTF8 + b"x", DecodedText("x", TextFormat("utf-8", codecs.BOM_UTF8))),
        (codecs.BOM_UTF16_LE + b"x\0", DecodedText("x", TextFormat("utf-16-le", codecs.BOM_UTF16_LE))),
        (codecs.BOM_UTF16_BE + b"\0x", DecodedText("x", TextFormat("utf-16-be", codecs.BOM_UTF16_BE))),
        (codecs.BOM_UTF32_LE + b"x\0\0\0", DecodedText("x", TextFormat("utf-32-le", codecs.BOM_UTF32_LE))),
        (codecs.BOM_UTF32_BE + b"\0\0\0x", DecodedText("x", TextFormat("utf-32-be", codecs.BOM_UTF32_BE))),
        (codecs.BOM_UTF32_LE + b"x\0", DecodedText("\0x", TextFormat("utf-16-le", codecs.BOM_UTF16_LE))),
        (b"caf\xe9", DecodedText("café", TextFormat("latin-1", is_guess=True))),
    ],
)
def test_a_bom_decides_then_utf_8_then_latin_1_is_a_guess(data: bytes, expected: DecodedText) -> None:
    assert decode_text(data) == expected


def test_the_codec_a_user_names_is_used_where_utf_8_does_not_fit() -> None:
    decoded = decode_text("日本".encode("shift_jis"), legacy_encoding="shift_jis")

    assert decoded == DecodedText("日本", TextFormat("shift_jis"))
    assert encode_text("日本語", decoded.format) == "日本語".encode("shift_jis")


def test_a_named_codec_never_overrules_valid_utf_8() -> None:
    assert decode_text("é".encode(), legacy_encoding="cp1252") == DecodedText("é", TextFormat())


def test_an_unknown_codec_name_is_an_error_that_names_the_setting() -> None:
    with pytest.raises(ToolError) as refused:
        decode_text(b"\xff", legacy_encoding="klingon")

    assert refused.value.code == ErrorCode.ENCODING
    assert "files.legacy_encoding names 'klingon'" in refused.value.message


BOMS = (b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE, codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)


@given(st.sampled_from(BOMS), st.binary(), st.sampled_from([None, "cp1252", "shift_jis", "iso2022_jp", "utf-7"]))
def test_any_bytes_come_back_unchanged(bom: bytes, body: bytes, legacy: str | None) -> None:
    decoded = decode_text(bom + body, legacy_encoding=legacy)

    assert encode_text(decoded.text, decoded.format) == bom + body


def test_only_ascii_goes_into_a_file_of_unknown_encoding() -> None:
    guessed = decode_text(b"caf\xe9").format

    check_insertion("plain", guessed)
    with pytest.raises(ToolError) as refused:
        check_insertion("first\nü", guessed)

    assert refused.value.code == ErrorCode.ENCODING
    assert "U+00FC in line 2 of the new text" in refused.value.message


def test_what_a_codec_cannot_hold_is_named() -> None:
    with pytest.raises(ToolError) as refused:
        encode_text("漢", TextFormat("cp1252"))

    assert refused.value.message == "the file's encoding cp1252 cannot hold U+6F22 in line 1 of the new text"


@pytest.mark.parametrize("text", ["\ud800", "a\udfffb"])
def test_half_a_surrogate_pair_is_never_inserted(text: str) -> None:
    for encoding in ("utf-8", "utf-16-le"):
        with pytest.raises(ToolError):
            check_insertion(text, TextFormat(encoding))


@pytest.mark.parametrize(
    ("data", "binary"),
    [
        (b"", False),
        (b"text\n", False),
        (b"\x1b[31mred\x1b[0m and plain\n", False),
        ("日本語".encode("shift_jis"), False),
        ("text\n".encode("utf-16"), False),
        ("text\n".encode("utf-32"), False),
        (codecs.BOM_UTF16_LE + b"a\0\0\0", True),
        (b"one\0two", True),
        (bytes(range(256)) * 20, True),
        (b"\x01\x02\x03 few letters", True),
        (b"x" * SAMPLE_BYTES + b"\0", False),
    ],
)
def test_nul_or_many_controls_after_decoding_are_binary(data: bytes, binary: bool) -> None:
    assert looks_binary(data) is binary
