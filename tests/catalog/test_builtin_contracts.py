"""The contracts that are listed before any tool's code is loaded are those of the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.build.builtin_tools import TOOL_CLASSES
from tests.contract.test_every_tool import gateway_in


def test_the_file_says_what_the_classes_say() -> None:
    assert list(builtin_contracts()) == [tool.contract for tool in TOOL_CLASSES]


def test_listing_loads_no_tools_code() -> None:
    program = (
        "import sys, tempfile, pathlib\n"
        "from goat_mcp.gateway.gateway import Gateway\n"
        "from goat_mcp.calls.permissions.mode import Approval\n"
        "from goat_mcp.settings.settings import Settings\n"
        "from goat_mcp.state.directory import StateDirectory\n"
        "import goat_mcp.server.run\n"
        "state = StateDirectory(pathlib.Path(tempfile.mkdtemp()))\n"
        "gateway = Gateway(Settings(), approval=Approval.HOST, state=state)\n"
        "assert len(gateway.catalog.listing()) > 10\n"
        "print([name for name in sys.modules if name.startswith('goat_mcp.tools.')])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)

    assert done.stdout == "[]\n"


@pytest.mark.anyio
async def test_a_call_loads_them(tmp_path: Path) -> None:
    gateway = gateway_in(tmp_path)
    (tmp_path / "ws" / "a.txt").write_text("hello\n")

    result = await gateway.call("Read", {"file_path": "@/a.txt"}, ToolContext(call_id="c"))

    assert result.text == "1\thello"
    assert [type(gateway.builtin(tool.contract.name)) for tool in TOOL_CLASSES] == list(TOOL_CLASSES)
