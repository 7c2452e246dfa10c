"""How lines are numbered, cut and paged."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.excerpt import Excerpt, NumberedPage, excerpt_of_text, number_lines
from goat_mcp.files.documents.text_encoding import UTF_8, DecodedText


def excerpt(text: str, offset: int | None = None, limit: int = 2000, max_chars: int = 48_000) -> Excerpt:
    return excerpt_of_text(DecodedText(text, UTF_8), offset, limit, max_chars)


def test_numbers_are_unpadded_and_tabs_follow() -> None:
    page = number_lines(excerpt("a\n" * 11, offset=9), 1000)

    assert page == NumberedPage("9\ta\n10\ta\n11\ta", lines_shown=3, has_escapes=False)


def test_a_page_ends_at_a_line_end_within_the_cap() -> None:
    page = number_lines(excerpt("abcdef\nabcdef\nabcdef\n"), 18)

    assert page.text == "1\tabcdef\n2\tabcdef"


def test_one_line_is_shown_even_where_it_does_not_fit() -> None:
    assert number_lines(excerpt("abcdef\nabcdef\n"), 4).text == "1\tabcdef"


def test_bytes_bound_a_page_too() -> None:
    page = number_lines(excerpt("éé\néé\néé"), max_chars=1000, max_bytes=14)

    assert page.text == "1\téé\n2\téé"


def test_cut_lines_say_how_long_they_are_and_more_of_them_fit_a_page() -> None:
    page = number_lines(excerpt("x" * 30_000 + "\n" + "y" * 30_000 + "\nz", max_chars=10_000), 10_000)

    assert page.lines_shown == 3
    assert page.text.splitlines()[1] == "2\t" + "y" * 2000 + " [... line cut: 2000 of 30000 characters shown]"


def test_escapes_count_towards_the_cap() -> None:
    page = number_lines(excerpt("\x1b\x1b\x1b\n" * 3), 30)

    assert page == NumberedPage("1\t\\x1b\\x1b\\x1b\n2\t\\x1b\\x1b\\x1b", lines_shown=2, has_escapes=True)


@given(st.text(st.sampled_from("ab\n\r\x1b")), st.integers(-9, 9) | st.none(), st.integers(1, 9), st.integers(3, 60))
def test_pages_hold_whole_lines_with_their_own_numbers(text: str, offset: int | None, limit: int, cap: int) -> None:
    wanted = excerpt(text, offset, limit, cap)

    page = number_lines(wanted, cap)

    shown = page.text.split("\n") if page.lines_shown else []
    assert len(page.text) <= cap or page.lines_shown == 1
    assert [line.split("\t")[0] for line in shown] == [
        str(number) for number in range(wanted.start_line, wanted.start_line + page.lines_shown)
    ]
    assert [line.split("\t")[1].replace("\\x1b", "\x1b") for line in shown] == list(wanted.lines[: len(shown)])
