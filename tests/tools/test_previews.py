"""What a call would change, shown before it runs: nothing is written, read marks stay, and hidden files stay hidden."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from goat_mcp.calls.permissions.rule_set import FileRules, RuleSet
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ToolError
from goat_mcp.core.tool import PreviewsChanges
from goat_mcp.files.changes.preview import MAX_BYTES, MAX_CHARS
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import Sessions
from goat_mcp.tools.edit import Edit
from goat_mcp.tools.notebook_edit import NotebookEdit
from goat_mcp.tools.write import Write
from tests.tools.changing import UNCHECKED, Desk, state_of

pytestmark = pytest.mark.anyio
CTX = ToolContext(call_id="t")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def tool_of(desk: Desk, kind: type[Edit | Write | NotebookEdit], workspace: Workspace | None = None) -> Any:
    return kind(workspace or desk.workspace, desk.sessions, desk.options)


async def preview(tool: Any, **arguments: Any) -> str:
    input = tool.validate(arguments)
    assert isinstance(tool, PreviewsChanges)
    return await tool.preview(input, CTX)


async def test_an_edit_is_shown_as_the_diff_that_it_will_make(desk: Desk) -> None:
    path = desk.file("a.py", "".join(f"{number}\n" for number in range(1, 10)))
    before = state_of(desk.folder)

    shown = await preview(tool_of(desk, Edit), file_path=str(path), old_string="5", new_string="five")

    assert shown.splitlines() == [
        *(f"--- {path}", f"+++ {path}", "@@ -2,7 +2,7 @@"),
        *(" 2", " 3", " 4", "-5", "+five", " 6", " 7", " 8"),
    ]
    assert state_of(desk.folder) == before


async def test_a_new_file_is_shown_and_not_made_nor_are_its_folders(desk: Desk) -> None:
    path = desk.folder / "deep" / "er" / "a.py"

    shown = await preview(tool_of(desk, Write), file_path=str(path), content="x\ny\n")

    assert shown.splitlines()[2:] == ["@@ -0,0 +1,2 @@", "+x", "+y"]
    assert list(desk.folder.iterdir()) == []


async def test_what_replaces_a_file_is_shown(desk: Desk) -> None:
    path = desk.file("a.py", "x\ny\n")

    shown = await preview(tool_of(desk, Write), file_path=str(path), content="x\nz\n")

    assert shown.splitlines()[2:] == ["@@ -1,2 +1,2 @@", " x", "-y", "+z"]
    assert path.read_text() == "x\ny\n"


async def test_a_cell_is_shown_as_its_notebook_will_change(desk: Desk) -> None:
    cell: dict[str, Any] = {
        "cell_type": "code",
        "id": "aa",
        "metadata": {},
        "execution_count": None,
        "outputs": [],
        "source": ["x=1"],
    }
    notebook: dict[str, Any] = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    path = desk.file("a.ipynb", json.dumps(notebook, indent=1))
    before = state_of(desk.folder)

    shown = await preview(tool_of(desk, NotebookEdit), notebook_path=str(path), cell_id="aa", new_source="x=2")

    assert '-    "x=1"' in shown and '+    "x=2"' in shown
    assert state_of(desk.folder) == before


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
async def test_a_preview_marks_nothing_as_read_and_says_what_the_call_will_fail_with(tmp_path: Path, mode: str) -> None:
    desk = Desk(tmp_path, FileOptions.model_validate({"read_before_write": mode}))
    path = desk.file("a.py", "x\n")

    shown = await preview(tool_of(desk, Write), file_path=str(path), content="y\n")

    assert shown == f"no diff: {path} has not been read in this session; nothing was written"
    assert desk.sessions.of("local").reads.paths() == ()
    assert (await desk.refused_write(path, "y\n")).message == shown.removeprefix("no diff: ")


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"file_path": "@a.py", "old_string": "q", "new_string": "r"}, "no diff: "),
        ({"file_path": "@missing", "old_string": "q", "new_string": "r"}, "no diff: "),
        ({"file_path": "/etc/passwd", "old_string": "root", "new_string": "r"}, "no diff: "),
        ({"file_path": "@", "old_string": "root", "new_string": "r"}, "no diff: "),
        ({"file_path": "@big", "old_string": "x", "new_string": "r"}, f"no diff: the file has {MAX_BYTES + 1:,} bytes"),
        ({"file_path": "@bin", "old_string": "x", "new_string": "r"}, "no diff: "),
    ],
)
async def test_a_call_that_will_fail_has_no_diff_but_a_reason(desk: Desk, arguments: Any, why: str) -> None:
    desk.file("a.py", "x\n")
    desk.file("big", "x" * (MAX_BYTES + 1))
    desk.file("bin", b"\0\1x" * 100)

    shown = await preview(tool_of(desk, Edit), **arguments)

    assert shown.startswith(why) and "\n" not in shown


async def test_what_changes_nothing_says_so(desk: Desk) -> None:
    path = desk.file("a.py", "x\n")

    assert await preview(tool_of(desk, Write), file_path=str(path), content="x\n") == "no diff: nothing would change"


@pytest.mark.parametrize("rule", ["Read(secret/**)", "Edit(secret/**)", "Read(//{real})"])
@pytest.mark.parametrize("name", ["secret/a", "link"])
async def test_a_file_that_deny_rules_hide_is_not_shown(desk: Desk, rule: str, name: str) -> None:
    path = desk.file("secret/a", "top secret\n")
    (desk.folder / "link").symlink_to(path)
    rules = RuleSet.parse(deny=[rule.replace("/{real}", str(path))])
    file_rules = FileRules(rules, lambda: [desk.folder])
    workspace = Workspace(desk.folder, why_denied=file_rules.why_denied)

    for tool, arguments in (
        (tool_of(desk, Edit, workspace), {"old_string": "top", "new_string": "low"}),
        (tool_of(desk, Write, workspace), {"content": "low"}),
    ):
        shown = await preview(tool, file_path=str(desk.folder / name), **arguments)
        assert shown.startswith("no diff: ") and "secret\n" not in shown and "top" not in shown


async def test_nothing_in_a_diff_hides(desk: Desk) -> None:
    path = desk.file("a.py", "x\n")

    shown = await preview(tool_of(desk, Edit), file_path=str(path), old_string="x", new_string="a\u202eb\x1b[2K")

    assert "+a\\u202eb\\x1b[2K" in shown


async def test_a_huge_diff_is_bounded(desk: Desk) -> None:
    content = "".join(f"{number}\n" for number in range(100_000))

    shown = await preview(tool_of(desk, Write), file_path=str(desk.folder / "a"), content=content)

    assert len(shown) < MAX_CHARS + 100


async def test_the_former_lines_of_an_unreadable_file_are_not_shown(desk: Desk) -> None:
    path = desk.file("a", "secret\n")
    path.chmod(0)

    shown = await preview(tool_of(desk, Write), file_path=str(path), content="x")

    if os.geteuid() != 0:  # root reads all files
        assert shown.startswith("no diff: ")
    assert path.stat().st_mode & 0o777 == 0


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text("ab \t\r\n", max_size=30), st.text("ab\r\n", max_size=6), st.text("ab\r\n", max_size=6))
async def test_a_preview_is_empty_handed_if_and_only_if_the_call_changes_nothing(
    tmp_path: Path, content: str, old: str, new: str
) -> None:
    desk = Desk(tmp_path, UNCHECKED, sessions=Sessions())
    path = desk.file("f", content)
    tool = tool_of(desk, Edit)
    try:
        input = tool.validate({"file_path": str(path), "old_string": old, "new_string": new})
    except ToolError:
        return
    shown = await tool.preview(input, CTX)
    assert path.read_bytes() == content.encode()

    try:
        await tool.execute(input, CTX)
    except ToolError as refused:
        assert shown == " ".join(f"no diff: {refused.message}".split())
    else:
        assert (path.read_bytes() == content.encode()) == (shown == "no diff: nothing would change")
