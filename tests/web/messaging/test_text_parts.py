"""Long texts in several messages: nothing is lost, nothing is too long, and markup is whole in each part."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.web.messaging.text_parts import OF_TELEGRAM, html, markdown, markdown_v2, mrkdwn, split_text, utf16_length
from tests.repetitions import examples

LIMIT = 4096
GOAT = "\U0001f410"


class OpenTags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def seen(part: str) -> str:
    """The text of a part of HTML, every element of which has to be closed."""
    parser = OpenTags()
    parser.feed(part)
    parser.close()
    assert parser.open == []
    return parser.text


def test_a_text_that_fits_is_one_part() -> None:
    assert split_text("x" * LIMIT, LIMIT) == ["x" * LIMIT]
    assert split_text(GOAT * 2048, LIMIT) == [GOAT * 2048]


def test_units_are_those_of_utf_16_and_no_pair_is_cut() -> None:
    parts = split_text("x" + GOAT * 2048, LIMIT)

    assert parts == ["x" + GOAT * 2047, GOAT]
    assert [len(part.encode("utf-16-le")) // 2 for part in parts] == [4095, 2]


@settings(max_examples=examples(60), deadline=None)
@given(st.text(alphabet=st.sampled_from(f"ab \n{GOAT}é\u0301\u200d&<>*_`~|[]()\\"), max_size=300), st.integers(8, 60))
def test_nothing_of_a_plain_text_is_lost_but_blanks_and_no_part_is_too_long(text: str, limit: int) -> None:
    parts = split_text(text, limit)

    assert re.sub(r"\s", "", "".join(parts)) == re.sub(r"\s", "", text)
    assert all(utf16_length(part) <= limit for part in parts)


@settings(max_examples=examples(60), deadline=None)
@given(st.text(alphabet=st.sampled_from(f"a \n{GOAT}*_`~|[]()\\<b>/&;"), max_size=300), st.sampled_from([*OF_TELEGRAM]))
def test_no_part_of_any_markup_is_too_long(text: str, mode: str) -> None:
    parts = split_text(text, 60, OF_TELEGRAM[mode])

    assert all(utf16_length(part) <= 60 for part in parts)


def test_paragraphs_are_kept_before_lines_and_words() -> None:
    first, second = "word " * 600 + "end.\n\n", "line\n" * 300

    assert split_text(first + second, LIMIT) == [first, second]
    assert split_text("a " * 3000, LIMIT)[0].endswith(" ")
    assert [len(part) for part in split_text("one two\n" * 600, LIMIT)] == [4096, 704]


def test_an_element_that_fits_a_message_is_not_divided() -> None:
    text = "x" * 1000 + "<b>" + "y" * 3500 + "</b>"

    assert split_text(text, LIMIT, html) == ["x" * 1000, "<b>" + "y" * 3500 + "</b>"]


def test_an_element_that_fits_none_is_closed_and_opened_again() -> None:
    link = '<a href="https://example.com/?a=1&amp;b=2">'
    text = f"<b>{link}" + "word " * 2000 + "</a></b> end"

    parts = split_text(text, LIMIT, html)

    assert len(parts) == 3
    assert all(part.startswith(f"<b>{link}word") for part in parts)
    assert "".join(map(seen, parts)) == "word " * 2000 + " end"
    assert all(utf16_length(part) <= LIMIT for part in parts)


def test_a_reference_or_tag_is_never_cut() -> None:
    text = "&amp;" * 2000

    assert [part.count("&amp;") for part in split_text(text, LIMIT, html)] == [819, 819, 362]


@pytest.mark.parametrize("pieces", [markdown_v2, markdown, mrkdwn])
def test_a_code_block_goes_on_as_one_with_its_language(pieces: object) -> None:
    opening = "```" if pieces is mrkdwn else "```python\n"
    text = opening + "print(1)\n" * 1000 + "```"

    parts = split_text(text, LIMIT, pieces)  # pyright: ignore[reportArgumentType]  # one of the three

    assert len(parts) == 3
    assert all(part.startswith(f"{opening}print") and part.endswith("```") for part in parts)
    assert "".join(part.removeprefix(opening).removesuffix("```") for part in parts) == "print(1)\n" * 1000


def test_marks_escapes_and_links_of_markdown_are_whole() -> None:
    bold = "*" + "\\." * 3000 + "*"
    links = "[a\\]b](https://example.com/x) " * 200

    parts = split_text(bold, LIMIT, markdown_v2)
    assert all(re.fullmatch(r"\*(\\\.)+\*", part) for part in parts)
    assert all(
        re.fullmatch(r"(\[a\\\]b\]\(https://example.com/x\) )+", p) for p in split_text(links, LIMIT, markdown_v2)
    )


def test_words_with_underscores_stay_as_they_are_in_slack() -> None:
    text = "snake_case *not bold " * 400

    assert "".join(split_text(text, LIMIT, mrkdwn)) == text


def test_characters_of_several_code_points_stay_together() -> None:
    family = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
    parts = split_text(family * 1000, LIMIT)

    assert all(len(part) % len(family) == 0 for part in parts)
    assert "".join(parts) == family * 1000


@pytest.mark.parametrize("mark", ["[", "<", "*", "`", "&", "\\", "[](", "<b>"])
@pytest.mark.parametrize("mode", [*OF_TELEGRAM])
def test_hostile_marks_are_cut_as_anything_is(mark: str, mode: str) -> None:
    parts = split_text(mark * (40_000 // len(mark)), LIMIT, OF_TELEGRAM[mode])

    assert all(utf16_length(part) <= LIMIT for part in parts)
    assert len(parts) >= 9
