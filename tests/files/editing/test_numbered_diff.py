from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from goat_mcp.core.errors import ToolError
from goat_mcp.files.documents.line_ends import split_lines
from goat_mcp.files.editing.edit_list import TextEdit, apply_edits
from goat_mcp.files.editing.numbered_diff import MAX_DIFF_LINES, NumberedDiff, changed_runs, count_changed_lines, diff
from goat_mcp.files.editing.replacing import ChangedSpan
from tests.files.editing.texts import texts_with_a_part


def shown(text: str, *edits: TextEdit) -> NumberedDiff:
    result = apply_edits(text.encode(), edits, path="/f", allow_fuzz=True)
    return diff(text.encode(), result.content, result.changes)


def test_a_change_has_four_lines_of_context_and_real_numbers() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 21))

    result = shown(text, TextEdit("line 10\n", "ten\nand more\n"))

    assert result.text() == (
        " 6   line 6\n 7   line 7\n 8   line 8\n 9   line 9\n"
        "10 - line 10\n10 + ten\n11 + and more\n"
        "12   line 11\n13   line 12\n14   line 13\n15   line 14"
    )
    assert (result.additions, result.deletions, result.start_lines, result.left_out) == (2, 1, [10], 0)
    assert result.patch() == [
        {
            "old_start": 6,
            "old_lines": 9,
            "new_start": 6,
            "new_lines": 10,
            "lines": [
                *(f" line {number}" for number in range(6, 10)),
                "-line 10",
                "+ten",
                "+and more",
                *(f" line {number}" for number in range(11, 15)),
            ],
        }
    ]


def test_distant_changes_are_apart_and_near_ones_together() -> None:
    text = "".join(f"line {number}\n" for number in range(1, 31))

    result = shown(text, TextEdit("line 2\n", ""), TextEdit("line 9\n", "nine\n"), TextEdit("line 25\n", "x\ny\n"))

    assert [(hunk.old_start, hunk.new_start, len(hunk.lines)) for hunk in result.hunks] == [(1, 1, 14), (21, 20, 11)]
    assert result.start_lines == [2, 8, 24]
    assert "\n   ...\n" in result.text()


def test_lines_the_old_and_new_text_share_are_context() -> None:
    text = "".join(f"{number}\n" for number in range(40))

    result = shown(text, TextEdit(text, text.replace("20\n", "twenty\n")))

    assert (result.additions, result.deletions) == (1, 1)
    assert len(result.text().splitlines()) == 10


def test_a_long_diff_is_cut_and_still_counted() -> None:
    text = "x\ny\n" * 5_000

    result = shown(text, TextEdit("x", "z", replace_all=True))

    assert (result.additions, result.deletions) == (5_000, 5_000)
    lines = result.text().splitlines()
    changed = sum(line.lstrip("0123456789 ").startswith(("-", "+")) for line in lines)
    assert len(lines) == MAX_DIFF_LINES + 1
    assert lines[-1] == f"({10_000 - changed} more changed lines are not shown)"


def test_more_replacements_than_are_listed_are_counted_by_line() -> None:
    text = "ab\nc\n" * 20_000

    result = shown(text, TextEdit("b", "z", replace_all=True))

    assert (result.additions, result.deletions) == (20_000, 20_000)


def test_of_a_very_long_line_the_changed_part_is_shown() -> None:
    text = "a" * 50_000 + "needle" + "b" * 50_000 + "\n"

    result = shown(text, TextEdit("needle", "pin"))

    old, new = (line.text for line in result.hunks[0].lines)
    assert "aneedleb" in old and "apinb" in new
    assert old.endswith("b... [line cut: 500 of 100006 bytes shown]")
    assert len(old) < 600


def test_a_line_end_that_comes_or_goes_is_named() -> None:
    assert shown("a\nb\n", TextEdit("b\n", "b")).text() == "1   a\n2 - b\n2 + b (no line end)"
    assert shown("a\nb", TextEdit("b", "c")).text() == "1   a\n2 - b\n2 + c"


def test_characters_that_hide_or_act_are_escaped() -> None:
    assert shown("a\n", TextEdit("a", "\x1b[2J\u202e")).text() == "1 - a\n1 + \\x1b[2J\\u202e"


def test_a_new_file_is_all_additions() -> None:
    result = diff(b"", b"a\nb\n", [ChangedSpan(0, 0, 0, 4)])

    assert (result.text(), result.additions, result.deletions, result.start_lines) == ("1 + a\n2 + b", 2, 0, [1])


def test_an_emptied_file_is_all_deletions() -> None:
    result = diff(b"a\nb\n", b"", [ChangedSpan(0, 4, 0, 0)])

    assert (result.text(), result.additions, result.deletions) == ("1 - a\n2 - b", 0, 2)


@given(texts_with_a_part(), st.text("ab\n", max_size=8))
@example(("a\n\ra\n\n", "a"), "")
@example(("\r-\n\nb\r\nb b", "b"), "b\nbaabba")
def test_the_hunks_turn_the_old_text_into_the_new(case: tuple[str, str], new: str) -> None:
    text, old = case
    if old == new:
        return
    try:
        result = apply_edits(text.encode(), [TextEdit(old, new, replace_all=True)], path="/f", allow_fuzz=True)
    except ToolError:
        return

    patch = diff(text.encode(), result.content, result.changes)

    old_lines, new_lines = (split_lines(side) for side in (text, result.content.decode()))
    rebuilt: list[str] = []
    taken = 0
    for hunk in patch.hunks:
        rebuilt += old_lines[taken : hunk.old_start - 1]
        taken = hunk.old_start - 1
        assert len(rebuilt) == hunk.new_start - 1
        for line in hunk.lines:
            if line.sign == "+":
                assert line.number == len(rebuilt) + 1
                rebuilt.append(new_lines[len(rebuilt)])
            else:
                assert line.number == (taken + 1 if line.sign == "-" else len(rebuilt) + 1)
                if line.sign == " ":
                    rebuilt.append(old_lines[taken])
                taken += 1
    assert rebuilt + old_lines[taken:] == new_lines
    assert len(new_lines) - len(old_lines) == patch.additions - patch.deletions


@given(st.lists(st.sampled_from([b"a", b"b", b"c"])), st.lists(st.sampled_from([b"a", b"b", b"c"])))
def test_lines_outside_the_changed_runs_are_the_same(old: list[bytes], new: list[bytes]) -> None:
    rebuilt: list[bytes] = []
    taken = additions = deletions = 0
    for run in changed_runs(old, new):
        rebuilt += old[taken : run.old_start] + new[run.new_start : run.new_end]
        taken = run.old_end
        additions += run.new_end - run.new_start
        deletions += run.old_end - run.old_start

    assert rebuilt + old[taken:] == new
    assert count_changed_lines(old, new) == (additions, deletions)


def test_thousands_of_changed_lines_are_compared_in_order() -> None:
    old = [b"%d" % number for number in range(10_000)]
    new = [b"x" + line if int(line) % 100 == 0 else line for line in old]

    runs = list(changed_runs(old, new))

    assert len(runs) == 100
    assert count_changed_lines(old, new) == (100, 100)
    assert count_changed_lines(old, [*new, b"last"]) == (101, 100)
