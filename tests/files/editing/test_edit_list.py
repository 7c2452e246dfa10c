from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.documents.line_ends import split_lines
from goat_mcp.files.editing.edit_list import Edited, TextEdit, apply_edits
from goat_mcp.files.editing.replacing import ChangedSpan, Replacement, replace_parts
from tests.files.editing.texts import ALPHABET, normalised, texts, texts_with_a_part


def edited(text: str, *edits: tuple[str, str], replace_all: bool = False, allow_fuzz: bool = True) -> str:
    return outcome(text, *edits, replace_all=replace_all, allow_fuzz=allow_fuzz).content.decode()


def outcome(text: str, *edits: tuple[str, str], replace_all: bool = False, allow_fuzz: bool = True) -> Edited:
    wanted = [TextEdit(old, new, replace_all) for old, new in edits]
    return apply_edits(text.encode(), wanted, path="/f", allow_fuzz=allow_fuzz)


def refused(text: str, *edits: tuple[str, str], allow_fuzz: bool = True) -> ToolError:
    with pytest.raises(ToolError) as refusal:
        outcome(text, *edits, allow_fuzz=allow_fuzz)
    return refusal.value


# line ends


def test_inserted_lines_end_like_the_lines_they_follow() -> None:
    assert edited("a\r\nb\r\nc\r\n", ("a\nb", "a\nX\nb")) == "a\r\nX\r\nb\r\nc\r\n"
    assert edited("a\rb\rc", ("b", "b\nX")) == "a\rb\rX\rc"
    assert edited("a\r\nb\nc\rd\n", ("c", "Q")) == "a\r\nb\nQ\rd\n"
    assert edited("a\r\nb\nc\rd\n", ("a\nb\nc\nd", "a\nX\nb\nc\nY\nd")) == "a\r\nX\r\nb\nc\rY\rd\n"
    assert edited("a\r\nb\nlast", ("last", "last\nmore")) == "a\r\nb\nlast\nmore"


def test_crlf_in_the_new_text_does_not_double_the_returns() -> None:
    assert edited("a\r\nb\r\n", ("b\n", "c\r\nd\r\n")) == "a\r\nc\r\nd\r\n"
    assert edited("a\nb\n", ("b", "c\r\nd")) == "a\nc\nd\n"


def test_a_file_of_one_line_takes_line_ends_as_they_come() -> None:
    assert edited("a", ("a", "b\r\nc")) == "b\r\nc"


def test_a_single_return_is_data_in_a_file_without_returns() -> None:
    assert edited("a\nb\n", ("b", "10%\r20%")) == "a\n10%\r20%\n"


@pytest.mark.parametrize("after", ["", "\nb", "b"])
def test_a_single_return_and_the_line_end_of_an_empty_line_after_it_stay_two(after: str) -> None:
    result = edited(f"\ra\n{after}", ("\na\n", "\n\n"))

    assert split_lines(result) == ["\r", "\r\n", *split_lines(after)]


def test_the_state_of_the_last_line_end_stays() -> None:
    assert edited("old", ("old", "new")) == "new"
    assert edited("a\n  old", ("old \n", "new\n")) == "a\n  new"
    assert edited("a\nold\n", ("old\n", "new")) == "a\nnew"


# indentation


def test_spaces_typed_for_a_file_of_tabs_become_tabs() -> None:
    text = "func f() {\n\tif x {\n\t\told()\n\t}\n}\n"
    old = "    if x {\n        old()"

    assert edited(text, (old, "    if x {\n        neu()")) == text.replace("old", "neu")
    assert (
        edited(text, (old, "    if x {\n        old()\n        for {\n            more()\n        }"))
        == "func f() {\n\tif x {\n\t\told()\n\t\tfor {\n\t\t\tmore()\n\t\t}\n\t}\n}\n"
    )


def test_tabs_typed_for_a_file_of_spaces_become_spaces() -> None:
    text = "def f():\n  if x:\n    old()\n"

    assert (
        edited(text, ("\tif x:\n\t\told()", "\tif x:\n\t\told()\n\t\tif y:\n\t\t\tmore()"))
        == "def f():\n  if x:\n    old()\n    if y:\n      more()\n"
    )


def test_a_block_typed_without_its_indentation_gets_it_back_once() -> None:
    text = "    if (a) {\n        foo();\n    }\n"

    assert (
        edited(text, ("if (a) {\n    foo();\n}", "if (a) {\n    bar();\n}")) == "    if (a) {\n        bar();\n    }\n"
    )
    assert edited("  hello\n    world\n", ("hello\nworld", "goodbye\nmoon")) == "  goodbye\n    moon\n"


def test_lines_put_inside_a_new_block_move_with_it() -> None:
    text = "class A:\n\tdef f(self):\n\t\ta()\n\t\tb()\n"

    assert (
        edited(text, ("    a()\n    b()", "    if x:\n        a()\n        b()"))
        == "class A:\n\tdef f(self):\n\t\tif x:\n\t\t\ta()\n\t\t\tb()\n"
    )


def test_the_indentation_of_the_file_around_tells_tabs_from_spaces() -> None:
    text = "def f():\n\tpass\n\ndef g( ):\t\n\tpass\n"

    assert (
        edited(text, ("  def g( ):", "  def g( ):\n      more()"))
        == "def f():\n\tpass\n\ndef g( ):\t\n\tmore()\n\tpass\n"
    )


def test_a_removed_level_is_removed_in_the_files_own_blanks() -> None:
    text = "\t\tif x:\n\t\t\ta()\n"

    assert edited(text, ("if x:\n    a()", "a()")) == "\t\ta()\n"


def test_a_line_added_before_the_first_goes_by_the_next_one() -> None:
    assert edited("\t\ta()  \n", ("    a()\n", "    # why\n    a()\n")) == "\t\t# why\n\t\ta()  \n"


def test_a_file_of_two_blanks_keeps_two_blanks_a_level() -> None:
    text = "a:\n  b:\n    c: 1\n"

    assert (
        edited(text, ("a:\n    b:\n        c: 1", "a:\n    b:\n        c: 1\n        d:\n            e: 2"))
        == "a:\n  b:\n    c: 1\n    d:\n      e: 2\n"
    )


def test_unchanged_lines_keep_their_bytes() -> None:
    text = "a “q” \n\tb\u00a0c\t\n\td\n"

    assert edited(text, ('a "q"\nb c\nd', 'a "q"\nb c\nD')) == "a “q” \n\tb\u00a0c\t\n\tD\n"


def test_quotes_of_the_file_stay_in_a_line_that_is_replaced() -> None:
    assert edited("  say(“hello”, 1)\n", ('say("hello", 1)', 'say("hello", 2)')) == "  say(“hello”, 2)\n"
    assert edited("“hello”\n", ("“hello”", "“bye”")) == "“bye”\n"


def test_new_text_is_literal() -> None:
    assert edited("a b\n", ("b", r"\1 $& \g<0> %s {0}")) == "a \\1 $& \\g<0> %s {0}\n"


def test_blanks_at_the_end_of_the_old_text_may_stand_for_an_empty_line() -> None:
    assert edited("\ta\n\nb\n", ("  a\n  ", "  c\n  ")) == "\tc\n\nb\n"


def test_the_right_one_of_two_lines_with_the_same_text_is_kept() -> None:
    assert edited("\ta\n\t a\n", ("a  \n a", "b  \n a")) == "\tb  \n\t a\n"


# which matches count


def test_replace_all_takes_the_first_tier_with_a_match_only() -> None:
    assert edited("x = 1\nx = 1 \n\tx = 1\n", ("x = 1", "y"), replace_all=True) == "y\ny \n\ty\n"
    assert edited("x \n\tx\nx\t\n", ("x\n", "y\n"), replace_all=True) == "x \n\ty\nx\t\n"


def test_replace_all_of_a_fuzzy_tier_fits_each_place() -> None:
    text = "if a {\n\tf()\n}\nif b {\n\t\tf()\n}\n"

    assert edited(text, ("    f()\n", "    g()\n    h()\n"), replace_all=True) == (
        "if a {\n\tg()\n\th()\n}\nif b {\n\t\tg()\n\t\th()\n}\n"
    )


def test_a_second_match_is_refused_with_count_and_lines() -> None:
    refusal = refused("x\ny\nx\n", ("x", "z"))

    assert refusal.code is ErrorCode.AMBIGUOUS
    assert refusal.message == "old_string has 2 matches in /f (tier 1), on lines 1, 3; nothing was written"
    assert "replace_all" in refusal.suggestion
    assert refusal.facts == {"matches": 2, "lines": [1, 3], "tier": 1}


def test_uniqueness_is_asked_of_each_tier() -> None:
    assert edited("x()\n\tx()\n", ("x()\n\tx()", "y()")) == "y()\n"
    assert refused("x( \ny\n\tx(  \n y\n", ("  x(\n  y", "z")).facts == {"matches": 2, "lines": [1, 3], "tier": 3}


# lists


def test_each_edit_works_on_what_the_last_one_left() -> None:
    assert edited("one two\n", ("one", "three"), ("three two", "done")) == "done\n"


def test_a_list_names_the_edit_that_failed() -> None:
    refusal = refused("one two\n", ("one", "1"), ("one", "2"))

    assert refusal.code is ErrorCode.NO_MATCH
    assert refusal.message.startswith("edits[1] (of 2, counted from 0): old_string was not found in /f")
    assert refusal.facts is not None and refusal.facts["edit_index"] == 1


def test_a_list_may_begin_by_filling_the_file() -> None:
    assert edited("", ("", "a\n"), ("a", "b")) == "b\n"


def test_empty_old_text_is_no_match_for_a_file_with_text() -> None:
    assert refused("a", ("", "b")).code is ErrorCode.INPUT


@pytest.mark.parametrize(
    ("text", "edits"),
    [
        ("a\n", [("a", "a")]),
        ("a\nb\n", [("a", "c"), ("c", "a")]),
        ("a\nb\n", [("a\nb", "a\r\nb")]),
        ("\ta\n", [("    a\n", "\ta\n")]),
    ],
)
def test_an_edit_that_changes_nothing_is_refused(text: str, edits: list[tuple[str, str]]) -> None:
    assert refused(text, *edits).code is ErrorCode.NO_CHANGE


# properties

new_texts = st.text(ALPHABET + "\n\r", max_size=12)


@given(texts_with_a_part(line_ends=("\n",)), new_texts.filter(lambda new: "\r" not in new))
def test_the_first_tier_replaces_as_text_replacing_does(case: tuple[str, str], new: str) -> None:
    text, old = case
    if _places(text, old) != 1 or old == new:
        return

    assert edited(text, (old, new)) == text.replace(old, new)


@given(texts_with_a_part(line_ends=("\n",)), new_texts.filter(lambda new: "\r" not in new))
def test_replace_all_replaces_as_text_replacing_does(case: tuple[str, str], new: str) -> None:
    text, old = case
    if old == new:
        return

    assert edited(text, (old, new), replace_all=True) == text.replace(old, new)


@given(texts_with_a_part(), new_texts)
def test_nothing_outside_the_replaced_text_changes_whatever_ends_the_lines(case: tuple[str, str], new: str) -> None:
    text, old = case
    if _places(normalised(text), old) != 1:
        return
    try:
        result = edited(text, (old, new))
    except ToolError as refusal:
        assert refusal.code is ErrorCode.NO_CHANGE
        return

    before, after = normalised(text).split(old)
    head, tail = _raw_length(text, len(before)), len(text) - _raw_length(text, len(before) + len(old))
    assert normalised(text[:head]) == before and normalised(text[len(text) - tail :]) == after
    assert result.startswith(text[:head]) and result.endswith(text[len(text) - tail :])
    middle = result[head : len(result) - tail]
    assert normalised(middle) == normalised(new) or "\r" in new


@given(
    texts_with_a_part(), st.lists(st.tuples(st.text(ALPHABET + "\n", min_size=1, max_size=3), new_texts), max_size=4)
)
def test_the_changes_tell_the_whole_difference(case: tuple[str, str], edits: list[tuple[str, str]]) -> None:
    text, part = case
    content = text.encode()
    wanted = [TextEdit(old, new, replace_all=True) for old, new in [(part, "ab\n"), *edits] if old != new]
    result = Edited(content)
    for edit in wanted:
        try:
            result = apply_edits(content, wanted[: wanted.index(edit) + 1], path="/f", allow_fuzz=True)
        except ToolError:
            break

    _assert_changes_rebuild(content, result)


def _assert_changes_rebuild(content: bytes, result: Edited) -> None:
    parts = [
        Replacement(change.old_start, change.old_end, result.content[change.new_start : change.new_end])
        for change in result.changes
    ]
    assert replace_parts(content, parts) == (result.content, list(result.changes))
    ends = [ChangedSpan(0, 0, 0, 0), *result.changes]
    assert all(one.old_end <= two.old_start for one, two in pairwise(ends))


def _places(text: str, wanted: str) -> int:
    return sum(text.startswith(wanted, at) for at in range(len(text)))


def _raw_length(text: str, plain_length: int) -> int:
    """How much of `text` its first `plain_length` normalised characters are."""
    at = 0
    for _ in range(plain_length):
        at += 2 if text.startswith("\r\n", at) else 1
    return at


@given(texts(), st.data())
def test_a_fuzzy_edit_of_one_line_leaves_every_other_byte(text: str, data: st.DataObject) -> None:
    lines = split_lines(text)
    telling = [index for index, line in enumerate(lines) if line.strip()]
    if not telling:
        return
    blanks = st.text(" \t", max_size=3)
    typed = [data.draw(blanks) + line.rstrip("\r\n").strip(" \t") + data.draw(blanks) for line in lines]
    changed = data.draw(st.sampled_from(telling))
    new = [*typed]
    new[changed] = new[changed].replace(new[changed].strip(), "changed")

    result = edited(text, ("\n".join(typed), "\n".join(new)))

    after = split_lines(result)
    assert len(after) == len(lines) and after[changed].strip() == "changed"
    assert after[changed][len(after[changed].rstrip("\r\n")) :] == lines[changed][len(lines[changed].rstrip("\r\n")) :]
    assert [line for index, line in enumerate(after) if index != changed] == [
        line for index, line in enumerate(lines) if index != changed
    ]
