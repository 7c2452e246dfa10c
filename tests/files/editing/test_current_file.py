from __future__ import annotations

import codecs

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.text_encoding import TextFormat
from goat_mcp.files.editing.current_file import StoredText, load_text
from goat_mcp.files.editing.edit_list import TextEdit, apply_edits
from tests.files.editing.texts import LATIN_1_ALPHABET, normalised, texts_with_a_part

BOM_OF = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "utf-32-le": codecs.BOM_UTF32_LE,
    "utf-32-be": codecs.BOM_UTF32_BE,
}


def load(data: bytes, legacy_encoding: str | None = None) -> StoredText:
    return load_text(data, legacy_encoding=legacy_encoding, path="/f")


def change(data: bytes, old: str, new: str, legacy_encoding: str | None = None) -> bytes:
    stored = load(data, legacy_encoding)
    stored.check_insertion(old, new)
    return stored.stored(apply_edits(stored.content, [TextEdit(old, new)], path="/f", allow_fuzz=True).content)


@given(texts_with_a_part(), st.sampled_from(sorted(BOM_OF)))
def test_bytes_around_a_replaced_part_stay_in_every_encoding(case: tuple[str, str], encoding: str) -> None:
    text, old = case
    if sum(normalised(text).startswith(old, at) for at in range(len(text))) != 1:
        return
    codec, bom = encoding.removesuffix("-sig"), BOM_OF[encoding]
    data = bom + text.encode(codec)
    before, after = normalised(text).split(old)
    head = _as_long_as(text, before).encode(codec)
    tail = text[len(_as_long_as(text, before + old)) :].encode(codec)

    result = change(data, old, "NEW")

    assert result == bom + head + "NEW".encode(codec) + tail
    assert after == normalised(tail.decode(codec))


@given(texts_with_a_part(LATIN_1_ALPHABET))
def test_bytes_of_an_unknown_codec_pass_through(case: tuple[str, str]) -> None:
    text, old = case
    text += "\xe9\xe9"  # never valid UTF-8
    if sum(normalised(text).startswith(old, at) for at in range(len(text))) != 1:
        return
    before = normalised(text).split(old)[0]
    head, tail = _as_long_as(text, before), text[len(_as_long_as(text, before + old)) :]

    assert change(text.encode("latin-1"), old, "NEW") == (head + "NEW" + tail).encode("latin-1")


def test_only_ascii_is_added_where_nobody_knows_the_codec() -> None:
    data = b"caf\xe9 old\n"

    with pytest.raises(ToolError) as refusal:
        change(data, "old", "\xe9")

    assert refusal.value.code is ErrorCode.ENCODING
    assert change(data, "caf\xe9 old", "caf\xe9 new") == b"caf\xe9 new\n"


def test_a_named_codec_takes_what_it_can_hold() -> None:
    data = "Привет мир\n".encode("cp1251")

    assert change(data, "мир", "Ёж", "cp1251") == "Привет Ёж\n".encode("cp1251")
    with pytest.raises(ToolError) as refusal:
        change(data, "мир", "世", "cp1251")
    assert refusal.value.code is ErrorCode.ENCODING


def test_half_a_surrogate_cannot_be_added_but_one_elsewhere_stays() -> None:
    data = codecs.BOM_UTF16_LE + "a\ud800b old".encode("utf-16-le", "surrogatepass")

    assert change(data, "old", "new") == codecs.BOM_UTF16_LE + "a\ud800b new".encode("utf-16-le", "surrogatepass")
    for target in (data, b"a old"):
        with pytest.raises(ToolError) as refusal:
            change(target, "old", "\ud800")
        assert refusal.value.code is ErrorCode.ENCODING


def test_binary_files_are_not_edited_as_text() -> None:
    with pytest.raises(ToolError) as refusal:
        load(b"\x7fELF\0\0\0old")

    assert refusal.value.code is ErrorCode.BINARY


def test_large_text_that_is_no_utf_8_at_its_end_is_noticed() -> None:
    data = ("\xe9" * 800_000).encode() + b"\xe9"

    assert load(data).format == TextFormat("latin-1", is_guess=True)


def _as_long_as(text: str, plain: str) -> str:
    """The head of `text` that is `plain` once its line ends are line feeds."""
    at = 0
    for _ in plain:
        at += 2 if text.startswith("\r\n", at) else 1
    return text[:at]
