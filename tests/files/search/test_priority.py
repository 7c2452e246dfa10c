"""The order of Grep's results with `rank: priority`: goa's tiers, and what a `search_priority.json` makes of them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.files.search.engine import SearchEngine
from goat_mcp.files.search.priority import SearchPriority
from goat_mcp.files.search.ripgrep import Ripgrep, find_ripgrep
from goat_mcp.files.workspace import Workspace
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.tools.grep import Grep

pytestmark = pytest.mark.anyio

FILES = ("photo.svg", "readme.md", "settings.json", "types.d.ts", "what.xyz", "main.py")
BUILT_IN = ["main.py", "types.d.ts", "settings.json", "readme.md", "what.xyz", "photo.svg"]


def order(given: Any, folder: Path) -> list[str]:
    """The files in the order that a `search_priority.json` with this content gives."""
    file = folder / "search_priority.json"
    file.write_text(given if isinstance(given, str) else json.dumps(given))
    found = SearchPriority((file,)).order()
    assert found.problem == ""
    return sorted(FILES, key=lambda name: (found.tier(f"./below/{name}"), name))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, BUILT_IN),
        ({".md": 0}, ["main.py", "readme.md", "types.d.ts", "settings.json", "what.xyz", "photo.svg"]),
        ({"*.SVG": 1, "xyz": 4}, ["main.py", "types.d.ts", "photo.svg", "settings.json", "readme.md", "what.xyz"]),
        ({"d.ts": 2}, ["main.py", "settings.json", "readme.md", "types.d.ts", "what.xyz", "photo.svg"]),
        ([["xyz"], [".svg", "md"]], ["what.xyz", "photo.svg", "readme.md", "main.py", "types.d.ts", "settings.json"]),
        ({"tiers": [["json"]]}, ["settings.json", "main.py", "types.d.ts", "readme.md", "what.xyz", "photo.svg"]),
        ({"2": ["py"], "1": ["md"]}, ["readme.md", "main.py", "types.d.ts", "settings.json", "what.xyz", "photo.svg"]),
        (
            {"docs": ["md"], "code": ["py"]},
            ["readme.md", "main.py", "types.d.ts", "settings.json", "what.xyz", "photo.svg"],
        ),
        ([["py"], ["py", "md"]], ["main.py", "readme.md", "types.d.ts", "settings.json", "what.xyz", "photo.svg"]),
    ],
)
async def test_a_users_file_moves_kinds_or_says_what_comes_first(
    tmp_path: Path, given: Any, expected: list[str]
) -> None:
    assert order(given, tmp_path) == expected


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("{", "is no JSON (Expecting"),
        ("[" * 100_000, "is no JSON ("),
        ("\xff\xfe", "is no JSON ("),
        ("3", "wants tiers by extension, or lists of extensions; got 3"),
        ('{"py": "first"}', "'py' wants a tier from 0 to 1000; got \"first\""),
        ('{"py": true}', "'py' wants a tier from 0 to 1000; got true"),
        ('{"py": -1}', "'py' wants a tier from 0 to 1000; got -1"),
        ('{"py": 0, "md": ["x"]}', "'md' wants a tier from 0 to 1000; got [\"x\"]"),
        ('[["py"], "md"]', 'tier 2 wants a list of extensions; got "md"'),
        ('[["py", 3]]', 'tier 1 wants a list of extensions; got ["py", 3]'),
        ('{"docs/": 1}', "'docs/' is no extension"),
        (" " * 1024 * 1024 + "{}", "is over 1 MB long"),
    ],
)
async def test_a_file_that_cannot_be_used_is_named_and_the_built_in_order_holds(
    tmp_path: Path, given: str, says: str
) -> None:
    file = tmp_path / "search_priority.json"
    file.write_bytes(given.encode("latin-1"))

    found = SearchPriority((file,)).order()

    assert found.problem.startswith(f"{file}: {says}")
    assert found.problem.endswith("; the built-in order holds")
    assert sorted(FILES, key=lambda name: (found.tier(name), name)) == BUILT_IN


@pytest.mark.posix_only("needs named pipes")
async def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "search_priority.json")

    assert "is no file" in SearchPriority((tmp_path / "search_priority.json",)).order().problem


async def test_a_change_counts_from_the_next_search_on_and_an_unchanged_file_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, goas = tmp_path / "ours.json", tmp_path / "goas.json"
    priority = SearchPriority((ours, goas))
    reads: list[Path] = []
    opened: Any = Path.open

    def counted(path: Path, *arguments: Any, **options: Any) -> Any:
        reads.append(path)
        return opened(path, *arguments, **options)

    tiers = [priority.order().tier("a.md")]
    goas.write_text('{"md": 0}')
    monkeypatch.setattr(Path, "open", counted)
    tiers += [priority.order().tier("a.md"), priority.order().tier("a.md")]
    monkeypatch.undo()
    ours.write_text('{"md": 4}')
    tiers.append(priority.order().tier("a.md"))
    ours.write_text('{"md": 1, "py": 0}')
    tiers.append(priority.order().tier("a.md"))
    ours.unlink()
    goas.unlink()
    tiers.append(priority.order().tier("a.md"))

    assert tiers == [2, 0, 0, 4, 1, 2]
    assert reads == [goas]


@pytest.mark.parametrize("place", [".config/goat-mcp", ".goa"])
async def test_grep_uses_the_file_of_goat_mcp_and_of_goa(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    (tmp_path / place).mkdir(parents=True)
    file = tmp_path / place / "search_priority.json"
    folder = tmp_path / "ws"
    folder.mkdir()
    (folder / "a.py").write_text("needle\n" * 3)
    (folder / "a.md").write_text("needle\n")
    served = Gateway(
        Settings.model_validate({"workspace": [folder]}),
        approval=Approval.HOST,
        state=StateDirectory(tmp_path / "state"),
    )
    grep = {"pattern": "needle", "rank": "priority"}

    file.write_text('[["md"]]')
    by_file = await served.call("Grep", grep, ToolContext(call_id="c"))
    file.write_text('[["md"]')
    broken = await served.call("Grep", grep, ToolContext(call_id="c"))

    (problem,) = served.problems()
    assert (problem["name"], problem["reason_code"]) == ("search_priority.json", "unusable_file")
    assert f"[{problem['detail']}]" == broken.text.split("\n")[-1]
    assert by_file.text.split("\n") == [f"{folder}/a.md", f"{folder}/a.py"]
    assert broken.text.split("\n")[:2] == [f"{folder}/a.py", f"{folder}/a.md"]
    assert broken.text.split("\n")[-1].startswith(f"[{file}: is no JSON (")


async def test_without_rank_a_broken_file_is_no_ones_concern(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "a.py").write_text("needle\n")
    grep = Grep(Workspace(tmp_path), SearchEngine(), priority=SearchPriority((tmp_path / "broken.json",)))

    result = await grep.execute(grep.validate({"pattern": "needle"}), ToolContext(call_id="c"))

    assert result.text == f"{tmp_path}/a.py"


@pytest.mark.skipif(find_ripgrep() is None, reason="ripgrep is not installed")
async def test_search_threads_are_ripgreps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[int] = []

    class Watched(Ripgrep):
        def __init__(self, program: str, threads: int) -> None:
            used.append(threads)
            super().__init__(program, threads)

    monkeypatch.setattr("goat_mcp.files.search.engine.Ripgrep", Watched)
    (tmp_path / "a.py").write_text("needle\n")
    settings = Settings.model_validate({"workspace": [tmp_path], "search": {"threads": 3}})
    served = Gateway(settings, approval=Approval.HOST, state=StateDirectory(tmp_path / "state"))

    result = await served.call("Grep", {"pattern": "needle"}, ToolContext(call_id="c"))

    assert result.text == f"{tmp_path}/a.py"
    assert used == [3]
