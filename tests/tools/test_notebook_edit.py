"""NotebookEdit over files: which cell, what is said, when it is refused.

Ids such as nb-001 are those of the example cases.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import nbformat
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.core.tool import Access
from goat_mcp.files.settings import FileOptions
from goat_mcp.files.workspace import Workspace
from goat_mcp.state.sessions import Sessions
from goat_mcp.tools.notebook_edit import NotebookEdit
from goat_mcp.tools.read import Read
from tests.tools.changing import state_of

pytestmark = pytest.mark.anyio

Json = dict[str, Any]


@dataclass
class Desk:
    """Read and NotebookEdit over one folder."""

    folder: Path
    mode: Literal["strict", "relaxed", "off"] = "off"

    def __post_init__(self) -> None:
        self.folder = self.folder.resolve()
        self.workspace, self.sessions = Workspace(self.folder), Sessions()
        self.options = FileOptions(read_before_write=self.mode)
        self.tool = NotebookEdit(self.workspace, self.sessions, self.options)

    def file(self, content: str | bytes | Json, name: str = "n.ipynb") -> Path:
        path = self.folder / name
        if isinstance(content, dict):
            content = json.dumps(content, indent=1, ensure_ascii=False) + "\n"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    async def edit(self, path: Path, session_key: str = "local", **arguments: Any) -> ToolResult:
        given = self.tool.validate({"notebook_path": str(path), **arguments})
        return await self.tool.execute(given, ToolContext(call_id="t", session_key=session_key))

    async def refused(self, path: Path, **arguments: Any) -> ToolError:
        with pytest.raises(ToolError) as refusal:
            await self.edit(path, **arguments)
        return refusal.value

    async def read(self, path: Path, **arguments: Any) -> ToolResult:
        tool = Read(self.workspace, self.sessions, self.options)
        return await tool.execute(tool.validate({"file_path": str(path), **arguments}), ToolContext(call_id="t"))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def code(source: str | list[str], cell_id: str | None = None, **more: Any) -> Json:
    named = {} if cell_id is None else {"id": cell_id}
    return {"cell_type": "code", "execution_count": 1, **named, "metadata": {}, "outputs": [], "source": source, **more}


def markdown(source: str | list[str], cell_id: str | None = None, **more: Any) -> Json:
    named = {} if cell_id is None else {"id": cell_id}
    return {"cell_type": "markdown", **named, "metadata": {}, "source": source, **more}


def notebook(*cells: Any, minor: int = 5) -> Json:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": minor}


def cells_of(path: Path) -> list[Json]:
    return json.loads(path.read_bytes())["cells"]


THREE = notebook(code("1", "a"), code("2", "b"), code("3", "c"))


async def test_nb_001_a_new_cell_goes_behind_the_one_named(desk: Desk) -> None:
    path = desk.file(THREE)

    result = await desk.edit(path, cell_id="a", new_source="x=1", cell_type="code", edit_mode="insert")

    first, new, *rest = cells_of(path)
    new_id = new["id"]
    assert [cell["id"] for cell in (first, *rest)] == ["a", "b", "c"]
    assert new_id not in ("a", "b", "c")
    assert new == {**code("x=1", new_id), "execution_count": None}
    assert result.text == f"Inserted code cell {new_id} in {path} (cell 2 of 4)."
    assert result.facts == {"cell_id": new_id, "cell_index": 1, "cell_type": "code", "edit_mode": "insert"}
    nbformat.validate(json.loads(path.read_bytes()))


async def test_nb_001_before_nbformat_4_5_a_new_cell_has_no_id(desk: Desk) -> None:
    path = desk.file(notebook(code("1"), minor=4))

    result = await desk.edit(path, cell_id="cell-0", new_source="x=1", cell_type="code", edit_mode="insert")

    assert cells_of(path)[1] == {**code("x=1"), "execution_count": None}
    assert result.text == f"Inserted code cell cell-1 in {path} (cell 2 of 2)."


async def test_nb_002_without_an_id_a_new_cell_goes_to_the_top(desk: Desk) -> None:
    path = desk.file(THREE)

    result = await desk.edit(path, new_source="#t", cell_type="markdown", edit_mode="insert")

    new, *rest = cells_of(path)
    assert new == markdown("#t", new["id"])
    assert [cell["id"] for cell in rest] == ["a", "b", "c"]
    assert result.text == f"Inserted markdown cell {new['id']} in {path} (cell 1 of 4)."


async def test_nb_003_a_real_id_wins_over_the_place_it_looks_like(desk: Desk) -> None:
    path = desk.file(notebook(code("0", "cell-2"), code("1", "b"), code("2", "c")))

    result = await desk.edit(path, cell_id="cell-2", new_source="y")

    assert [cell["source"] for cell in cells_of(path)] == ["y", "1", "2"]
    assert result.text == f"Replaced code cell cell-2 in {path} (cell 1 of 3)."
    assert result.facts is not None and result.facts["cell_index"] == 0


async def test_nb_003_the_place_counts_where_no_cell_has_that_id(desk: Desk) -> None:
    without_ids = desk.file(notebook(code("0"), code("1"), code("2"), minor=4))
    with_ids = desk.file(THREE, "ids.ipynb")

    await desk.edit(without_ids, cell_id="cell-2", new_source="y")
    result = await desk.edit(with_ids, cell_id="cell-2", new_source="y")

    assert [cell["source"] for cell in cells_of(without_ids)] == ["0", "1", "y"]
    assert [cell["source"] for cell in cells_of(with_ids)] == ["1", "2", "y"]
    assert result.facts is not None and result.facts["cell_id"] == "c"


async def test_replaced_code_loses_its_outputs_and_its_number(desk: Desk) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
    path = desk.file(notebook(code(["print(1)"], "a", outputs=[output], metadata={"tags": ["keep"]})))

    result = await desk.edit(path, cell_id="a", new_source="print(2)\nprint(3)")

    kept = {"metadata": {"tags": ["keep"]}, "source": ["print(2)\n", "print(3)"]}
    assert cells_of(path) == [{**code("", "a"), **kept, "execution_count": None}]
    assert result.text == f"Replaced code cell a in {path} (cell 1 of 1).\n[its outputs were cleared]"


async def test_a_replaced_markdown_cell_keeps_its_attachments(desk: Desk) -> None:
    attached = {"p.png": {"image/png": "AA=="}}
    path = desk.file(notebook(markdown("![](attachment:p.png)", "a", attachments=attached)))

    await desk.edit(path, cell_id="a", new_source="no picture")

    assert cells_of(path) == [markdown("no picture", "a", attachments=attached)]


async def test_another_type_is_told_with_what_had_to_go(desk: Desk) -> None:
    output = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
    attached = {"p.png": {"image/png": "AA=="}}
    path = desk.file(notebook(code("1", "a", outputs=[output]), markdown("2", "b", attachments=attached)))

    first = await desk.edit(path, cell_id="a", new_source="# 1", cell_type="markdown")
    second = await desk.edit(path, cell_id="b", new_source="2", cell_type="code")

    assert cells_of(path) == [markdown("# 1", "a"), {**code("2", "b"), "execution_count": None}]
    assert first.text.splitlines()[1:] == ["[the cell was code before]", "[its outputs are gone]"]
    assert second.text.splitlines()[1:] == [
        "[the cell was markdown before]",
        "[its attachments are gone: a code cell cannot hold them]",
    ]
    nbformat.validate(json.loads(path.read_bytes()))


async def test_a_deleted_cell_is_gone_and_its_source_need_not_be_sent(desk: Desk) -> None:
    path = desk.file(THREE)

    result = await desk.edit(path, cell_id="b", edit_mode="delete")
    await desk.edit(path, cell_id="a", edit_mode="delete", new_source="")
    last = await desk.edit(path, cell_id="c", edit_mode="delete", new_source=None)

    assert cells_of(path) == []
    assert result.text == f"Deleted code cell b in {path} (it was cell 2, 2 left)."
    assert result.facts == {"cell_id": "b", "cell_index": 1, "cell_type": "code", "edit_mode": "delete"}
    assert last.text == f"Deleted code cell c in {path} (it was cell 1, none left)."


async def test_cells_without_id_that_move_are_told(desk: Desk) -> None:
    path = desk.file(notebook(code("0"), code("1"), code("2"), minor=4))

    inserted = await desk.edit(path, cell_id="cell-0", new_source="", cell_type="code", edit_mode="insert")
    deleted = await desk.edit(path, cell_id="cell-1", edit_mode="delete")
    last = await desk.edit(path, cell_id="cell-2", edit_mode="delete")

    assert inserted.text.endswith("\n[the cells behind it go by other places now: cell-1 is cell-2, and so on]")
    assert deleted.text.endswith("\n[the cells behind it go by other places now: cell-2 is cell-1, and so on]")
    assert "\n" not in last.text


async def test_an_edit_that_changes_nothing_says_so_and_leaves_the_time(desk: Desk) -> None:
    path = desk.file(notebook(code("1", "a", execution_count=None), markdown(["a\n", "b"], "b", attachments={})))
    before = state_of(desk.folder)

    first = await desk.edit(path, cell_id="a", new_source="1", cell_type="code")
    second = await desk.edit(path, cell_id="b", new_source="a\nb")

    assert first.text == f"{path} is unchanged: code cell a (cell 1 of 2) has this source already."
    assert second.facts == {"cell_id": "b", "cell_index": 1, "cell_type": "markdown", "edit_mode": "replace"}
    assert state_of(desk.folder) == before


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"new_source": "x"}, "cell_id: required to replace a cell; Read shows the ids"),
        ({"new_source": "x", "cell_id": ""}, "cell_id: required to replace a cell; Read shows the ids"),
        ({"edit_mode": "delete"}, "cell_id: required to delete a cell; Read shows the ids"),
        ({"new_source": "x", "edit_mode": "insert"}, 'cell_type: required to insert a cell: "code" or "markdown"'),
        ({"cell_id": "a"}, "new_source: is required"),
        ({"cell_id": "a", "new_source": 5}, "new_source: wants text; got int 5"),
        ({"cell_id": "a", "new_source": "", "cell_type": "raw"}, "cell_type: wants 'code' or 'markdown'"),
        ({"cell_id": "a", "new_source": "", "edit_mode": "append"}, "edit_mode: wants 'replace', 'insert' or"),
    ],
)
async def test_input_that_does_not_say_what_to_do_is_refused(
    desk: Desk, arguments: dict[str, Any], problem: str
) -> None:
    refusal = await desk.refused(desk.file(THREE), **arguments)

    assert refusal.code is ErrorCode.INPUT
    assert refusal.message.startswith(problem)


async def test_the_path_goes_by_other_names_too(desk: Desk) -> None:
    path = desk.file(THREE)

    for name in ("file_path", "notebookPath"):
        assert desk.tool.validate({name: str(path), "cellId": "a", "newSource": "x"}).notebook_path == str(path)


async def test_an_unknown_cell_is_refused_with_those_there_are(desk: Desk) -> None:
    path = desk.file(notebook(code("1", "a"), code("2"), code("3", "c")))
    before = state_of(desk.folder)

    for cell_id in ("z", "cell-3", "1", "cell--1", "A"):
        refusal = await desk.refused(path, cell_id=cell_id, new_source="x")

        assert refusal.code is ErrorCode.CELL
        assert refusal.message == f"no cell {cell_id!r} in {path}; nothing was written"
        assert refusal.suggestion == "Its cells: a, cell-1, c."
    assert state_of(desk.folder) == before


async def test_of_many_cells_or_long_ids_only_some_are_named(desk: Desk) -> None:
    path = desk.file(notebook(*(code("", f"{number}" + "x" * 10_000) for number in range(50))))

    refusal = await desk.refused(path, cell_id="z" * 10_000, new_source="x")

    assert refusal.suggestion.endswith(" and 10 more.")
    assert len(refusal.suggestion) < 3_000


async def test_in_a_notebook_without_cells_none_can_be_named(desk: Desk) -> None:
    refusal = await desk.refused(desk.file(notebook()), cell_id="cell-0", edit_mode="delete")

    assert refusal.suggestion == "It has no cells; insert one without cell_id."


async def test_an_id_that_two_cells_have_is_ambiguous(desk: Desk) -> None:
    path = desk.file(notebook(code("1", "a"), code("2", "b"), code("3", "a")))

    refusal = await desk.refused(path, cell_id="a", new_source="x")
    await desk.edit(path, cell_id="cell-2", new_source="x")

    assert refusal.code is ErrorCode.AMBIGUOUS
    assert refusal.message == f"2 cells of {path} have the id 'a'; nothing was written"
    assert refusal.suggestion == "Name one by its place: cell-0, cell-2."
    assert [cell["source"] for cell in cells_of(path)] == ["1", "2", "x"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        pytest.param("", "is not valid JSON: Expecting value: line 1 column 1", id="empty"),
        pytest.param(
            '{"cells": [\n{"source": ', "is not valid JSON: Expecting value: line 2 column 12", id="cut short"
        ),
        pytest.param('{"cells": []} x', "is not valid JSON: Extra data: line 1 column 15", id="more behind it"),
        pytest.param('{"cells": [{}, ]}', "is not valid JSON: Expecting value", id="a comma too many"),
        pytest.param('{"cells": [{} {}]}', "is not valid JSON: Expecting ',' delimiter", id="a comma too few"),
        pytest.param('{"cells": [{"a" 1}]}', "is not valid JSON: Expecting ':' delimiter", id="no colon"),
        pytest.param('{"cells": [{"a": 1, b: 2}]}', "is not valid JSON: Expecting property name", id="bare key"),
        pytest.param('{"cells": [{"a": 1]}', "is not valid JSON: Expecting ',' delimiter", id="wrong bracket"),
        pytest.param('{"cells": [], "a": "\n"}', "is not valid JSON: Invalid control character", id="raw line end"),
        pytest.param("<<<<<<< HEAD\n{}", "is not valid JSON: Expecting value: line 1 column 1", id="merge conflict"),
        pytest.param("[" * 100_000, "is no Jupyter notebook: its JSON is nested too deeply", id="deep"),
        pytest.param('{"cells": ' + "[" * 100_000, "is no Jupyter notebook: its JSON is nested", id="deep cells"),
        pytest.param("[1]", "is no Jupyter notebook: its JSON is no object", id="a list"),
        pytest.param("{}", "is no Jupyter notebook: it has no list of cells", id="no cells"),
        pytest.param('{"cells": {}}', "is no Jupyter notebook: it has no list of cells", id="cells of another kind"),
        pytest.param('{"nbformat": 3, "worksheets": []}', "is a notebook of nbformat 3; only nbformat 4", id="3"),
        pytest.param('{"worksheets": [{"cells": []}]}', "is a notebook of nbformat 3; only nbformat 4", id="old"),
        pytest.param('{"cells": [], "nbformat": 5}', "is a notebook of nbformat 5; only nbformat 4", id="5"),
    ],
)
async def test_what_is_no_notebook_of_today_is_refused_and_stays(desk: Desk, content: str, problem: str) -> None:
    path = desk.file(content)
    before = state_of(desk.folder)

    refusal = await desk.refused(path, new_source="x", cell_type="code", edit_mode="insert")

    assert refusal.code is ErrorCode.NOTEBOOK
    assert refusal.message.startswith(f"{path} {problem}")
    assert refusal.message.endswith("nothing was written")
    assert refusal.suggestion
    assert state_of(desk.folder) == before


async def test_a_cell_that_is_no_object_can_only_be_deleted(desk: Desk) -> None:
    path = desk.file('{"cells": [5, {"cell_type": "raw", "source": ""}], "nbformat": 4}')

    refusal = await desk.refused(path, cell_id="cell-0", new_source="x")
    await desk.edit(path, cell_id="cell-0", edit_mode="delete")

    assert refusal.code is ErrorCode.CELL
    assert path.read_text() == '{"cells": [{"cell_type": "raw", "source": ""}], "nbformat": 4}'


@pytest.mark.parametrize(
    ("bom", "encoding"),
    [(b"", "utf-8"), (b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")],
)
async def test_the_encoding_stays(desk: Desk, bom: bytes, encoding: str) -> None:
    tree = notebook(markdown("\u20ac", "a"), markdown("\U0001f600", "b"))
    text = json.dumps(tree, indent=1, ensure_ascii=False).replace("\n", "\r\n")
    path = desk.file(bom + text.encode(encoding))

    await desk.edit(path, cell_id="b", new_source="\u00fc")

    assert path.read_bytes() == bom + text.replace("\U0001f600", "\u00fc").encode(encoding)


async def test_in_a_file_of_unknown_encoding_new_text_is_escaped(desk: Desk) -> None:
    path = desk.file(b'{"cells": [{"cell_type": "raw", "source": "a"}], "x": "\xe9"}')

    await desk.edit(path, cell_id="cell-0", new_source="\u20ac")

    assert path.read_bytes() == b'{"cells": [{"cell_type": "raw", "source": "\\u20ac"}], "x": "\xe9"}'


async def test_half_a_character_is_refused(desk: Desk) -> None:
    refusal = await desk.refused(desk.file(THREE), cell_id="a", new_source="\ud800")

    assert refusal.code is ErrorCode.INPUT


async def test_a_missing_notebook_is_not_made(desk: Desk) -> None:
    refusal = await desk.refused(desk.folder / "no.ipynb", new_source="", cell_type="code", edit_mode="insert")

    assert refusal.code is ErrorCode.NOT_FOUND
    assert state_of(desk.folder) == {}


async def test_a_notebook_over_100_mb_is_refused(desk: Desk) -> None:
    path = desk.file("{}")
    os.truncate(path, 100_000_001)

    refusal = await desk.refused(path, cell_id="a", new_source="x")

    assert refusal.code is ErrorCode.TOO_LARGE


async def test_fs_46_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "n.ipynb").write_text(json.dumps(THREE))
    (tmp_path / "ws").mkdir()
    desk = Desk(tmp_path / "ws")
    (desk.folder / "n.ipynb").symlink_to(outside / "n.ipynb")
    before = state_of(outside)

    for path in (Path("n.ipynb"), desk.folder / "n.ipynb"):
        for arguments in ({"cell_id": "a"}, {"edit_mode": "insert", "cell_type": "code"}):
            refusal = await desk.refused(path, new_source="x", **arguments)
            assert refusal.code in (ErrorCode.PATH_OUTSIDE, ErrorCode.PATH_RELATIVE)
    assert state_of(outside) == before


async def test_a_link_inside_stays_a_link_and_its_target_changes(desk: Desk) -> None:
    target = desk.file(THREE, "target.ipynb")
    link = desk.folder / "link.ipynb"
    link.symlink_to("target.ipynb")

    await desk.edit(link, cell_id="a", new_source="x")

    assert link.is_symlink()
    assert cells_of(target)[0]["source"] == "x"


async def test_the_scheduler_is_told_of_the_file(desk: Desk) -> None:
    path = desk.file(THREE)

    access = desk.tool.access(desk.tool.validate({"notebook_path": str(path), "cell_id": "a", "new_source": ""}))

    assert access == Access(asked=(str(path),), writes=(str(path),))


async def test_strict_wants_a_read_first(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "strict")
    path = desk.file(THREE)

    refusal = await desk.refused(path, cell_id="a", new_source="x")
    await desk.read(path, limit=1)
    await desk.edit(path, cell_id="a", new_source="x")
    await desk.edit(path, cell_id="cell-1", new_source="y")

    assert refusal.code is ErrorCode.NOT_READ
    assert [cell["source"] for cell in cells_of(path)] == ["x", "y", "3"]


async def test_relaxed_wants_a_read_only_where_cells_are_counted(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "relaxed")
    path = desk.file(THREE)

    await desk.edit(path, cell_id="a", new_source="x")
    await desk.edit(path, new_source="top", cell_type="code", edit_mode="insert")
    refusal = await desk.refused(path, cell_id="cell-1", new_source="y")
    await desk.read(path)
    await desk.edit(path, cell_id="cell-1", new_source="y")

    assert refusal.code is ErrorCode.NOT_READ
    assert [cell["source"] for cell in cells_of(path)] == ["top", "y", "2", "3"]


@pytest.mark.parametrize("mode", ["strict", "relaxed"])
@pytest.mark.parametrize("arguments", [{"cell_id": "a"}, {"cell_id": "cell-0"}, {"cell_id": "gone"}])
async def test_a_notebook_changed_since_its_read_is_stale(tmp_path: Path, mode: Any, arguments: dict[str, Any]) -> None:
    desk = Desk(tmp_path, mode)
    path = desk.file(THREE)
    await desk.read(path)
    desk.file(notebook(code("other", "a")))
    before = state_of(desk.folder)

    refusal = await desk.refused(path, new_source="x", **arguments)

    assert refusal.code is ErrorCode.STALE
    assert state_of(desk.folder) == before


async def test_a_new_time_alone_does_not_make_a_notebook_stale(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "strict")
    path = desk.file(THREE)
    await desk.read(path)
    os.utime(path, ns=(1, 1))

    await desk.edit(path, cell_id="cell-0", new_source="x")

    assert cells_of(path)[0]["source"] == "x"


async def test_another_clients_read_does_not_count(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "strict")
    path = desk.file(THREE)
    await desk.read(path)

    with pytest.raises(ToolError) as refusal:
        await desk.edit(path, "somebody else", cell_id="a", new_source="x")

    assert refusal.value.code is ErrorCode.NOT_READ


@pytest.mark.parametrize("minor", [4, 5])
async def test_the_ids_that_read_shows_are_those_to_edit_by(tmp_path: Path, minor: int) -> None:
    desk = Desk(tmp_path, "strict")
    named = minor == 5
    ids = ["a", "b&c", 'd"\u202e'] if named else [None, None, None]
    path = desk.file(notebook(*(code(f"old {number}", cell_id) for number, cell_id in enumerate(ids)), minor=minor))

    shown = [line.split('"')[1] for line in (await desk.read(path)).text.splitlines() if line.startswith("<cell id=")]
    for number, cell_id in enumerate(shown):
        await desk.edit(path, cell_id=cell_id, new_source=f"new {number}")

    assert shown == (["a", "b&amp;c", "d&quot;\\u202e"] if named else ["cell-0", "cell-1", "cell-2"])
    assert [cell["source"] for cell in cells_of(path)] == ["new 0", "new 1", "new 2"]


async def test_what_read_counts_is_what_is_edited_also_behind_a_cell_that_is_none(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "strict")
    path = desk.file('{"cells": [5, {"cell_type": "raw", "source": "a"}], "nbformat": 4}')

    shown = await desk.read(path)
    await desk.edit(path, cell_id="cell-1", new_source="b")

    assert '<cell id="cell-1"><cell_type>raw</cell_type>\na\n</cell>' in shown.text
    assert path.read_text() == '{"cells": [5, {"cell_type": "raw", "source": "b"}], "nbformat": 4}'


async def test_many_edits_at_once_all_land(tmp_path: Path) -> None:
    desk = Desk(tmp_path, "strict")
    path = desk.file(notebook(*(code("old", f"c{number}") for number in range(10))))
    await desk.read(path)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(lambda number=number: desk.edit(path, cell_id=f"c{number}", new_source=f"new {number}"))

    assert [cell["source"] for cell in cells_of(path)] == [f"new {number}" for number in range(10)]


async def test_large_outputs_of_other_cells_stay_as_they_are(desk: Desk) -> None:
    line = json.dumps("\u20ac" + "x" * 96 + "\n", ensure_ascii=False)
    output = '{"output_type": "stream", "name": "stdout", "text": [' + ", ".join([line] * 200_000) + "]}"
    text = '{"cells": [{"cell_type": "code", "id": "big", "outputs": [' + output + "]}, {"
    tail = '"cell_type": "markdown", "id": "a", "source": "%s"}], "nbformat": 4, "nbformat_minor": 5}'
    path = desk.file(text + tail % "old")
    assert path.stat().st_size > 20_000_000

    await desk.edit(path, cell_id="a", new_source="new")

    assert path.read_bytes() == (text + tail % "new").encode()


def test_the_tool_starts_without_nbformat() -> None:
    heavy = "('nbformat', 'jsonschema')"
    program = f"import sys, goat_mcp.tools.notebook_edit; print([m for m in {heavy} if m in sys.modules])"

    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert finished.stdout == "[]\n"
