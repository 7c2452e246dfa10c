from __future__ import annotations

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.files.documents.line_ends import FileText, split_lines
from goat_mcp.files.editing.matching import MAX_EVERY_HITS, MAX_LISTED_HITS, Matches, find, fold
from tests.files.editing.texts import normalised, texts, texts_with_a_part


def found_in(text: str, wanted: str, *, every: bool = False, allow_fuzz: bool = True) -> Matches | None:
    return find(FileText(text.encode()), wanted, allow_fuzz=allow_fuzz, every=every)


def matched(text: str, found: Matches | None) -> list[str]:
    assert found is not None
    return [text.encode()[hit.start : hit.end].decode() for hit in found.hits]


def test_a_line_feed_matches_whatever_ends_the_line() -> None:
    text = "a\r\nb|a\nb|a\rb"

    assert matched(text, found_in(text, "a\nb")) == ["a\r\nb", "a\nb", "a\rb"]
    assert matched(text, found_in(text, "a\r\nb")) == ["a\r\nb", "a\nb", "a\rb"]


def test_crlf_is_one_line_end_and_never_half_of_one() -> None:
    assert found_in("a\r\nb\nc", "\n\n") is None
    assert matched("a\r\nb\rc\n", found_in("a\r\nb\rc\n", "\nb")) == ["\r\nb"]
    assert matched("a\r\nb\n", found_in("a\r\nb\n", "a\r")) == ["a\r\n"]


def test_two_overlapping_places_are_two_matches() -> None:
    found = found_in("aaa", "aa")

    assert found is not None and found.count == 2


def test_trailing_blanks_are_the_second_tier_and_indentation_the_third() -> None:
    text = "if x:  \n    a()\t\n  “b” — c\n"

    tiers = [
        found and found.tier
        for found in (
            found_in(text, "if x:\n    a()"),
            found_in(text, "if x:\n  a()"),
            found_in(text, '"b" - c'),
            found_in(text, "if x"),
            found_in(text, "if y"),
        )
    ]

    assert tiers == [2, 3, 3, 1, None]


def test_fuzzy_tiers_match_whole_lines_only() -> None:
    assert found_in("call(a,  b)  # why\n", "call(a,  b)\n") is None
    assert found_in("x = 1;\n  y\n", "= 1;\ny") is None


def test_first_and_last_line_alone_never_decide() -> None:
    assert found_in("  def f():\n    a\n    b\n    return 1\n", "def f():\nx\ny\nreturn 1") is None


def test_blanks_alone_match_exactly_or_not_at_all() -> None:
    assert found_in("a\n  \nb\n", "    \n") is None


def test_without_fuzz_only_the_first_tier_counts() -> None:
    assert found_in("\ta\n", "  a", allow_fuzz=False) is None


def test_the_last_line_needs_no_line_end_for_a_fuzzy_match() -> None:
    text = "a\n  b"

    assert matched(text, found_in(text, "b \n")) == ["  b"]


def test_many_matches_are_counted_and_the_first_listed() -> None:
    found = found_in("x\n" * 1000, "x")
    every = found_in("x\n" * (MAX_EVERY_HITS + 5), "x", every=True)

    assert found is not None and (found.count, len(found.hits)) == (1000, MAX_LISTED_HITS)
    assert every is not None and (every.count, len(every.hits)) == (MAX_EVERY_HITS + 5, MAX_EVERY_HITS)
    content = b"x\n" * (MAX_EVERY_HITS + 5)
    assert [hit.start for hit in every.every_hit(content)] == list(range(0, len(content), 2))


@given(texts_with_a_part())
def test_whatever_a_model_copies_is_found_exactly(case: tuple[str, str]) -> None:
    text, wanted = case

    found = found_in(text, wanted)

    assert found is not None and found.tier == 1
    assert all(normalised(part) == wanted for part in matched(text, found))
    assert found.count == _overlapping(normalised(text), wanted)


@given(texts_with_a_part())
def test_every_exact_match_is_what_replacing_would_take(case: tuple[str, str]) -> None:
    text, wanted = case

    found = found_in(text, wanted, every=True)

    assert found is not None and found.count == normalised(text).count(wanted)


@given(texts(), texts("ab{\"' \u00a0\t-"))
def test_the_search_by_anchor_finds_the_windows_that_comparing_all_lines_finds(text: str, wanted: str) -> None:
    if not wanted.strip() or normalised(wanted) in normalised(text):
        return

    found = found_in(text, wanted)

    by_tier = {2: _windows(text, wanted, lambda line: line.rstrip(" \t")), 3: _windows(text, wanted, fold)}
    expected = next(((tier, windows) for tier, windows in by_tier.items() if windows), None)
    assert (found and (found.tier, matched(text, found))) == expected


@given(texts(), st.data())
def test_lines_with_other_blanks_around_them_are_found(text: str, data: st.DataObject) -> None:
    lines = [line.rstrip("\r\n") for line in split_lines(text)]
    if not any(line.strip() for line in lines):
        return
    blanks = st.text(" \t", max_size=3)
    wanted = "\n".join(data.draw(blanks) + line.strip(" \t") + data.draw(blanks) for line in lines)

    found = found_in(text, wanted, every=True)

    assert found is not None


def _overlapping(text: str, wanted: str) -> int:
    return sum(text.startswith(wanted, at) for at in range(len(text)))


def _windows(text: str, wanted: str, view: Callable[[str], str]) -> list[str]:
    lines, keys = split_lines(text), [view(line.rstrip("\r\n")) for line in split_lines(wanted)]
    ends_line = wanted.endswith(("\n", "\r"))
    windows = [lines[at : at + len(keys)] for at in range(len(lines) - len(keys) + 1)]
    hits = [window for window in windows if [view(line.rstrip("\r\n")) for line in window] == keys]
    joined = ["".join(window) for window in hits]
    return joined if ends_line else [_without_last_end(window) for window in joined]


def _without_last_end(text: str) -> str:
    return text[:-2] if text.endswith("\r\n") else text[:-1] if text.endswith(("\n", "\r")) else text
