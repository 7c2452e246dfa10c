"""How far it is from a proxied tool to its upstream's pipe: each function on the way is one more to follow."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

import goat_mcp.upstreams
from goat_mcp.upstreams.transports.child_pipes import ChildPipes
from tests.upstreams.fleet import fleet, server

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

MAX_FRAMES = 11
OWN = str(Path(goat_mcp.upstreams.__file__).parent)


async def test_a_call_goes_through_few_functions_to_the_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks: list[list[str]] = []
    write = ChildPipes.write

    def recorded(pipes: ChildPipes, frame: bytes) -> None:
        if b'"tools/call"' in frame:
            stack: list[str] = ["write"]
            at: FrameType | None = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]  # the stack is the subject
            while at is not None:
                if at.f_code.co_filename.startswith(OWN):
                    stack.append(at.f_code.co_name)
                at = at.f_back
            stacks.append(stack)
        write(pipes, frame)

    monkeypatch.setattr(ChildPipes, "write", recorded)
    async with fleet(tmp_path, {"steady": server("steady.py", tmp_path, "echo")}) as running:
        await running.call("mcp__steady__echo")

    (stack,) = stacks
    assert stack[-1] == "execute"
    assert len(stack) <= MAX_FRAMES, stack
