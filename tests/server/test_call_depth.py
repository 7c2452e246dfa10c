"""How many functions of our own a call passes through, from the wire to the tool that does the work."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import FrameType

import pytest

import goat_mcp
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult
from goat_mcp.tools.read import Read, ReadInput
from goat_mcp.upstreams.transports.child_pipes import ChildPipes
from tests.server.stdio.test_fast_path import ERAS, line
from tests.server.test_adapter import upstreams_file
from tests.upstreams.fleet import server

pytestmark = pytest.mark.anyio
MAX_TO_A_TOOL = 11
MAX_TO_AN_UPSTREAMS_PIPE = 20
OURS = f"{Path(goat_mcp.__file__).parent}/"


def own_functions(frame: FrameType | None) -> list[str]:
    """The functions of goat_mcp on the stack, from the outermost to the one that asks."""
    names: list[str] = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(OURS):
            names.append(f"{frame.f_code.co_filename.removeprefix(OURS)}:{frame.f_code.co_qualname}")
        frame = frame.f_back
    return names[::-1]


def assert_short(names: list[str], limit: int) -> None:
    listed = "\n".join(names)
    assert len(names) <= limit, f"{len(names)} functions of our own:\n{listed}"
    assert sum(name.endswith("._run") for name in names) <= 1, f"two functions called _run:\n{listed}"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("short", [True, False], ids=["fast path", "the SDK's way"])
async def test_a_call_passes_few_functions_before_its_tool_runs(
    tmp_path: Path, era: str, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks: list[list[str]] = []
    run = Read.execute

    async def execute(self: Read, input: ReadInput, ctx: ToolContext) -> ToolResult:
        stacks.append([*own_functions(inspect.currentframe()), "Read.execute"])
        return await run(self, input, ctx)

    monkeypatch.setattr(Read, "execute", execute)

    async with line(tmp_path, era, [], short=short) as client:
        client.call("read", "Read", {"file_path": str(tmp_path / "nothing")})
        await client.answer("read")

    (stack,) = stacks
    assert client.calls.taken == int(short)
    assert_short(stack, MAX_TO_A_TOOL)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("short", [True, False], ids=["fast path", "the SDK's way"])
async def test_a_call_passes_few_functions_before_it_is_in_the_pipe_of_its_upstream(
    tmp_path: Path, era: str, short: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stacks: list[list[str]] = []
    run = ChildPipes.write

    def write(self: ChildPipes, frame: bytes) -> None:
        if b'"tools/call"' in frame:
            stacks.append([*own_functions(inspect.currentframe()), "ChildPipes.write"])
        run(self, frame)

    monkeypatch.setattr(ChildPipes, "write", write)
    file = upstreams_file(tmp_path, good=server("good.py"))
    settings = {"upstreams": [file], "mode": "bypassPermissions"}

    async with line(tmp_path, era, [], short=short, settings=settings) as client:
        client.call("echo", "mcp__good__echo", {})
        answer = await client.answer("echo")

    assert "result" in answer
    (stack,) = stacks
    assert client.calls.taken == int(short)
    assert_short(stack, MAX_TO_AN_UPSTREAMS_PIPE)
