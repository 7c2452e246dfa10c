"""Scripts that want out of the sandbox, or more than they may have. Each ends in an error, and the server goes on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import anyio
import anyio.to_thread
import psutil
import pytest

from goat_mcp.core.context import ToolContext
from goat_mcp.core.result import text_result
from goat_mcp.core.rights import Rights
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.processes.computing import script_sandbox
from tests.tool_doubles import FakeTool, fake, spec
from tests.tools.script_gateway import CALLER, Scripts, scripts

pytestmark = pytest.mark.anyio
SMALL = {"timeout_s": 1, "memory_mb": 16}


def worker() -> psutil.Process | None:
    """The worker of a script that runs now."""
    running = [child for child in psutil.Process().children(recursive=True) if _is_worker(child)]
    assert len(running) <= 1
    return running[0] if running else None


def _is_worker(process: psutil.Process) -> bool:
    try:
        return process.name() == "monty" and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:  # it has ended meanwhile
        return False


async def goes_on(s: Scripts) -> bool:
    return await s.text("1 + 1") == "2" and worker() is None


@pytest.mark.parametrize(
    "script",
    [
        "().__class__.__bases__[0].__subclasses__()",
        "''.__class__.__mro__",
        "echo.__globals__",
        "echo.__code__",
        "(lambda: 0).__globals__",
        "(lambda: 0).__code__.co_consts",
        "getattr(echo, '__globals__')",
        "'{0.__class__.__init__.__globals__}'.format(echo)",
        "f'{echo.__self__}'",
        "class A:\n    pass\nA().__class__.__base__.__subclasses__()",
        "try:\n    1 / 0\nexcept Exception as e:\n    e.__traceback__.tb_frame.f_globals",
        "async def f():\n    pass\nf().cr_frame.f_back",
        "__import__('os').system('id')",
        "__builtins__['open']('/etc/passwd')",
        "import subprocess",
        "import socket",
        "import ctypes",
        "import builtins",
        "import importlib",
        "import os\nos.system('id')",
        "import os\nos.environ['HOME']",
        "import os\nos.getenv('HOME')",
        "import os\nos.listdir('/')",
        "import sys\nsys.modules['os']",
        "import pathlib\npathlib.Path('/etc/passwd').read_text()",
        "open('/etc/passwd').read()",
        "open('/tmp/x', 'w').write('x')",
        "eval('__import__(\"os\")')",
        "exec('import subprocess')",
        "compile('1', 'x', 'eval')",
    ],
)
async def test_nothing_but_tools_is_reached(tmp_path: Path, script: str) -> None:
    async with scripts(tmp_path, fake("echo"), code=SMALL) as s:
        text = await s.failure(script)

        assert await goes_on(s)
    assert "root:" not in text
    assert os.environ["HOME"] not in text


@pytest.mark.parametrize(
    ("script", "code"),
    [
        ("while True:\n    pass", "E_TIMEOUT"),
        ("sum(range(10**12))", "E_TIMEOUT"),
        ("import time\ntime.sleep(1000)", "E_TIMEOUT"),
        ("import asyncio\nwhile True:\n    await asyncio.sleep(1)", "E_TIMEOUT"),
        (
            "while True:\n    try:\n        while True:\n            pass\n    except BaseException:\n        pass",
            "E_TIMEOUT",
        ),
        ("kept = []\nwhile True:\n    kept.append('a' * 1000)", "E_TOO_LARGE"),
        ("'a' * 10**10", "E_TOO_LARGE"),
        ("[0] * 10**10", "E_TOO_LARGE"),
        ("list(range(10**9))", "E_TOO_LARGE"),
        ("'{:>10000000000}'.format(1)", "E_TOO_LARGE"),
        ("10 ** 10**8", "E_TOO_LARGE"),
        ("n = 10\nwhile True:\n    n = n * n", ("E_TIMEOUT", "E_TOO_LARGE")),
        ("while True:\n    print('x' * 1000)", "E_TOO_LARGE"),
        ("def f():\n    return f()\nf()", "RecursionError"),
        ("9 ** 99999", "E_TOOL"),
        ("deep = []\nfor _ in range(100000):\n    deep = [deep]\ndeep", "E_TOOL"),
        ("import re\nre.match('(a+)+$', 'a' * 5000 + 'b')\n1 / 0", ("E_TIMEOUT", "E_TOOL")),
    ],
)
async def test_what_takes_too_much_ends(tmp_path: Path, script: str, code: str | tuple[str, ...]) -> None:
    async with scripts(tmp_path, code=SMALL) as s:
        with anyio.fail_after(30):
            text = await s.failure(script)

        assert any(one in text for one in ((code,) if isinstance(code, str) else code)), text
        assert len(text) < 40_000
        assert await goes_on(s)


async def test_ten_thousand_calls_in_a_loop_are_max_calls(tmp_path: Path) -> None:
    echo = fake("echo")
    async with scripts(tmp_path, echo, code={"max_calls": 50}) as s:
        text = await s.failure("for n in range(10_000):\n    await echo(n=n)")
        stubborn = await s.failure(
            "for n in range(10_000):\n    try:\n        await echo(n=n)\n    except Exception:\n        pass"
        )
        assert await goes_on(s)

    assert "E_TOO_LARGE: a script makes 50 calls at most (code.max_calls)" in text
    assert "limit" in stubborn  # it is ended, and cannot catch that
    assert len(echo.calls) == 100


async def test_ten_thousand_calls_at_once_are_max_calls(tmp_path: Path) -> None:
    echo = fake("echo")
    async with scripts(tmp_path, echo, code={"max_calls": 50}) as s:
        await s.failure("import asyncio\nawait asyncio.gather(*[echo(n=n) for n in range(10_000)])")
        assert await goes_on(s)
        made = len(echo.calls)
        one = "async def one(n):\n    try:\n        await echo(n=n)\n    except RuntimeError:\n        pass\n"
        await s.run(f"import asyncio\n{one}await asyncio.gather(*[one(n) for n in range(1_000)])")

    assert made <= 50
    assert len(echo.calls) - made == 50


@pytest.mark.parametrize(
    "script",
    [
        "s = 'x' * 1_000_000\n[s] * 1_000",
        "s = 'x' * 1_000_000\n[s] * 20",
        "s = 'x' * 1_000_000\nawait echo(a=[s] * 1_000)",
        "s = 'x' * 1_000_000\nawait echo(a=[s] * 20)",
        "a = ['x' * 1_000]\nfor _ in range(30):\n    a = [a, a]\na",
        "s = 'x' * 1_000_000\nraise ValueError(s * 20)",
    ],
)
async def test_what_is_huge_is_refused_in_the_sandbox_and_does_not_reach_the_server(
    tmp_path: Path, script: str
) -> None:
    echo = fake("echo")
    server = psutil.Process()
    async with scripts(tmp_path, echo) as s:
        before = server.memory_info().rss
        with anyio.fail_after(30):
            text = await s.failure(script)
        grown = server.memory_info().rss - before

        assert await goes_on(s)
    assert len(text) < 40_000 and echo.calls == []
    assert "E_TOO_LARGE" in text or "ValueError" in text
    assert grown < 200_000_000


async def test_no_more_scripts_run_at_a_time_than_may(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script_sandbox, "AT_A_TIME", 1)
    texts: list[str] = []
    async with scripts(tmp_path) as s:

        async def one() -> None:
            texts.append((await s.run("import asyncio\nawait asyncio.sleep(0.5)\n'ran'")).text)

        async with anyio.create_task_group() as group:
            group.start_soon(one)
            group.start_soon(one)
        assert await goes_on(s)

    assert sorted(text.splitlines()[0] for text in texts) == ["1 scripts are running", "ran"]


async def test_a_denied_tool_is_denied_in_a_script_too(tmp_path: Path) -> None:
    echo = fake("mcp__it__echo")
    async with scripts(tmp_path, echo, permissions={"deny": ["mcp__it__echo"]}) as s:
        text = await s.failure("await mcp__it__echo()")

    assert "E_PERMISSION" in text
    assert echo.calls == []


async def test_a_rule_about_arguments_sees_those_that_the_script_has_computed(tmp_path: Path) -> None:
    async with scripts(tmp_path, permissions={"deny": ["Bash(rm *)"], "allow": ["Bash(echo *)"]}) as s:
        text = await s.failure("command = 'r' + 'm -rf x'\nawait Bash(command=command)")

    assert "E_PERMISSION" in text


async def test_a_tool_that_the_profile_hides_is_no_function(tmp_path: Path) -> None:
    echo = fake("mcp__it__echo")
    profiles = {"narrow": {"tools": {"deny": ["mcp__it__echo"]}}}
    ctx = ToolContext(call_id="c", rights=Rights(profiles=("narrow",)))
    async with scripts(tmp_path, echo, profiles=profiles) as s:
        assert "NameError" in await s.failure("await mcp__it__echo()", ctx)
        assert await s.text("await mcp__it__echo()") == "done"


async def test_a_tool_outside_the_rights_of_an_agent_is_no_function(tmp_path: Path) -> None:
    ctx = ToolContext(call_id="c", rights=Rights(allowed=frozenset({"run_script", "other"}), depth=1))
    async with scripts(tmp_path, fake("echo"), fake("other")) as s:
        assert "NameError" in await s.failure("await echo()", ctx)
        assert await s.text("await other()", ctx) == "done"


@pytest.mark.parametrize("name", ["run_script", "call_tool", "call_tool_readonly", "search_tools", "describe_tool"])
async def test_a_script_starts_no_script_and_calls_no_meta_tool(tmp_path: Path, name: str) -> None:
    async with scripts(tmp_path, catalog={"toolsets": ["code"], "mode": "search"}) as s:
        assert "NameError" in await s.failure(f"await {name}(name='Read', arguments={{}}, script='1', query='x')")


async def test_a_result_that_is_code_stays_data(tmp_path: Path) -> None:
    hostile = "__import__('os').system('touch x')\nawait changes()"
    changes = fake("changes")
    async with scripts(tmp_path, FakeTool(spec("reads"), text_result(hostile)), changes) as s:
        text = await s.text("text = await reads()\nprint(f'{text}')\ntext")

    assert text == f"{hostile}\n{hostile}"
    assert changes.calls == []


async def test_what_is_no_json_goes_to_no_tool(tmp_path: Path) -> None:
    echo = fake("echo")
    async with scripts(tmp_path, echo) as s:
        for value in ("{1, 2}", "b'x'", "10 ** 5000", "float", "float('nan')"):
            text = await s.failure(f"await echo(value={value})")
            assert "RuntimeError: E_INPUT" in text or "E_TOOL" in text, text

    assert echo.calls == []


async def test_arguments_have_a_size(tmp_path: Path) -> None:
    echo = fake("echo")
    async with scripts(tmp_path, echo) as s:
        assert "E_TOO_LARGE" in await s.failure("await echo(value='x' * 5_000_000)")

    assert echo.calls == []


async def test_each_call_is_on_record_with_its_own_name(tmp_path: Path) -> None:
    async with scripts(tmp_path, fake("echo")) as s:
        await s.text("await echo(n=1)\nawait echo(n=2)")
        calls = s.gateway.services.calls
        assert calls is not None
        recorded = [call["tool"] for call in calls.newest_first(CALLER.principal)]

    assert sorted(recorded) == ["echo", "echo", "run_script"]


async def test_a_worker_that_is_killed_ends_its_script_and_no_other(tmp_path: Path) -> None:
    waits = FakeTool(spec("waits"), text_result("done"), release=anyio.Event())
    async with scripts(tmp_path, waits) as s, anyio.create_task_group() as group:
        ended = anyio.Event()

        async def run() -> None:
            text = await s.failure("print('begun')\nawait waits()")
            assert "the script's worker process died" in text
            ended.set()

        group.start_soon(run)
        await waits.started.wait()
        running = worker()
        assert running is not None
        running.send_signal(signal.SIGKILL)
        assert waits.release is not None
        waits.release.set()
        with anyio.fail_after(10):
            await ended.wait()
        assert await goes_on(s)


async def test_a_client_that_cancels_ends_the_worker_and_the_calls(tmp_path: Path) -> None:
    waits = FakeTool(spec("waits", SideEffect.NONE), text_result("done"), release=anyio.Event())
    running: psutil.Process | None = None
    async with scripts(tmp_path, waits) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(s.run, "await waits()")
            await waits.started.wait()
            running = worker()
            group.cancel_scope.cancel()

        assert running is not None
        with anyio.fail_after(10):
            await anyio.to_thread.run_sync(running.wait, 10)
        assert s.gateway.pipeline.slots.running() == 0
        assert waits.release is not None
        waits.release.set()
        assert await goes_on(s)


async def test_a_client_that_cancels_ends_a_script_that_computes(tmp_path: Path) -> None:
    begun = fake("begun")
    running: psutil.Process | None = None
    async with scripts(tmp_path, begun) as s:
        async with anyio.create_task_group() as group:
            group.start_soon(s.run, "await begun()\nwhile True:\n    pass")
            await begun.started.wait()
            running = worker()
            group.cancel_scope.cancel()

        assert running is not None
        with anyio.fail_after(10):
            await anyio.to_thread.run_sync(running.wait, 10)
        assert await goes_on(s)
