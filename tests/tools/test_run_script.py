"""run_script: what a script sees of tools, and what the model sees of it."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult, text_block, text_result
from goat_mcp.processes.computing import script_text
from tests.tool_doubles import FakeTool, spec
from tests.tools.script_gateway import scripts

pytestmark = pytest.mark.anyio


def tool(name: str, answer: ToolResult | Exception | None = None, **more: Any) -> FakeTool:
    return FakeTool(spec(name), answer or text_result("done"), **more)


async def test_what_is_printed_and_the_last_value_come_back(tmp_path: Path) -> None:
    async with scripts(tmp_path) as s:
        result = await s.run("print('one', 2)\n{'a': [1, None, True]}")

    assert result.text == 'one 2\n{"a": [1, null, true]}'
    assert result.facts == {"calls": 0}


async def test_a_tool_is_a_function_with_named_arguments(tmp_path: Path) -> None:
    echo = tool("echo", text_result("hello"))
    async with scripts(tmp_path, echo) as s:
        text = await s.text("(await echo(a=1, b={'c': [2]})).upper()")
        positional = await s.failure("await echo(1)")

    assert text == "HELLO"
    assert echo.calls == [{"a": 1, "b": {"c": [2]}}]
    assert "named arguments only" in positional


async def test_a_built_in_tool_reads_a_file_of_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "numbers.txt").write_text("one\ntwo\n")
    async with scripts(tmp_path) as s:
        text = await s.text(f"'two' in await Read(file_path={str(tmp_path / 'numbers.txt')!r})")

    assert text == "true"


async def test_a_result_is_its_structured_content_else_its_json_text_else_its_text(tmp_path: Path) -> None:
    structured = tool("structured", ToolResult(content=(text_block("x"),), structured={"n": 1}))
    as_json = tool("as_json", text_result('[1, {"n": 2}]'))
    plain = tool("plain", text_result("[not json"))
    number = tool("number", text_result("12"))
    async with scripts(tmp_path, structured, as_json, plain, number) as s:
        text = await s.text("[await structured(), await as_json(), await plain(), await number()]")

    assert json.loads(text) == [{"n": 1}, [1, {"n": 2}], "[not json", "12"]


async def test_a_failed_call_raises_with_its_code_and_the_script_can_catch_it(tmp_path: Path) -> None:
    broken = tool("broken", ToolError(ErrorCode.NOT_FOUND, "no such thing", "Look elsewhere."))
    async with scripts(tmp_path, broken) as s:
        caught = await s.text("try:\n    await broken()\nexcept RuntimeError as error:\n    print(error)")
        failed = await s.failure("x = 1\nprint('before')\nawait broken()")

    assert caught == "E_NOT_FOUND: no such thing\nLook elsewhere."
    assert failed.startswith("before\n")
    assert "line 3: RuntimeError: E_NOT_FOUND: no such thing" in failed
    assert failed.endswith("[E_TOOL]")


async def test_calls_run_side_by_side_with_gather(tmp_path: Path) -> None:
    release = anyio.Event()
    one, two = tool("one", release=release), tool("two", release=release)
    async with scripts(tmp_path, one, two) as s, anyio.create_task_group() as group:

        async def run() -> None:
            assert await s.text("import asyncio\nawait asyncio.gather(one(), two())") == '["done", "done"]'

        group.start_soon(run)
        with anyio.fail_after(10):
            await one.started.wait()
            await two.started.wait()  # while the first one still runs
        release.set()


async def test_more_calls_at_once_than_the_limiter_takes_are_all_made(tmp_path: Path) -> None:
    many = tool("many")
    async with scripts(tmp_path, many) as s:
        text = await s.text("import asyncio\nlen(await asyncio.gather(*[many(n=n) for n in range(300)]))")

    assert text == "300"
    assert len(many.calls) == 300


async def test_a_name_that_python_does_not_take_is_made_one_that_it_does(tmp_path: Path) -> None:
    dashed, clash, word = tool("get-it"), tool("get_it"), tool("import")
    async with scripts(tmp_path, dashed, clash, word) as s:
        await s.text("await get_it(n=1)\nawait get_it_2(n=2)\nawait import_(n=3)")

    assert (clash.calls, dashed.calls, word.calls) == ([{"n": 1}], [{"n": 2}], [{"n": 3}])


async def test_a_result_that_a_model_would_find_cut_is_whole_in_a_script(tmp_path: Path) -> None:
    async with scripts(tmp_path, tool("long", text_result("x" * 200_000))) as s:
        assert await s.text("len(await long())") == "200000"
        shown = await s.text("await long()")

    assert len(shown) < 40_000  # as any result


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("x = 1\ndef f(:\n", "line 2: SyntaxError"),
        ("def f():\n    return 1 / 0\n\nf()\n", "line 2: ZeroDivisionError: division by zero"),
        ("nothing_of_this_name()", "line 1: NameError: name 'nothing_of_this_name' is not defined"),
    ],
)
async def test_an_error_says_its_line_and_nothing_of_the_host(tmp_path: Path, script: str, says: str) -> None:
    async with scripts(tmp_path) as s:
        text = await s.failure(script)

    assert says in text
    assert "goat_mcp" not in text
    assert "Traceback" not in text


async def test_it_is_off_until_somebody_names_it(tmp_path: Path) -> None:
    async with scripts(tmp_path, catalog={}) as s:
        text = await s.failure("1")

    assert "is not in this client's catalog" in text


async def test_without_the_extra_it_says_how_to_install_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydantic_monty", None)
    async with scripts(tmp_path) as s:
        text = await s.failure("1")

    assert "pip install 'goat-mcp[code]'" in text
    assert text.endswith("[E_NOT_CONFIGURED]")


async def test_a_call_that_the_script_did_not_wait_for_ends_with_it(tmp_path: Path) -> None:
    endless = tool("endless", release=anyio.Event())
    async with scripts(tmp_path, endless, tool("quick")) as s:
        with anyio.fail_after(10):
            assert await s.text("endless()\nawait quick()\n5") == "5"
        assert s.gateway.pipeline.slots.running() == 0


async def test_sleep_takes_as_long_as_it_says(tmp_path: Path) -> None:
    async with scripts(tmp_path, code={"timeout_s": 2}) as s:
        began_s = time.monotonic()
        await s.text("import asyncio\nawait asyncio.sleep(1.5)")

    assert time.monotonic() - began_s >= 1.5


async def test_a_memory_error_of_the_scripts_own_is_no_limit(tmp_path: Path) -> None:
    async with scripts(tmp_path) as s:
        assert "line 1: MemoryError: mine" in await s.failure("raise MemoryError('mine')")


async def test_a_script_that_only_the_sandbox_can_read_runs_and_says_that_its_value_is_not_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(script: str) -> None:
        raise SyntaxError(script)

    monkeypatch.setattr(script_text.ast, "parse", unreadable)
    async with scripts(tmp_path) as s:
        text = await s.text("print(1)\n2")

    assert text.startswith("1") and "its last value is not shown" in text


@pytest.mark.parametrize(
    ("script", "shown"),
    [
        ("1, 2", "[1, 2]"),
        ("x = 3; x", "3"),
        ("'é' + 'ü'  # ends with a comment", "éü"),
        ("(\n    1\n    + 2\n)", "3"),
        ("[(a := 2), a]", "[2, 2]"),
        ('"""of two\nlines"""', "of two\nlines"),
        ("{1, 2} == {2, 1}", "true"),
        ("{1}", "{1}"),
        ("x = 1", "(the script printed nothing and has no last value)"),
        ("# nothing", "(the script printed nothing and has no last value)"),
    ],
)
async def test_the_last_value_is_shown_whatever_stands_around_it(tmp_path: Path, script: str, shown: str) -> None:
    async with scripts(tmp_path) as s:
        assert await s.text(script) == shown
