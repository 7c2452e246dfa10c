"""An approval that another process has to take is about what would have run where it was asked for (R-PERM-4)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.manifests.declared import tool, write
from tests.server.asking import accepts

pytestmark = pytest.mark.anyio

BOUND_S = 60.0
NOTHING: Mapping[str, Any] = {}
YES = types.ElicitResult(action="accept", content={"decision": ALLOW_ONCE})
HANDLERS = "import beside\nhandlers = {'say': lambda ctx, input: beside.SAYS + 'old'}\n"
SCRIPT = "#!/bin/sh\necho '\"old\"'\n"
Entry = str | dict[str, Any]


@asynccontextmanager
async def process(place: Path, folder: Path) -> AsyncGenerator[Client]:
    """One of several that serve the same state directory over HTTP, as far as it knows; and a client."""
    (place / "workspace").mkdir(exist_ok=True)
    settings = {
        "workspace": [place / "workspace"],
        "manifests": [folder],
        "catalog": {"toolsets": ["core", "base", "manifests"], "mode": "search"},
        "permissions": {"ask": ["probe__say", "Bash"]},
    }
    gateway = Gateway(
        Settings.model_validate(settings), approval=Approval.ELICIT, state=StateDirectory(place / "state")
    )
    adapter = Adapter(gateway, "http")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="2026-07-28", elicitation_callback=accepts(decision=DENY)) as client:
            yield client
        group.cancel_scope.cancel()


def declare(folder: Path, entry: Entry, **spec: Any) -> Path:
    """A tool in each of the three ways; the program beside the Python is the same each time."""
    export = {"name": "say", "sideEffect": "mutating", **spec}
    return write(folder, tool("probe", entry, export), handlers_py=HANDLERS, beside_py="SAYS = ''", tool_sh=SCRIPT)


async def answered_elsewhere(
    place: Path,
    folder: Path,
    change: Callable[[], object],
    called: str = "probe__say",
    arguments: Mapping[str, Any] = NOTHING,
) -> types.CallToolResult | types.InputRequiredResult:
    """The outcome of a call that one process has asked about, where the yes comes to another, which began after the
    change."""
    with anyio.fail_after(BOUND_S):
        async with AsyncExitStack() as stack:
            one = await stack.enter_async_context(process(place, folder))
            asked = await one.session.call_tool(called, dict(arguments), allow_input_required=True)
            assert isinstance(asked, types.InputRequiredResult), asked
            change()
            other = await stack.enter_async_context(process(place, folder))
            (key,) = asked.input_requests or {}
            return await other.session.call_tool(
                called,
                dict(arguments),
                input_responses={key: YES},
                request_state=asked.request_state,
                allow_input_required=True,
            )


def edited(file: Path) -> Callable[[], object]:
    return lambda: file.write_text(file.read_text().replace("old", "new"))


ENTRIES: dict[str, tuple[Entry, str]] = {
    "python": ("./handlers.py", "handlers.py"),
    "program": ({"command": ["./tool.sh"]}, "tool.sh"),
    "argument": ({"command": ["sh", "tool.sh"]}, "tool.sh"),
}


@pytest.mark.parametrize("kind", ENTRIES)
async def test_a_tool_whose_files_are_others_now_is_asked_about_again(tmp_path: Path, kind: str) -> None:
    entry, name = ENTRIES[kind]
    place = declare(tmp_path / "tools", entry)

    outcome = await answered_elsewhere(tmp_path, tmp_path / "tools", edited(place / name))

    assert isinstance(outcome, types.InputRequiredResult)


@pytest.mark.parametrize("kind", ENTRIES)
async def test_one_whose_files_say_the_same_runs_however_they_came_there(tmp_path: Path, kind: str) -> None:
    entry, name = ENTRIES[kind]
    file = declare(tmp_path / "tools", entry) / name

    def written_again() -> None:
        other = file.with_name("other")
        other.write_bytes(file.read_bytes())
        other.chmod(file.stat().st_mode)
        other.replace(file)

    outcome = await answered_elsewhere(tmp_path, tmp_path / "tools", written_again)

    assert isinstance(outcome, types.CallToolResult)
    assert (outcome.is_error, outcome.content[0].model_dump()["text"]) == (False, "old")


@pytest.mark.parametrize("name", ["handlers.py", "beside.py"])
async def test_of_a_sealed_directory_all_it_holds_counts(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "workspace" / "tools"  # where tools may write
    file = declare(folder, "./handlers.py") / name

    outcome = await answered_elsewhere(
        tmp_path, folder, lambda: file.write_text(file.read_text().replace("''", "'new'").replace("old", "new"))
    )

    assert isinstance(outcome, types.InputRequiredResult)


async def test_of_a_sealed_directory_that_is_as_it_was_the_tool_runs(tmp_path: Path) -> None:
    folder = tmp_path / "workspace" / "tools"
    declare(folder, "./handlers.py")

    outcome = await answered_elsewhere(tmp_path, folder, lambda: None)

    assert isinstance(outcome, types.CallToolResult)
    assert outcome.content[0].model_dump()["text"] == "old"


@pytest.mark.parametrize(
    ("entry", "spec"),
    [
        ({"http": {"url": "http://127.0.0.1:9/else"}}, {}),
        ({"http": {"url": "http://127.0.0.1:9/say"}}, {"access": {"category": "other"}}),
    ],
    ids=["where calls go", "what it touches"],
)
async def test_a_tool_that_is_declared_otherwise_now_is_asked_about_again(
    tmp_path: Path, entry: Entry, spec: dict[str, Any]
) -> None:
    folder = tmp_path / "tools"
    declare(folder, {"http": {"url": "http://127.0.0.1:9/say"}})

    outcome = await answered_elsewhere(tmp_path, folder, lambda: declare(folder, entry, **spec))

    assert isinstance(outcome, types.InputRequiredResult)


@pytest.mark.parametrize("wrap", [False, True], ids=["by its name", "by call_tool"])
async def test_a_script_that_says_something_else_now_is_asked_about_again(tmp_path: Path, wrap: bool) -> None:
    (tmp_path / "workspace").mkdir()
    script = tmp_path / "workspace" / "say.sh"
    script.write_text(SCRIPT)
    call: tuple[str, dict[str, Any]] = ("bash__script", {"path": str(script)})
    if wrap:
        call = ("call_tool", {"name": call[0], "arguments": call[1]})

    changed = await answered_elsewhere(tmp_path, tmp_path / "none", edited(script), *call)
    kept = await answered_elsewhere(tmp_path, tmp_path / "none", lambda: None, *call)

    assert isinstance(changed, types.InputRequiredResult)
    assert isinstance(kept, types.CallToolResult) and "new" in str(kept.content)
