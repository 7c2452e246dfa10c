"""Rules about paths against real files, links and searches, through the whole gateway."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.core.rights import NO_LIMITS
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import settings_of
from goat_mcp.state.directory import StateDirectory
from tests.files.workspace.exchange import swapping

pytestmark = pytest.mark.anyio
SECRET = "CANARY-5d1e"


class Ground:
    """A gateway over a workspace with one secret in it."""

    def __init__(self, folder: Path, **permissions: Sequence[str]) -> None:
        self.root = folder / "ws"
        (self.root / "secrets").mkdir(parents=True)
        (self.root / "secrets" / "key").write_text(f"{SECRET}\n")
        (self.root / "plain.txt").write_text("nothing\n")
        tree = {"workspace": [str(self.root)], "mode": "bypassPermissions", "permissions": dict(permissions)}
        self.gateway = Gateway(
            settings_of(tree, "a test"), approval=Approval.ELICIT, state=StateDirectory(folder / "state")
        )

    async def call(self, tool: str, **arguments: Any) -> ToolResult:
        given: Mapping[str, Any] = {
            name: value.replace("ROOT", str(self.root)) if isinstance(value, str) else value
            for name, value in arguments.items()
        }
        return await self.gateway.call(tool, given, ToolContext(call_id="c"))


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("Read", {"file_path": "ROOT/secrets/key"}),
        ("Read", {"file_path": "ROOT/sub/../secrets/key"}),
        ("Read", {"file_path": "@secrets/key"}),
        ("Read", {"path": "ROOT/secrets/key"}),
        pytest.param("Read", {"file_path": "ROOT/alias"}, id="FS-23"),
        ("Read", {"file_path": "ROOT/folder/key"}),
        ("Write", {"file_path": "ROOT/secrets/key", "content": "x"}),
        ("Write", {"file_path": "ROOT/secrets/new", "content": "x"}),
        ("Write", {"file_path": "ROOT/folder/new", "content": "x"}),
        ("Edit", {"file_path": "ROOT/alias", "old_string": "CANARY", "new_string": "x"}),
        ("Grep", {"pattern": "CANARY", "path": "ROOT/secrets/key"}),
        ("Grep", {"pattern": "CANARY", "path": "ROOT/alias"}),
    ],
)
async def test_r_file_5_a_file_that_a_rule_denies_is_out_of_reach_by_any_name(
    tmp_path: Path, tool: str, arguments: dict[str, Any]
) -> None:
    ground = Ground(tmp_path, deny=["Read(./secrets/**)"])
    (ground.root / "sub").mkdir()
    (ground.root / "alias").symlink_to("secrets/key")
    (ground.root / "folder").symlink_to("secrets")

    result = await ground.call(tool, **arguments)

    assert result.error_code == "E_PERMISSION" and "Read(./secrets/**)" in result.text
    assert SECRET not in result.text
    assert sorted(path.name for path in (ground.root / "secrets").iterdir()) == ["key"]
    assert (ground.root / "secrets" / "key").read_text() == f"{SECRET}\n"


@pytest.mark.parametrize("path", ["ROOT", "ROOT/secrets", "ROOT/folder"])
@pytest.mark.parametrize("mode", ["content", "files_with_matches", "count"])
async def test_what_may_not_be_read_is_not_found_either(tmp_path: Path, path: str, mode: str) -> None:
    ground = Ground(tmp_path, deny=["Read(./secrets/**)"])
    (ground.root / "folder").symlink_to("secrets")

    found = await ground.call("Grep", pattern="CANARY", path=path, output_mode=mode)
    listed = await ground.call("Glob", pattern="**/*", path=path, include_ignored=True)

    assert SECRET not in found.text and "key" not in found.text
    assert "key" not in listed.text


@pytest.mark.parametrize("rule", ["Read(//LINK/secrets/**)", "Read(//LINK/secrets/k*)", "Read(//LINK/secrets/key)"])
async def test_a_rule_that_goes_by_a_link_holds_for_the_files_that_it_leads_to(tmp_path: Path, rule: str) -> None:
    # As on macOS, where /tmp, /var and /etc are links.
    (tmp_path / "link[1]").symlink_to(tmp_path / "ws")
    ground = Ground(tmp_path, deny=[rule.replace("/LINK", str(tmp_path / "link\\[1\\]"))])

    read = await ground.call("Read", file_path="ROOT/secrets/key")
    written = await ground.call("Write", file_path="ROOT/secrets/key", content="x")
    named = await ground.call("Bash", command="cat secrets/key")
    found = await ground.call("Grep", pattern="CANARY", path="ROOT", output_mode="content")
    plain = await ground.call("Read", file_path="ROOT/plain.txt")

    assert [read.error_code, written.error_code, named.error_code] == ["E_PERMISSION"] * 3
    assert SECRET not in read.text + named.text + found.text and not plain.is_error


async def test_fs_22_another_case_is_another_file(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Read(./.env)"])
    (ground.root / ".env").write_text(SECRET)
    (ground.root / "sub").mkdir()

    shouted = await ground.call("Read", file_path="ROOT/sub/../.ENV")
    plain = await ground.call("Read", file_path="ROOT/sub/../.env")

    assert shouted.error_code == "E_NOT_FOUND" and SECRET not in shouted.text
    assert plain.error_code == "E_PERMISSION" and SECRET not in plain.text


async def test_the_rule_holds_for_the_file_that_was_opened_while_a_link_changes_places(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Read(./secrets/**)"])
    (ground.root / "open").mkdir()
    (ground.root / "open" / "key").write_text("harmless\n")
    (ground.root / "link").symlink_to("secrets")

    with swapping(ground.root / "open", ground.root / "link"):
        answers = [await ground.call("Read", file_path="ROOT/open/key") for _ in range(2_000)]

    assert not [answer for answer in answers if SECRET in answer.text]
    assert {answer.error_code for answer in answers} <= {None, "E_PERMISSION", "E_NOT_FOUND", "E_IO", "E_STALE"}


async def test_an_edit_rule_denies_writing_and_leaves_reading(tmp_path: Path) -> None:
    ground = Ground(tmp_path, deny=["Edit(/plain.txt)"])

    assert not (await ground.call("Read", file_path="ROOT/plain.txt")).is_error
    assert (await ground.call("Write", file_path="ROOT/plain.txt", content="x")).error_code == "E_PERMISSION"
    assert (ground.root / "plain.txt").read_text() == "nothing\n"


@pytest.mark.parametrize("key", ["file_path", "path", "filePath"])
async def test_an_alias_of_an_argument_hides_nothing_from_a_rule(tmp_path: Path, key: str) -> None:
    ground = Ground(tmp_path, deny=["Edit(/plain.txt)"])

    result = await ground.call("Write", **{key: "@plain.txt", "content": "x"})

    assert result.error_code == "E_PERMISSION"


async def test_an_agents_worktree_has_the_allow_rules_of_the_workspace(tmp_path: Path) -> None:
    ground = Ground(tmp_path, allow=["Edit(src/**)"])
    ground.gateway.modes.default = Mode.DONT_ASK
    copy = ground.root / ".worktrees" / "fix"
    (copy / "src").mkdir(parents=True)
    at_work = ToolContext(call_id="c", rights=NO_LIMITS.narrowed(allowed=None, writes_below=str(copy)))

    async def write(path: Path, ctx: ToolContext) -> str | None:
        return (await ground.gateway.call("Write", {"file_path": str(path), "content": "x"}, ctx)).error_code

    assert await write(copy / "src" / "a.py", at_work) is None
    assert await write(copy / "lib" / "a.py", at_work) == "E_PERMISSION"
    assert await write(copy / "src" / "b.py", ToolContext(call_id="c")) == "E_PERMISSION"
