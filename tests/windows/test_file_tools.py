"""The file tools over a folder of a real Windows (or of Wine): what only Windows' own calls can show."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.tool import BuiltinTool
from goat_mcp.files.changes.blobs import Blobs
from goat_mcp.files.changes.undo import UndoOutcome
from goat_mcp.files.search.engine import SearchEngine
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import AnyVersion, Workspace
from goat_mcp.state.sessions import Sessions
from goat_mcp.tools.edit import Edit
from goat_mcp.tools.glob import Glob
from goat_mcp.tools.grep import Grep
from goat_mcp.tools.notebook_edit import NotebookEdit
from goat_mcp.tools.read import Read
from goat_mcp.tools.write import Write
from tests.files.changes.keeping import Desk, notebook
from tests.files.workspace.conftest import names_in

pytestmark = [pytest.mark.anyio, pytest.mark.windows_only("it uses Windows' own calls")]


class Tools:
    """All file tools over one folder."""

    def __init__(self, top: Path) -> None:
        self.top = top.resolve()
        self.workspace, self.sessions = Workspace(self.top), Sessions()
        options = FileOptions(read_before_write="strict")
        self.tools: dict[str, BuiltinTool[Any]] = {
            "Read": Read(self.workspace, self.sessions, options),
            "Write": Write(self.workspace, self.sessions, options),
            "Edit": Edit(self.workspace, self.sessions, options),
            "NotebookEdit": NotebookEdit(self.workspace, self.sessions, options),
            "Glob": Glob(self.workspace, SearchEngine()),
            "Grep": Grep(self.workspace, SearchEngine()),
        }

    async def call(self, name: str, **arguments: Any) -> ToolResult:
        tool = self.tools[name]
        return await tool.execute(tool.validate(arguments), ToolContext(call_id="t"))

    async def refusal(self, name: str, **arguments: Any) -> ToolError:
        with pytest.raises(ToolError) as refused:
            await self.call(name, **arguments)
        return refused.value


@pytest.fixture
def tools(tmp_path: Path) -> Tools:
    return Tools(tmp_path)


async def test_a_file_is_written_read_and_edited_with_its_line_ends(tools: Tools) -> None:
    path = tools.top / "src" / "Main.py"
    await tools.call("Write", file_path=str(path), content="one\ntwo\n")
    path.write_bytes(b"one\r\ntwo\r\n")

    shown = await tools.call("Read", file_path=path.as_posix())
    await tools.call("Edit", file_path=str(path), old_string="two", new_string="2")

    assert "1\tone" in shown.text
    assert path.read_bytes() == b"one\r\n2\r\n"
    assert names_in(path.parent) == ["Main.py"]


async def test_another_spelling_is_the_same_file_to_read_before_write(tools: Tools) -> None:
    path = tools.top / "Read Me.txt"
    path.write_bytes(b"a\n")

    await tools.call("Read", file_path=str(path).upper())
    await tools.call("Edit", file_path=str(path).lower(), old_string="a", new_string="b")

    assert path.read_bytes() == b"b\n"
    assert names_in(tools.top) == ["Read Me.txt"]


async def test_an_edit_of_a_file_that_was_not_read_is_refused(tools: Tools) -> None:
    path = tools.top / "f.txt"
    path.write_bytes(b"a\n")

    refused = await tools.refusal("Edit", file_path=str(path), old_string="a", new_string="b")

    assert refused.code is ErrorCode.NOT_READ
    assert path.read_bytes() == b"a\n"


@pytest.mark.parametrize(
    "pattern", ["{top}\\src\\*.py", "{posix}/src/*.py", "src\\**\\*.py", "src/*.py", "{lower}\\src\\*.py"]
)
async def test_glob_takes_both_separators_and_answers_with_backslashes(tools: Tools, pattern: str) -> None:
    found = tools.top / "src" / "a.py"
    found.parent.mkdir()
    found.write_bytes(b"")
    (tools.top / "src" / "b.txt").write_bytes(b"")
    spellings = {"top": tools.top, "posix": tools.top.as_posix(), "lower": str(tools.top).lower()}

    answer = await tools.call("Glob", pattern=pattern.format(**spellings))

    assert answer.text.lower() == str(found).lower()


async def test_grep_finds_lines_in_folders_and_files(tools: Tools) -> None:
    found = tools.top / "src" / "deep" / "a.py"
    found.parent.mkdir(parents=True)
    found.write_bytes(b"import os\r\nneedle = 1\r\n")
    (tools.top / "b.py").write_bytes(b"needle\n")
    (tools.top / "b.txt").write_bytes(b"needle\n")

    below = await tools.call("Grep", pattern="needle", glob="src\\**\\*.py", output_mode="content")
    one = await tools.call("Grep", pattern="needle", path=found.as_posix(), output_mode="content")
    both = await tools.call("Grep", pattern="needle", type="py")

    assert below.text == f"{found}:2:needle = 1"
    assert one.text == f"{found}:2:needle = 1"
    assert set(both.text.splitlines()) == {str(found), str(tools.top / "b.py")}


async def test_ignored_files_are_left_out(tools: Tools) -> None:
    (tools.top / "out").mkdir()
    (tools.top / "out" / "x.py").write_bytes(b"needle\n")
    (tools.top / ".gitignore").write_bytes(b"out/\n")

    answer = await tools.call("Grep", pattern="needle")

    assert answer.text == "No matches found\n[1 ignored files match; set include_ignored]"


async def test_a_cell_of_a_notebook_is_replaced(tools: Tools) -> None:
    path = tools.top / "n.ipynb"
    path.write_bytes(notebook("old").encode())

    await tools.call("Read", file_path=str(path))
    await tools.call("NotebookEdit", notebook_path=str(path), cell_id="a", new_source="new")

    assert b"new" in path.read_bytes()
    assert b"\r" not in path.read_bytes()


async def test_changes_are_taken_back(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    path = desk.file("f.txt", b"one\r\n")
    await desk.edit(path, "one", "1")
    await desk.write(desk.top / "new.txt", "x\n")

    attempts = await desk.undo_all()

    assert [attempt.outcome for attempt in attempts] == [UndoOutcome.UNDONE, UndoOutcome.UNDONE]
    assert path.read_bytes() == b"one\r\n"
    assert names_in(desk.top) == ["f.txt"]


@pytest.mark.parametrize(
    "path", ["{top}\\nul", "{top}\\f.txt::$DATA", "{top}\\f.txt.", "\\\\localhost\\c$\\x", "\\\\?\\{top}\\f.txt"]
)
async def test_what_windows_would_read_as_another_file_is_not_opened(tools: Tools, path: str) -> None:
    (tools.top / "f.txt").write_bytes(b"x")

    refused = await tools.refusal("Read", file_path=path.format(top=tools.top))

    assert refused.code in (ErrorCode.INPUT, ErrorCode.PATH_OUTSIDE)


async def test_a_file_that_another_program_keeps_to_itself_is_named_as_open(tools: Tools) -> None:
    path = tools.top / "f.txt"
    path.write_bytes(b"x")
    held = kept_to_itself(path)

    refused = await tools.refusal("Read", file_path=str(path))
    held.Close()

    assert refused.code is ErrorCode.BUSY
    assert "open in another program" in refused.message


async def test_a_file_that_another_program_reads_can_still_be_changed(tools: Tools) -> None:
    path = tools.workspace.resolve(str(tools.top / "f.txt"))
    path.path.write_bytes(b"old")

    with path.path.open("rb"):
        tools.workspace.write_file(path, b"new", expect=AnyVersion())

    assert path.path.read_bytes() == b"new"


def test_a_directory_that_is_held_open_can_be_neither_renamed_nor_replaced(tools: Tools) -> None:
    (tools.top / "a" / "b").mkdir(parents=True)

    with tools.workspace.open_directory(tools.workspace.resolve(str(tools.top / "a" / "b"))):
        for held in (tools.top / "a" / "b", tools.top / "a", tools.top):
            with pytest.raises(PermissionError):
                held.rename(held.with_name("moved"))
    (tools.top / "a").rename(tools.top / "moved")

    assert names_in(tools.top) == ["moved"]


def kept_to_itself(path: Path) -> Any:
    """A handle that shares the file with nobody."""
    import win32con
    import win32file

    return win32file.CreateFile(str(path), win32con.GENERIC_READ, 0, None, win32con.OPEN_EXISTING, 0, None)


def test_what_was_kept_by_a_second_name_becomes_a_copy_of_all_its_bytes(tmp_path: Path) -> None:
    content = b"one\r\n\x1atwo\r\n"
    folder = tmp_path / "kept"
    folder.mkdir()
    blobs = Blobs(folder)
    file, kept = tmp_path / "f", blobs.path(hashlib.sha256(content).hexdigest())
    file.write_bytes(content)
    os.link(file, kept)

    blobs.release(file.stat())

    assert kept.read_bytes() == content
    assert file.stat().st_nlink == 1
