"""Extensions that packages bring: named in the settings, loaded then and not before, and harmless when they fail."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.spec import ToolExample
from goat_mcp.embed import open_tools
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import BrokenSettings, Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.tools.docs import document
from tests.calls.extensions.installed_package import install

pytestmark = pytest.mark.anyio

HEAD = "from goat_mcp.core.errors import ErrorCode, ToolError\nasync def extension(spec, arguments, ctx, call_next):\n"
MARK = """
from dataclasses import replace
from goat_mcp.core.result import text_block
def marking(word):
    async def extension(spec, arguments, ctx, call_next):
        result = await call_next(arguments)
        return replace(result, content=(*result.content, text_block(word)))
    return extension
inner, outer = marking("inner"), marking("outer")
"""


def opened(tmp_path: Path, *names: str, **settings: Any) -> Any:
    (tmp_path / "ws").mkdir(exist_ok=True)
    (tmp_path / "ws" / "a.txt").write_text("hay\n")
    tree: Mapping[str, Any] = {"workspace": [str(tmp_path / "ws")], "extensions": list(names), **settings}
    return open_tools(tree, state_directory=tmp_path / "state")


async def read(tools: Any, name: str = "a.txt") -> Any:
    return await tools.call("Read", {"file_path": f"@{name}"})


async def test_extensions_wrap_calls_in_the_order_they_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, {"in": "marks_x:inner", "out": "marks_x:outer"}, {"marks_x": MARK})

    async with opened(tmp_path, "out", "in") as tools:
        assert (await read(tools)).text == "1\thay\ninner\nouter"
    async with opened(tmp_path, "in", "out") as tools:
        assert (await read(tools)).text == "1\thay\nouter\ninner"


async def test_nothing_runs_because_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = f"from pathlib import Path\nPath({str(tmp_path)!r}, 'ran').touch()\n{HEAD}    return None\n"
    install(
        tmp_path,
        monkeypatch,
        {"noisy": "noisy_x:extension", "in": "marks_x:inner"},
        {"noisy_x": noisy, "marks_x": MARK},
    )

    async with opened(tmp_path, "in") as tools:
        await read(tools)

    assert (tmp_path / "ran").exists() is False
    assert "noisy_x" not in sys.modules


REFUSED: dict[str, tuple[str, str]] = {
    "raises": ("raise RuntimeError('no licence')", "cannot be loaded: RuntimeError: no licence"),
    "exits": ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
    "broken": ("def (", "cannot be loaded: SyntaxError"),
    "lacks it": ("x = 1", "cannot be loaded: AttributeError"),
    "a value": ("extension = 7", "is a int, not a function"),
    "a class": ("class extension: pass", "is a type, not a function"),
    "not async": ("def extension(spec, arguments, ctx, call_next): ...", "is not async"),
    "other arguments": ("async def extension(spec, arguments): ...", "does not take 4 arguments"),
}


@pytest.mark.parametrize("case", REFUSED)
async def test_one_that_cannot_be_used_stops_the_start_with_its_name(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, said = REFUSED[case]
    install(tmp_path, monkeypatch, {"guard": "guard_x:extension"}, {"guard_x": source})

    with pytest.raises(BrokenSettings) as stopped:
        async with opened(tmp_path, "guard"):
            pass

    assert stopped.value.message.startswith("extensions: 'guard' (guard_x:extension of my-extensions) ")
    assert said in stopped.value.message


async def test_an_unknown_name_is_told_with_those_that_are_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(tmp_path, monkeypatch, {"inner": "marks_x:inner", "outer": "marks_x:outer"}, {"marks_x": MARK})

    with pytest.raises(BrokenSettings) as stopped:
        async with opened(tmp_path, "iner"):
            pass

    assert stopped.value.message == (
        "extensions: 'iner' is not installed; did you mean inner?; installed are inner, outer"
    )


async def test_a_name_that_two_packages_claim_is_nobodys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {"in": "marks_x:inner"}, {"marks_x": MARK}, package="one")
    install(tmp_path, monkeypatch, {"in": "marks_y:inner"}, {"marks_y": MARK}, package="two")

    with pytest.raises(BrokenSettings, match="comes from several packages"):
        async with opened(tmp_path, "in"):
            pass


async def test_a_name_may_stand_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {"in": "marks_x:inner"}, {"marks_x": MARK})

    with pytest.raises(BrokenSettings, match="in is named twice"):
        async with opened(tmp_path, "in", "in"):
            pass


FAILURES = {
    "before": "    raise RuntimeError('secret detail')\n",
    "after": "    await call_next(arguments)\n    raise RuntimeError('secret detail')\n",
    "exit": "    raise SystemExit(3)\n",
    "no result": "    return None\n",
    "no arguments": "    return await call_next(None)\n",
}


@pytest.mark.parametrize("failure", FAILURES)
async def test_one_that_fails_in_a_call_is_named_and_harms_nothing_else(
    failure: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (
        HEAD + "    if '@b' not in str(arguments):\n        return await call_next(arguments)\n" + FAILURES[failure]
    )
    install(tmp_path, monkeypatch, {"guard": "guard_x:extension"}, {"guard_x": source})

    async with opened(tmp_path, "guard") as tools:
        failed = await read(tools, "b.txt")
        next_one = await read(tools)

    assert (failed.error_code, next_one.text) == ("E_INTERNAL", "1\thay")
    assert "secret detail" not in failed.text
    assert ("extension guard failed unexpectedly" in failed.text) == (failure != "no arguments")
    assert capsys.readouterr().err.count("call failed unexpectedly") == 1


async def test_what_a_tool_says_passes_through_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(
        tmp_path,
        monkeypatch,
        {"pass": "pass_x:extension"},
        {"pass_x": HEAD + "    return await call_next(arguments)\n"},
    )

    async with opened(tmp_path, "pass") as tools:
        with_it = await read(tools, "none.txt")
    async with opened(tmp_path) as tools:
        without = await read(tools, "none.txt")

    assert with_it == without
    assert with_it.error_code == "E_NOT_FOUND"


async def test_arguments_that_an_extension_rewrites_are_judged_like_any(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-PERM-3: extensions are outside validation and permission, so nothing they write passes by them."""
    source = HEAD + "    return await call_next({**arguments, 'file_path': '/etc/hostname'})\n"
    install(tmp_path, monkeypatch, {"away": "away_x:extension"}, {"away_x": source})

    async with opened(tmp_path, "away") as tools:
        result = await read(tools)

    assert result.error_code == "E_PATH_OUTSIDE"


DOCUMENTED = """
from goat_mcp.core.spec import ToolExample
class Extension:
    def register(self, tools):
        async def shout(ctx, arguments):
            return "HEY"
        tools.add("shout", "Shout.", shout, docs="Loud.", examples=[ToolExample("Once", {}, "HEY")])
"""


async def test_its_tools_have_a_long_text_and_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, monkeypatch, {"loud": "loud_x:Extension"}, {"loud_x": DOCUMENTED})

    gateway = Gateway(Settings(extensions=("loud",)), approval=Approval.HOST, state=StateDirectory(tmp_path / "state"))

    page = document(gateway.catalog.resolve("shout").spec)
    assert (page.long, page.examples) == ("Loud.", (ToolExample("Once", {}, "HEY"),))
    assert "Loud." not in str(gateway.catalog.listing())
