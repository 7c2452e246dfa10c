from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.tool import Access
from goat_mcp.files.editing.current_file import MAX_BYTES
from goat_mcp.files.settings import EditOptions, FileOptions
from goat_mcp.tools.edit import Edit
from tests.tools.changing import Desk, state_of

pytestmark = pytest.mark.anyio


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_an_edit_answers_with_what_it_did_and_a_numbered_diff(desk: Desk) -> None:
    path = desk.file("f.py", "def a():\n    return 1\n")

    result = await desk.edit(path, old_string="return 1", new_string="return 2")

    assert result.text == (f"Edited {path}: 1 replacement (tier 1).\n1   def a():\n2 -     return 1\n2 +     return 2")
    assert result.facts == {
        "replacements": 1,
        "tier": 1,
        "additions": 1,
        "deletions": 1,
        "start_lines": [2],
        "patch": [
            {
                "old_start": 1,
                "old_lines": 2,
                "new_start": 1,
                "new_lines": 2,
                "lines": [" def a():", "-    return 1", "+    return 2"],
            }
        ],
    }
    assert path.read_text() == "def a():\n    return 2\n"


async def test_edit_002_a_second_match_is_refused(desk: Desk) -> None:
    path = desk.file("f.txt", "x\nx\n")

    refusal = await desk.refused_edit(path, old_string="x", new_string="y")

    assert refusal.code is ErrorCode.AMBIGUOUS
    assert "2 matches" in refusal.message and "replace_all" in refusal.suggestion
    assert path.read_bytes() == b"x\nx\n"


async def test_replace_all_says_how_many(desk: Desk) -> None:
    path = desk.file("f.txt", "x\nx\n")

    result = await desk.edit(path, old_string="x", new_string="y", replace_all="true")

    assert result.text.startswith(f"Edited {path}: 2 replacements (tier 1).\n")
    assert path.read_bytes() == b"y\ny\n"


async def test_edit_004_a_missing_file_is_not_created(desk: Desk) -> None:
    refusal = await desk.refused_edit(desk.folder / "missing.txt", old_string="a", new_string="b")

    assert refusal.code is ErrorCode.NOT_FOUND
    assert state_of(desk.folder) == {}


async def test_edit_005_a_directory_is_refused(desk: Desk) -> None:
    (desk.folder / "d").mkdir()

    for old in ("a", ""):
        refusal = await desk.refused_edit(desk.folder / "d", old_string=old, new_string="b")
        assert refusal.code is ErrorCode.DIRECTORY and "directory" in refusal.message


CASES: list[tuple[str, bytes, str, str, bytes]] = [
    ("edit-007", b"a\r\nb\r\nc\r\n", "a\nb", "a\nX\nb", b"a\r\nX\r\nb\r\nc\r\n"),
    ("edit-008", b"a\r\nb\nc\rd\n", "c", "Q", b"a\r\nb\nQ\rd\n"),
    ("edit-010", b"caf\xe9 old\n", "old", "new", b"caf\xe9 new\n"),
    ("edit-014", b"old", "old", "new", b"new"),
    (
        "edit-019",
        b"func f() {\n\tif x {\n\t\told()\n\t}\n}\n",
        "    if x {\n        old()",
        "    if x {\n        neu()",
        b"func f() {\n\tif x {\n\t\tneu()\n\t}\n}\n",
    ),
    ("edit-021", b"  hello\n    world\n", "hello\nworld", "goodbye\nmoon", b"  goodbye\n    moon\n"),
    (
        "edit-022",
        b"    if (a) {\n        foo();\n    }\n",
        "if (a) {\n    foo();\n}",
        "if (a) {\n    bar();\n}",
        b"    if (a) {\n        bar();\n    }\n",
    ),
    ("edit-027", "“hello”\n".encode(), "“hello”", "“bye”", "“bye”\n".encode()),
]


@pytest.mark.parametrize(("case", "before", "old", "new", "after"), CASES, ids=[case[0] for case in CASES])
async def test_edits_of_the_case_file(desk: Desk, case: str, before: bytes, old: str, new: str, after: bytes) -> None:
    path = desk.file("f.txt", before)

    await desk.edit(path, old_string=old, new_string=new)

    assert path.read_bytes() == after, case


async def test_edit_019_without_fuzz_the_refusal_names_the_tabs(desk: Desk) -> None:
    desk.edit_options = EditOptions(allow_fuzz=False)
    path = desk.file("t.go", "func f() {\n\tif x {\n\t\told()\n\t}\n}\n")

    refusal = await desk.refused_edit(path, old_string="    if x {\n        old()", new_string="y")

    assert refusal.code is ErrorCode.NO_MATCH
    assert "the file has tabs where old_string has spaces" in refusal.message
    assert "2 + →if·x·{" in refusal.output


async def test_edit_021_a_fuzzy_match_says_so(desk: Desk) -> None:
    path = desk.file("f.txt", "  hello\n    world\n")

    result = await desk.edit(path, old_string="hello\nworld", new_string="goodbye\nmoon")

    assert result.text.startswith(f"Edited {path}: 1 replacement (tier 3).\n")
    assert result.text.endswith(
        "[old_string matched only with indentation, quotes and dashes ignored; new_string was re-indented to fit]"
    )
    assert result.facts is not None and result.facts["tier"] == 3


async def test_edit_013_a_link_stays_a_link(desk: Desk) -> None:
    target = desk.file("target.txt", "old\n")
    (desk.folder / "link.txt").symlink_to("target.txt")

    await desk.edit(desk.folder / "link.txt", old_string="old", new_string="new")

    assert (desk.folder / "link.txt").is_symlink()
    assert target.read_bytes() == b"new\n"


async def test_edit_023_a_miss_in_unrelated_text_says_that_nothing_is_similar(desk: Desk) -> None:
    path = desk.file("f.ts", "const answer = 42;\nexport { answer };\n")

    refusal = await desk.refused_edit(path, old_string="function somethingElse() {\n  return false;\n}", new_string="x")

    assert refusal.code is ErrorCode.NO_MATCH and "nothing similar is in it" in refusal.message
    assert path.read_text() == "const answer = 42;\nexport { answer };\n"


async def test_edit_023_a_near_miss_shows_the_nearest_lines(desk: Desk) -> None:
    path = desk.file("f.ts", "// first\nfunction something() {\n\treturn false;\n}\n")

    refusal = await desk.refused_edit(path, old_string="function somethingElse() {\n  return false;\n}", new_string="x")

    assert refusal.output.startswith("Nearest region: lines 2-4, ")
    assert "3 + →return·false;" in refusal.output


@pytest.mark.parametrize("check", ["warn", "refuse", "off"])
async def test_edit_028_a_placeholder_for_code_is_not_applied_silently(desk: Desk, check: Any) -> None:
    desk.options = FileOptions(read_before_write="off", placeholder_check=check)
    before = "def a():\n    return 1\n"
    path = desk.file("f.py", before)
    arguments = {"old_string": "def a():\n    return 1", "new_string": "def a():\n    # ... rest of code ..."}

    if check == "refuse":
        refusal = await desk.refused_edit(path, **arguments)
        assert refusal.code is ErrorCode.PLACEHOLDER and path.read_text() == before
        return
    result = await desk.edit(path, **arguments)

    assert ('"# ... rest of code ..." stands for text that was left out' in result.text) == (check == "warn")


async def test_edit_030_a_failed_edit_leaves_bytes_and_time(desk: Desk) -> None:
    path = desk.file("Gemfile", "gem 'rails'\n")
    os.utime(path, ns=(1_000_000_000, 1_000_000_000))
    before = state_of(desk.folder)

    await desk.refused_edit(path, old_string="nope", new_string="x")

    assert state_of(desk.folder) == before


async def test_a_list_of_edits_is_applied_whole_or_not_at_all(desk: Desk) -> None:
    path = desk.file("f.txt", "one\ntwo\nthree\n")
    before = state_of(desk.folder)

    refusal = await desk.refused_edit(
        path, edits=[{"old_string": "one", "new_string": "1"}, {"old_string": "four", "new_string": "4"}]
    )
    assert refusal.message.startswith("edits[1] (of 2, counted from 0): ")
    assert state_of(desk.folder) == before

    result = await desk.edit(
        path,
        edits='[{"oldString": "one", "newString": "1"}, {"old_string": "t", "new_string": "T", "replace_all": "true"}]',
    )
    assert result.text.startswith(f"Edited {path}: 3 replacements by 2 edits (tier 1).\n")
    assert path.read_text() == "1\nTwo\nThree\n"


async def test_empty_old_text_creates_a_file_with_its_folders_or_fills_an_empty_one(desk: Desk) -> None:
    created = await desk.edit(desk.folder / "a/b/new.txt", old_string="", new_string="x\ny\n")
    empty = desk.file("empty.txt", "")
    await desk.edit(empty, old_string="", new_string="z")
    refusal = await desk.refused_edit(empty, old_string="", new_string="again")

    assert created.text == f"Created {desk.folder}/a/b/new.txt (2 lines)."
    assert (desk.folder / "a/b/new.txt").read_bytes() == b"x\ny\n"
    assert empty.read_bytes() == b"z"
    assert refusal.code is ErrorCode.INPUT


async def test_equal_texts_change_nothing(desk: Desk) -> None:
    path = desk.file("f.txt", "a")

    assert (await desk.refused_edit(path, old_string="a", new_string="a")).code is ErrorCode.NO_CHANGE


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "old_string and new_string: required, unless edits is sent"),
        ({"old_string": "a"}, "new_string: required, unless edits is sent"),
        ({"old_string": None, "new_string": "b"}, "old_string: required, unless edits is sent"),
        (
            {"old_string": "a", "new_string": "b", "edits": [{"old_string": "a", "new_string": "b"}]},
            "edits: send it instead of old_string, new_string and replace_all, not beside them",
        ),
        ({"edits": [{"old_string": "a"}]}, "edits.0.new_string: is required"),
        ({"old_str": "a", "new_string": "b"}, "old_str: unknown field; did you mean old_string?"),
    ],
)
async def test_what_is_missing_or_too_much_is_named(desk: Desk, arguments: dict[str, Any], problem: str) -> None:
    refusal = await desk.refused_edit(desk.file("f.txt", "a"), **arguments)

    assert refusal.code is ErrorCode.INPUT
    assert problem in refusal.message


async def test_fields_a_model_fills_in_for_nothing_are_ignored(desk: Desk) -> None:
    path = desk.file("f.txt", "a null\n")

    await desk.edit(path, old_string="a", new_string="b", edits=[])
    await desk.edit(path, old_string="", new_string="", edits=[{"old_string": "b", "new_string": "c"}])
    await desk.edit(path, old_string="null", new_string="undefined")

    assert path.read_text() == "c undefined\n"


async def test_the_alias_and_the_sign_for_the_root_work(desk: Desk) -> None:
    path = desk.file("src/f.txt", "a\n")
    tool = Edit(desk.workspace, desk.sessions, desk.options)

    input = tool.validate({"path": "@src/f.txt", "oldString": "a", "newString": "b"})

    assert tool.access(input) == Access(asked=(str(path),), writes=(str(path),))


async def test_paths_outside_are_refused(desk: Desk, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "f.txt"
    outside.write_text("a")
    (desk.folder / "link").symlink_to(outside)

    codes = [
        (await desk.refused_edit(path, old_string="a", new_string="b")).code
        for path in (outside, desk.folder / "link", "f.txt")
    ]

    assert codes == [ErrorCode.PATH_OUTSIDE, ErrorCode.PATH_OUTSIDE, ErrorCode.PATH_RELATIVE]
    assert outside.read_text() == "a"


async def test_mode_stays_and_no_file_is_left_beside(desk: Desk) -> None:
    path = desk.file("run.sh", "old\n")
    path.chmod(0o750)

    await desk.edit(path, old_string="old", new_string="new")

    assert path.stat().st_mode & 0o777 == 0o750
    assert list(state_of(desk.folder)) == ["run.sh"]


async def test_hard_linked_binary_and_huge_files_are_refused(desk: Desk) -> None:
    linked = desk.file("a", "old")
    os.link(linked, desk.folder / "b")
    binary = desk.file("c", b"\0old")
    huge = desk.file("d", "old")
    os.truncate(huge, MAX_BYTES + 1)

    codes = [
        (await desk.refused_edit(path, old_string="old", new_string="new")).code for path in (linked, binary, huge)
    ]

    assert codes == [ErrorCode.HARD_LINKED, ErrorCode.BINARY, ErrorCode.TOO_LARGE]
    assert linked.read_bytes() == b"old"


async def test_a_byte_order_mark_stays_and_is_no_part_of_the_first_line(desk: Desk) -> None:
    path = desk.file("b.cs", b"\xef\xbb\xbf\tclass A {}\r\n")

    await desk.edit(path, old_string="  class A {}", new_string="  class B {}\n  class C {}")

    assert path.read_bytes() == b"\xef\xbb\xbf\tclass B {}\r\n\tclass C {}\r\n"


async def test_a_notebook_can_be_edited_as_text(desk: Desk) -> None:
    path = desk.file("n.ipynb", '{"cells": [], "nbformat": 4}\n')

    await desk.edit(path, old_string='"nbformat": 4', new_string='"nbformat": 5')

    assert path.read_text() == '{"cells": [], "nbformat": 5}\n'


async def test_fs_36_and_conc_001_fifty_edits_at_a_time_all_land(desk: Desk) -> None:
    marks = [f"<M{number}>" for number in range(50)]
    path = desk.file("f", "".join(f"{mark}\n" for mark in marks))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for mark in marks:

                async def one(mark: str = mark) -> None:
                    await desk.edit(path, old_string=mark, new_string=mark.replace("M", "D"))

                group.start_soon(one)

    assert path.read_text() == "".join(f"<D{number}>\n" for number in range(50))


async def test_fs_35_another_programs_change_in_between_is_never_overwritten(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = desk.file("f", "a\n")
    write_file = desk.workspace.write_file

    def write_late(*arguments: Any, **named: Any) -> Any:
        path.write_text("theirs\n")
        return write_file(*arguments, **named)

    monkeypatch.setattr(desk.workspace, "write_file", write_late)

    refusal = await desk.refused_edit(path, old_string="a", new_string="b")

    assert refusal.code is ErrorCode.STALE
    assert path.read_text() == "theirs\n"


def test_the_tool_says_that_it_destroys_and_is_not_idempotent(desk: Desk) -> None:
    spec = Edit(desk.workspace, desk.sessions).spec

    assert list(spec.hints.wire().values()) == [False, True, False, False]
    assert spec.meta == {"anthropic/alwaysLoad": True}


def test_a_failed_validation_is_a_tool_error(tmp_path: Path) -> None:
    tool = Edit(Desk(tmp_path).workspace, Desk(tmp_path).sessions)

    with pytest.raises(ToolError):
        tool.validate({"old_string": "a", "new_string": "b"})
