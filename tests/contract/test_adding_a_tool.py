"""A tool is added by the steps of CONTRIBUTING.md, "Adding a tool", and by nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDED = (
    "goat_mcp",
    "scripts",
    "manifests",
    "docs",
    "README.md",
    "pyproject.toml",
    "tests/__init__.py",
    "tests/contract",
    "tests/agents",
    "tests/web",
)
TOOL = '''"""Greet: say hello."""

from __future__ import annotations

from dataclasses import dataclass

from goat_mcp.core.arguments import ToolInput
from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolExample
from goat_mcp.core.tool import BuiltinTool


class GreetInput(ToolInput):
    name: str


@dataclass(frozen=True)
class Greet(BuiltinTool[GreetInput], side_effect=SideEffect.READ_ONLY, toolset="core"):
    """Say hello to somebody."""

    examples = (ToolExample("Greet Ada", {"name": "Ada"}, "Hello, Ada!"),)

    async def execute(self, input: GreetInput, ctx: ToolContext) -> ToolResult:
        return text_result(f"Hello, {input.name}!")
'''
PAGE = "Greets one person by name.\n\n## What comes back\n\nOne line.\n"
BUILDERS = Path("goat_mcp/gateway/build/builtin_tools.py")


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of this repository to which the tool Greet was added."""
    copy = tmp_path_factory.mktemp("added") / "copy"
    for name in NEEDED:
        target = copy / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, target)  # with what is compiled already
        else:
            shutil.copy(ROOT / name, target)
    # The steps; the fourth file would be the tool's test.
    (copy / "goat_mcp/tools/greet.py").write_text(TOOL)
    (copy / "goat_mcp/tools/docs/Greet.md").write_text(PAGE)
    builders = (copy / BUILDERS).read_text()
    imported = "from goat_mcp.tools.grep import Grep\n"
    last = "    TeamDelete: lambda s, parts: TeamDelete(parts.teams),\n"
    assert builders.count(imported) == builders.count(last) == 1
    builders = builders.replace(imported, f"from goat_mcp.tools.greet import Greet\n{imported}")
    (copy / BUILDERS).write_text(builders.replace(last, f"{last}    Greet: lambda s, parts: Greet(),\n"))
    run(copy, copy, "scripts/generated_files.py")  # `make generated`
    return copy


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "ws"
    folder.mkdir()
    return folder


def run(package: Path, folder: Path, *words: str, code: int = 0) -> str:
    """What a fresh process of the copy prints."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(package),
        "HOME": str(folder),
        "XDG_STATE_HOME": str(folder / "state"),
    }
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == code, done.stderr
    return done.stdout or done.stderr


def test_it_is_listed_last_among_the_built_in_tools(package: Path, workspace: Path) -> None:
    listed = json.loads(run(package, workspace, "-m", "goat_mcp", "list", "--json"))

    assert listed["tools"][-1]["name"] == "Greet"


def test_it_can_be_called(package: Path, workspace: Path) -> None:
    assert "Hello, Ada!" in run(package, workspace, "-m", "goat_mcp", "call", "Greet", "name=Ada")


def test_a_rule_denies_it(package: Path, workspace: Path) -> None:
    (workspace / "goat-mcp.json").write_text(json.dumps({"permissions": {"deny": ["Greet"]}}))

    answer = run(package, workspace, "-m", "goat_mcp", "call", "--config", "goat-mcp.json", "Greet", "name=Ada", code=5)

    assert "Greet is denied by rule Greet" in answer and "E_PERMISSION" in answer


def test_flags_and_presets_know_it(package: Path, workspace: Path) -> None:
    without = json.loads(run(package, workspace, "-m", "goat_mcp", "list", "--json", "--disallowed-tool", "Greet"))
    only_reads = json.loads(run(package, workspace, "-m", "goat_mcp", "list", "--json", "--preset", "read_only"))

    assert "Greet" not in [tool["name"] for tool in without["tools"]]
    assert "Greet" in [tool["name"] for tool in only_reads["tools"]]


def test_it_has_a_page(package: Path, workspace: Path) -> None:
    page = run(package, workspace, "-m", "goat_mcp", "docs", "Greet")

    assert page.startswith("# Greet") and PAGE.strip() in page
    assert page == (package / "docs/tools/Greet.md").read_text()
