"""Users' Python handlers run in a process of their own: whatever they do, the caller gets a structured answer and the
server goes on. Source: Goondan, "Error handling philosophy"."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from goat_mcp.core.context import WAIT_LIMIT_S, ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.manifests.handler_process import HandlerProcess
from tests.manifests.declared import call, error_of, eventually, gateway_over, python

pytestmark = pytest.mark.anyio

ALL = "handlers = {name: value for name, value in globals().items() if callable(value)}"
GOOD = """
async def echo(ctx, input):
    return input
"""


def over(tmp_path: Path, source: str, *exports: str | Mapping[str, object], **spec: object) -> Gateway:
    python(tmp_path / "tools", "probe", f"{GOOD}{source}\n{ALL}", "echo", *exports, **spec)
    return gateway_over(tmp_path, tmp_path / "tools")


async def test_a_handler_gets_its_input_and_gives_back_json(tmp_path: Path) -> None:
    gateway = over(tmp_path, "")

    async with gateway.running():
        result = await call(gateway, "probe__echo", city="Pärís", days=[1, 2.5, None])

    assert result.wire()["structuredContent"] == {"city": "Pärís", "days": [1, 2.5, None]}
    assert result.text == '{"city": "Pärís", "days": [1, 2.5, null]}'


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("'plain'", "plain", {"result": "plain"}),
        ("[1, 2]", "[1, 2]", {"result": [1, 2]}),
        ("None", "null", {"result": None}),
        ("{}", "{}", {}),
    ],
)
async def test_what_is_no_object_is_wrapped_in_one_for_programs(
    tmp_path: Path, value: str, text: str, structured: object
) -> None:
    gateway = over(tmp_path, f"async def give(ctx, input):\n    return {value}", "give")

    async with gateway.running():
        result = await call(gateway, "probe__give")

    assert (result.text, result.wire()["structuredContent"]) == (text, structured)


async def test_the_context_has_what_a_tool_needs_and_no_more(tmp_path: Path) -> None:
    source = """
async def context(ctx, input):
    return {"workdir": ctx.workdir, "id": ctx.tool_call_id == ctx.toolCallId, "message": ctx.message,
            "config": ctx.config, "runtime": ctx.runtime is not None, "can_log": ctx.logger.info("hello")}
"""
    python(tmp_path / "tools", "probe", f"{source}\nhandlers = {{'context': context}}", "context")
    gateway = gateway_over(tmp_path, tmp_path / "tools", tools={"probe": {"unit": "C"}})

    async with gateway.running():
        result = await call(gateway, "probe__context")

    assert result.structured == {
        "workdir": str(tmp_path / "workspace"),
        "id": True,
        "message": None,
        "config": {"unit": "C"},
        "runtime": result.structured["runtime"],
        "can_log": None,
    }


async def test_a_plain_function_is_a_handler_too(tmp_path: Path) -> None:
    gateway = over(tmp_path, "def plain(ctx, input):\n    return 7", "plain")

    async with gateway.running():
        assert (await call(gateway, "probe__plain")).text == "7"


@pytest.mark.parametrize(
    "given",
    ["partial(echo)", "partial(plain)", "Kept()", "Kept().method", "lambda ctx, input: echo(ctx, input)"],
)
async def test_whatever_can_be_called_with_the_context_and_the_input_is_a_handler(tmp_path: Path, given: str) -> None:
    source = f"""
from functools import partial
def plain(ctx, input):
    return input
class Kept:
    async def __call__(self, ctx, input):
        return input
    async def method(self, ctx, input):
        return input
{GOOD}
handlers = {{"any": {given}}}
"""
    python(tmp_path / "tools", "probe", source, "any")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        result = await call(gateway, "probe__any", a=1)

    assert result.wire()["structuredContent"] == {"a": 1}, result.text


async def test_an_exception_is_an_error_with_its_own_name_words_and_suggestion(tmp_path: Path) -> None:
    source = """
class CityUnknown(Exception):
    suggestion = "Ask for a city of the list."
    help_url = "https://example.org/cities"

async def fail(ctx, input):
    raise CityUnknown("no such city: " + input["city"])
"""
    gateway = over(tmp_path, source, "fail")

    async with gateway.running():
        result = await call(gateway, "probe__fail", city="Atlantis")

    assert error_of(result) == {
        "code": "E_TOOL",
        "name": "CityUnknown",
        "message": "no such city: Atlantis",
        "suggestion": "Ask for a city of the list.",
        "helpUrl": "https://example.org/cities",
    }
    assert result.text == "no such city: Atlantis\nAsk for a city of the list.\n[E_TOOL]"


async def test_a_long_message_is_cut_at_the_limit_of_the_manifest(tmp_path: Path) -> None:
    source = "async def fail(ctx, input):\n    raise ValueError('x' * 50_000)"
    gateway = over(tmp_path, source, "fail", errorMessageLimit=200)

    async with gateway.running():
        error = error_of(await call(gateway, "probe__fail"))

    assert len(error["message"]) == 200
    assert "characters cut" in error["message"]


BREAKS = {
    "exits": ("import sys\n    sys.exit(3)", "SystemExit"),
    "ends its process": ("import os\n    os._exit(3)", "ProcessEnded"),
    "is killed": ("import os, signal\n    os.kill(os.getpid(), signal.SIGKILL)", "ProcessEnded"),
    "gives back a set": ("return {1, 2}", "NotJson"),
    "gives back NaN": ("return float('nan')", "NotJson"),
    "gives back itself": ("a = []; a.append(a)\n    return a", "NotJson"),
    "gives back a coroutine's function": ("return wild", "NotJson"),
    "recurses": ("return await wild(ctx, input)", "RecursionError"),
    "eats memory": ("return len(bytearray(64 * 1024 ** 3))", "MemoryError"),
    "raises what has no words": ("raise BaseException", "BaseException"),
    "gives back half a surrogate pair": (r"return {'a': ['\ud800']}", "NotJson"),
    "names a member by half a pair": (r"return {'\udfff': 1}", "NotJson"),
    "gives back a text of half a pair": (r"return 'a\ud800'", "NotJson"),
    "gives back what lies too deep": ("a = 1\n    for _ in range(129): a = [a]\n    return a", "NotJson"),
    "gives back what lies deeper": ("a = 1\n    for _ in range(900): a = {'a': a}\n    return a", "NotJson"),
    "raises what cannot be told": (
        "class Mute(Exception):\n        __str__ = lambda self: 1 / 0\n    raise Mute",
        "Mute",
    ),
    "raises what exits when it is told": (
        "class Exits(Exception):\n        @property\n        def suggestion(_): raise SystemExit\n    raise Exits",
        "Exits",
    ),
    "gives back too much": ("return 'x' * (20 * 1024 ** 2)", "AnswerTooLarge"),
    "writes where its answers go": ("import os\n    [os.write(fd, b'junk\\n') for fd in (3, 4)]\n    return 1", ""),
}


@pytest.mark.parametrize(("body", "name"), BREAKS.values(), ids=BREAKS.keys())
async def test_a_handler_that_breaks_is_an_error_and_the_next_call_works(tmp_path: Path, body: str, name: str) -> None:
    gateway = over(tmp_path, f"async def wild(ctx, input):\n    {body}", "wild")

    async with gateway.running():
        broken = await call(gateway, "probe__wild")
        after = await call(gateway, "probe__echo", n=1)

    assert broken.is_error or not name
    if name:
        assert (error_of(broken)["code"], error_of(broken)["name"]) == ("E_TOOL", name)
    assert "Traceback" not in broken.text
    assert after.structured == {"n": 1}


@pytest.mark.parametrize("way", ["def", "async def"])
@pytest.mark.parametrize("raised", ["StopIteration", "StopAsyncIteration", "GeneratorExit", "SystemExit"])
async def test_an_exception_that_means_something_to_python_is_told_and_nobody_waits(
    tmp_path: Path, way: str, raised: str
) -> None:
    body = f"class Mine({raised}): pass\n{way} wild(ctx, input):\n    raise (Mine if input else {raised})('no more')"
    gateway = over(tmp_path, body, "wild")

    async with gateway.running():
        told = [error_of(await call(gateway, "probe__wild", **input)) for input in ({}, {"of": "its own"})]

    # Python itself makes the one of a coroutine another one.
    names = ["RuntimeError"] * 2 if (way, raised) == ("async def", "StopIteration") else [raised, "Mine"]
    assert [(error["code"], error["name"]) for error in told] == [("E_TOOL", name) for name in names]


async def test_a_plain_function_may_take_from_what_is_empty(tmp_path: Path) -> None:
    gateway = over(tmp_path, "def wild(ctx, input):\n    return next(iter(input['of']))", "wild")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__wild", of=[]))

    assert (error["code"], error["name"], error["message"]) == ("E_TOOL", "StopIteration", "StopIteration")


@pytest.mark.parametrize(
    "line",
    [
        "[1]",
        '{"id": 1, "log": 5}',
        '{"id": 1, "error": "no object"}',
        '{"id": [], "value": 1}',
        '{"id": 1, "ask": 1, "method": "list"}',
        "[" * 50_000,
    ],
)
async def test_a_line_on_its_answers_pipe_that_is_no_answer_ends_the_process_and_no_more(
    tmp_path: Path, line: str
) -> None:
    source = """
import asyncio, os
async def wild(ctx, input):
    os.write(4, input["line"].encode() + b"\\n")
    await asyncio.sleep(600)
"""
    gateway = over(tmp_path, source, "wild")

    async with gateway.running():
        broken = await call(gateway, "probe__wild", line=line)
        after = await call(gateway, "probe__echo", n=1)

    error = error_of(broken)
    assert (error["code"], error["name"]) == ("E_TOOL", "AnswerPipeBroken")
    assert error["message"] == "something in the process of probe wrote to the pipe of its answers; it was ended"
    assert after.structured == {"n": 1}


async def test_a_handler_that_closes_the_pipe_of_its_answers_is_told_so(tmp_path: Path) -> None:
    source = """
import asyncio, os
async def wild(ctx, input):
    os.close(4)
    await asyncio.sleep(600)
"""
    gateway = over(tmp_path, source, "wild")

    async with gateway.running():
        broken = await call(gateway, "probe__wild")
        after = await call(gateway, "probe__echo", n=1)

    error = error_of(broken)
    assert (error["code"], error["name"]) == ("E_TOOL", "AnswerPipeClosed")
    assert error["message"] == ("the process of probe closed the pipe of its answers during the call: it said nothing")
    assert after.structured == {"n": 1}


@pytest.mark.parametrize("how", ["async def fork", "def fork"], ids=["coroutine", "thread"])
async def test_a_copy_that_a_handler_forks_takes_no_requests_and_gives_no_answers(tmp_path: Path, how: str) -> None:
    source = f"""
import os
{how}(ctx, input):
    child = os.fork()
    return {{"child": child, "ended": os.waitpid(child, 0)[1] if child else None}}
"""
    gateway = over(tmp_path, source, "fork")

    async with gateway.running():
        forked = await call(gateway, "probe__fork")
        after = [(await call(gateway, "probe__echo", n=n)).structured for n in range(5)]

    assert forked.structured["child"] > 0
    assert forked.structured["ended"] == 0
    assert after == [{"n": n} for n in range(5)]


async def test_a_copy_that_stays_takes_no_requests(tmp_path: Path) -> None:
    source = """
import os, time
async def fork(ctx, input):
    if os.fork():
        return "parent"
    time.sleep(600)
"""
    gateway = over(tmp_path, source, "fork")

    async with gateway.running():
        forked = await call(gateway, "probe__fork")
        after = [(await call(gateway, "probe__echo", n=n)).structured for n in range(5)]

    assert forked.text == "parent"
    assert after == [{"n": n} for n in range(5)]


async def test_a_value_too_long_to_show_is_no_longer_anywhere_in_the_answer(tmp_path: Path) -> None:  # SPL-1
    gateway = over(tmp_path, "async def long(ctx, input):\n    return {'a': 'x' * 100_000}", "long")

    async with gateway.running():
        answer = (await call(gateway, "probe__long")).wire()
        read = await call(gateway, "Read", file_path=answer["structuredContent"]["path"])

    assert len(str(answer)) < 35_000
    assert answer["structuredContent"]["characters"] == 100_009
    assert not read.is_error


async def test_an_exceptions_odd_words_are_made_fit_to_be_told(tmp_path: Path) -> None:
    source = r"""
class Kind(type):
    __name__ = property(lambda kind: "Odd\ud800")

class Odd(Exception, metaclass=Kind):
    suggestion = "s" * 100_000 + "\ud800"
    help_url = "javascript:alert(1)"

async def fail(ctx, input):
    raise Odd("cut \ud83d emoji")
"""
    gateway = over(tmp_path, source, "fail")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__fail"))

    assert (error["code"], error["name"]) == ("E_TOOL", r"Odd\ud800")
    assert error["message"] == r"cut \ud83d emoji"
    assert len(error["suggestion"]) == 1000
    assert error["helpUrl"] == "goat://errors/E_TOOL"


@pytest.mark.parametrize(
    "body",
    ["import asyncio\n    await asyncio.sleep(600)", "import time\n    time.sleep(600)", "while True:\n        pass"],
    ids=["waiting", "blocking", "spinning"],
)
async def test_a_handler_that_hangs_is_ended_and_the_next_call_works(tmp_path: Path, body: str) -> None:
    gateway = over(tmp_path, f"async def hang(ctx, input):\n    {body}", {"name": "hang", "timeoutMs": 700})

    async with gateway.running():
        await call(gateway, "probe__echo")
        hung = await call(gateway, "probe__hang")
        after = await call(gateway, "probe__echo", n=1)

    assert error_of(hung)["code"] == "E_TIMEOUT"
    assert after.structured == {"n": 1}


async def test_what_a_handler_starts_ends_with_it(tmp_path: Path) -> None:
    source = """
import asyncio, subprocess, sys
async def start(ctx, input):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
    with open(input["file"], "w") as file:
        file.write(str(child.pid))
    while True:
        pass
"""
    gateway = over(tmp_path, source, {"name": "start", "timeoutMs": 3000})

    async with gateway.running():
        await call(gateway, "probe__echo")
        await call(gateway, "probe__start", file=str(tmp_path / "pid"))

    pid = int((tmp_path / "pid").read_text())
    await eventually(lambda: not _runs(pid))


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()


async def test_a_call_without_any_time_left_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gateway = over(tmp_path, "")
    sent: list[Mapping[str, Any]] = []
    send = HandlerProcess.send

    def noting(self: HandlerProcess, message: Mapping[str, Any]) -> None:
        sent.append(message)
        send(self, message)

    async with gateway.running():
        await call(gateway, "probe__echo")
        monkeypatch.setattr(HandlerProcess, "send", noting)
        late = ToolContext(call_id="late", started_at_s=time.monotonic() - 2 * WAIT_LIMIT_S)
        result = await gateway.call("probe__echo", {}, late)

        assert error_of(result)["code"] == "E_TIMEOUT"
        assert sent == []
        assert not (await call(gateway, "probe__echo")).is_error


async def test_a_call_that_is_cancelled_is_cancelled_in_its_handler(tmp_path: Path) -> None:
    source = """
import asyncio
async def wait(ctx, input):
    try:
        open(input["begun"], "w").close()
        await asyncio.sleep(600)
    except asyncio.CancelledError:
        open(input["ended"], "w").close()
        raise
"""
    gateway = over(tmp_path, source, "wait")
    begun, ended = tmp_path / "begun", tmp_path / "ended"

    async with gateway.running(), anyio.create_task_group() as group:

        async def wait() -> None:
            await call(gateway, "probe__wait", begun=str(begun), ended=str(ended))

        group.start_soon(wait)
        await eventually(begun.exists)
        group.cancel_scope.cancel()

    assert ended.exists()


async def test_what_a_handler_prints_is_no_answer(tmp_path: Path) -> None:
    source = """
import os, subprocess
async def noisy(ctx, input):
    print('{"id": 1, "value": "forged"}', flush=True)
    subprocess.run(["echo", '{"id": 1, "value": "forged"}'])
    return "real"
"""
    gateway = over(tmp_path, source, "noisy")

    async with gateway.running():
        assert (await call(gateway, "probe__noisy")).text == "real"


async def test_calls_of_one_resource_run_side_by_side(tmp_path: Path) -> None:
    source = """
import asyncio
met = asyncio.Event()
async def first(ctx, input):
    await asyncio.wait_for(met.wait(), 30)
    return "met"
async def second(ctx, input):
    met.set()
"""
    gateway = over(tmp_path, source, "first", "second")
    results: list[str] = []

    async with gateway.running(), anyio.create_task_group() as group:

        async def first() -> None:
            results.append((await call(gateway, "probe__first")).text)

        group.start_soon(first)
        await anyio.lowlevel.checkpoint()
        await call(gateway, "probe__second")

    assert results == ["met"]


BROKEN_FILES = {
    "a syntax error": ("def broken(:\n", "SyntaxError"),
    "no handlers": ("x = 1\n", "AttributeError"),
    "handlers that are a list": ("handlers = []\n", "AttributeError"),
    "a handler that is no function": ("handlers = {'echo': 7}\n", "TypeError"),
    "an import that fails": ("import no_such_module_at_all\nhandlers = {}\n", "ModuleNotFoundError"),
    "an exit while it is loaded": ("raise SystemExit(1)\n", "SystemExit"),
    "a missing export": ("handlers = {'other': print}\n", "LookupError"),
}


@pytest.mark.parametrize(("source", "name"), BROKEN_FILES.values(), ids=BROKEN_FILES.keys())
async def test_a_file_that_cannot_be_loaded_says_so_to_the_caller(tmp_path: Path, source: str, name: str) -> None:
    python(tmp_path / "tools", "probe", source, "echo")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        error = error_of(await call(gateway, "probe__echo"))

    assert (error["code"], error["name"]) == ("E_TOOL", name)


async def test_a_handler_sees_none_of_the_servers_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_TOKEN", "canary-4711")
    source = "import os\nasync def look(ctx, input):\n    return dict(os.environ)"
    gateway = over(tmp_path, source, "look")

    async with gateway.running():
        assert "canary-4711" not in (await call(gateway, "probe__look")).text


async def test_a_configured_secret_reaches_the_handler_and_no_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WEATHER_API_TOKEN", "canary-4711")
    source = f"async def fail(ctx, input):\n    raise ValueError('refused: ' + ctx.config['token'])\n{ALL}"
    python(tmp_path / "tools", "probe", source, "fail")
    gateway = gateway_over(tmp_path, tmp_path / "tools", tools={"probe": {"token": "${env:WEATHER_API_TOKEN}"}})

    async with gateway.running():
        result = await call(gateway, "probe__fail")

    assert "refused:" in result.text
    assert "canary-4711" not in result.text


async def test_a_changed_file_is_used_by_the_next_call(tmp_path: Path) -> None:
    place = python(tmp_path / "tools", "probe", "handlers = {'v': lambda ctx, input: 1}", "v")
    gateway = gateway_over(tmp_path, tmp_path / "tools")

    async with gateway.running():
        before = await call(gateway, "probe__v")
        (place / "handlers.py").write_text("handlers = {'v': lambda ctx, input: 'two'}")
        after = await call(gateway, "probe__v")

    assert (before.text, after.text) == ("1", "two")


async def test_a_changed_file_beside_it_is_used_soon_and_a_call_that_runs_ends_as_it_began(tmp_path: Path) -> None:
    source = """
import asyncio, os
import words
async def say(ctx, input):
    if input.get("wait_for"):
        while not os.path.exists(input["wait_for"]):
            await asyncio.sleep(0.05)
    return words.WORD
handlers = {"say": say}
"""
    place = python(tmp_path / "tools", "probe", source, "say")
    (place / "words.py").write_text("WORD = 'old'")
    gateway = gateway_over(tmp_path, tmp_path / "tools")
    texts: list[str] = []
    go = tmp_path / "go"

    async def wait() -> None:
        texts.append((await call(gateway, "probe__say", wait_for=str(go))).text)

    async with gateway.running(), anyio.create_task_group() as group:
        assert (await call(gateway, "probe__say")).text == "old"
        group.start_soon(wait)
        await anyio.lowlevel.checkpoint()
        (place / "words.py").write_text("WORD = 'new one'")
        with anyio.fail_after(60):
            while (await call(gateway, "probe__say")).text != "new one":  # noqa: ASYNC110  # it looks at files itself
                await anyio.sleep(0.1)
        go.touch()

    assert texts == ["old"]


async def test_nothing_of_it_runs_before_the_first_call(tmp_path: Path) -> None:
    python(tmp_path / "tools", "probe", f"open({str(tmp_path / 'ran')!r}, 'w')\nhandlers = {{}}", "v")

    async with gateway_over(tmp_path, tmp_path / "tools").running():
        pass

    assert not (tmp_path / "ran").exists()
