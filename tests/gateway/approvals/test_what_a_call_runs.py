"""An approval of a call is for what would have run when the person was asked (R-PERM-4)."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.approvals.user_queue import approval_queue
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.manifests.declared import tool, write

pytestmark = pytest.mark.anyio

HANDLER = "handlers = {'say': lambda ctx, input: 'old'}\n"


async def called(place: Path, name: str = "probe__say", **arguments: object) -> ToolResult:
    """A call in a process of its own as far as that knows. Its client shows no forms."""
    tree = {
        "workspace": [place / "ws"],
        "manifests": [place / "ws" / "tools"],
        "catalog": {"toolsets": ["core", "manifests"]},
        "approval": {"by": "elicit", "wait_s": 0.1},
        "files": {"read_before_write": "off"},
    }
    gateway = Gateway(Settings.model_validate(tree), approval=Approval.ELICIT, state=StateDirectory(place / "state"))
    async with gateway.running():
        return await gateway.call(name, arguments, ToolContext(call_id="c"))


async def asked_and_approved(place: Path) -> Path:
    """The handler's file, after a call was asked about and approved."""
    folder = place / "ws" / "tools"
    folder.mkdir(parents=True)
    write(folder, tool("probe", "./handlers.py", {"name": "say", "sideEffect": "mutating"}), handlers_py=HANDLER)
    pending = await called(place)
    assert pending.error_code == ErrorCode.APPROVAL_PENDING, pending.text
    queue = approval_queue(StateDirectory(place / "state"))
    (waiting,) = await queue.waiting()
    await queue.approve(waiting.id, by="page")
    return folder / "handlers.py"


async def test_an_approved_call_runs_if_its_handler_is_as_it_was(tmp_path: Path) -> None:
    await asked_and_approved(tmp_path)

    assert (await called(tmp_path)).text == "old"


async def test_an_approved_call_is_asked_about_again_if_its_handler_is_another_one(tmp_path: Path) -> None:
    file = await asked_and_approved(tmp_path)
    file.write_text(HANDLER.replace("old", "new"))

    assert (await called(tmp_path)).error_code == ErrorCode.APPROVAL_PENDING


async def test_an_approved_edit_is_asked_about_again_if_it_would_change_more_by_now(tmp_path: Path) -> None:
    file = tmp_path / "ws" / "notes.md"
    file.parent.mkdir()
    file.write_text("noon\n")
    edit = {"file_path": str(file), "old_string": "noon", "new_string": "one", "replace_all": True}
    await called(tmp_path, "Edit", **edit)
    queue = approval_queue(StateDirectory(tmp_path / "state"))
    (waiting,) = await queue.waiting()
    await queue.approve(waiting.id, by="page")
    file.write_text("noon\nnoon too\n")

    changed = await called(tmp_path, "Edit", **edit)

    assert changed.error_code == ErrorCode.APPROVAL_PENDING
    assert file.read_text() == "noon\nnoon too\n"
