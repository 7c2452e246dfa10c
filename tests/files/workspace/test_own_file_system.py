"""What the jail makes of the names of whatever file system it runs on: no double, and no system left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.workspace import Workspace
from goat_mcp.files.workspace.directory import folds_names
from goat_mcp.files.workspace.opened_file import AnyVersion


def test_a_name_in_another_spelling_is_what_the_file_system_takes_it_for(tmp_path: Path) -> None:
    top = tmp_path.resolve() / "Top"
    top.mkdir()
    (top / "Name").write_bytes(b"old")
    workspace = Workspace(top, lock_folder=tmp_path / "locks")
    asked = workspace.resolve(str(top / "nAME"))

    assert folds_names(str(top)) == (top / "nAME").exists()
    if folds_names(str(top)):
        written = workspace.write_file(asked, b"new", expect=AnyVersion())
        assert (written.real_path, [path.name for path in top.iterdir()]) == (top / "Name", ["Name"])
        assert workspace.key(top / "nAME") == workspace.key(top / "Name")
    else:
        with pytest.raises(ToolError) as refused:
            workspace.open_file(asked)
        assert refused.value.code == ErrorCode.NOT_FOUND
        assert workspace.key(top / "nAME") != workspace.key(top / "Name")
