"""The hooks on the page run and do what the page says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from goat_mcp.calls.hooks.runner import Programs
from goat_mcp.calls.hooks.stages import PreToolUse
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.embed import open_tools
from tests.calls.hooks.programs import own, programs
from tests.docs.test_documents import ROOT, blocks
from tests.tool_doubles import spec

pytestmark = pytest.mark.anyio

PAGE = ROOT / "docs" / "hooks.md"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ws").mkdir()
    monkeypatch.chdir(tmp_path / "ws")
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "ws"


def on_the_page(folder: Path, name: str) -> str:
    """A script of the page, as a file that can be run."""
    (source,) = (block for block in blocks(PAGE, "bash") if f"# {name}\n" in block)
    path = folder / name
    path.write_text(source)
    path.chmod(0o700)
    return str(path)


async def test_the_settings_on_the_page_run_the_script_on_the_page(here: Path) -> None:
    settings: dict[str, Any] = yaml.safe_load(blocks(PAGE, "yaml")[0])
    pre = settings["hooks"]["PreToolUse"][0]["hooks"][0]
    pre["command"] = [on_the_page(here.parent, Path(pre["command"][0]).name)]
    del settings["hooks"]["PostToolUse"]

    async with open_tools({"workspace": [str(here)], "mode": "bypassPermissions", **settings}) as tools:
        refused = await tools.call("Bash", {"command": "git push --force"})
        other = await tools.call("Bash", {"command": "echo push --force"})

    assert refused.text.splitlines()[0] == "Nobody force-pushes here. Push to a new branch."
    assert "push --force" in other.text


async def test_a_call_that_the_script_on_the_page_wants_asked_is_asked_about(here: Path) -> None:
    hooks = {"PreToolUse": [{"hooks": [{"command": [on_the_page(here.parent, "ask.sh")]}]}]}
    asked: list[Form] = []

    async def person(form: Form) -> Answer:
        asked.append(form)
        return Answer(Reply.DECLINED)

    async with open_tools({"workspace": [str(here)], "hooks": hooks}, ask=person) as tools:
        result = await tools.call("Glob", {"pattern": "*"})

    assert result.error_code == "E_PERMISSION"
    assert "production is frozen" in asked[0].message


async def test_a_hook_reads_what_the_page_shows(here: Path) -> None:
    (shown,) = [json.loads(block) for block in blocks(PAGE, "json")]
    given: list[dict[str, Any]] = []

    class Recorded(Programs):
        async def ask(self, hook: Any, data: Any, *, timeout_s: float | None = None) -> Any:
            given.append(data)
            return await super().ask(hook, data, timeout_s=timeout_s)

    real = programs(here, own(("/bin/true",)))
    recorded = Recorded(real.hooks, real.runner, real.facts, real.matches_rule, real.warn)
    verdict = await recorded.before(spec("Bash"), shown["tool_input"], ToolContext(call_id=shown["tool_use_id"]))

    assert isinstance(verdict, PreToolUse)
    assert given == [{**shown, "session_id": "local", "cwd": "/project"}]


async def test_the_function_on_the_page_refuses(here: Path) -> None:
    (source,) = blocks(PAGE, "python")
    names: dict[str, Any] = {}
    exec(source, names)

    assert "Nobody force-pushes here." in await names["push"]("git push --force")
    assert "hello" in await names["push"]("echo hello")


def test_the_file_on_the_page_is_one_a_user_has() -> None:
    assert yaml.safe_load(blocks(PAGE, "yaml")[1]) == {"claude_settings": ["~/.claude/settings.json"]}
