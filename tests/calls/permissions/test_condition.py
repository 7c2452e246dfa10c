"""A rule as the condition of a hook: what it means of a call, by whatever name the call uses."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from goat_mcp.calls.permissions.rule_set import RuleConditions
from goat_mcp.core.side_effect import SideEffect
from tests.tool_doubles import spec


@pytest.mark.parametrize(
    ("tool", "is_meant"), [("Edit", True), ("Write", True), ("NotebookEdit", True), ("Read", False)]
)
def test_edit_alone_means_every_tool_that_changes_files(tool: str, is_meant: bool) -> None:
    matches = RuleConditions(tuple[str], os.path.realpath)

    assert matches("Edit", spec(tool, SideEffect.MUTATING), {"file_path": "/ws/a"}) is is_meant


@pytest.mark.parametrize("tool", ["Read", "Write"])
@pytest.mark.parametrize(
    ("name", "is_meant"), [("secrets/k", True), ("link", True), ("folder/k", True), ("plain.txt", False)]
)
def test_a_link_to_what_a_condition_means_is_meant_too(tmp_path: Path, tool: str, name: str, is_meant: bool) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "k").touch()
    (tmp_path / "plain.txt").touch()
    (tmp_path / "link").symlink_to("secrets/k")
    (tmp_path / "folder").symlink_to("secrets")
    matches = RuleConditions(lambda: (str(tmp_path),), os.path.realpath)

    meant = matches(f"{tool}(secrets/**)", spec(tool, SideEffect.MUTATING), {"file_path": f"{tmp_path}/{name}"})

    assert meant is is_meant
