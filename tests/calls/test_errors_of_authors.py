"""What a tool raises that is not ours: its author's message reaches the caller, the traceback the log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.hooks import Hooks
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access
from goat_mcp.embed import open_tools
from goat_mcp.state.telemetry import Telemetry
from tests.calls.extensions.installed_package import install
from tests.calls.test_pipeline import CTX, pipeline_over
from tests.tool_doubles import fake, spec

pytestmark = pytest.mark.anyio


class Weather:
    """A tool as an embedder writes it."""

    spec = spec("weather")

    def __init__(self, problem: BaseException) -> None:
        self.problem = problem

    def validate(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return arguments

    def access(self, input: Mapping[str, Any]) -> Access:
        return Access()

    async def execute(self, input: Mapping[str, Any], ctx: ToolContext) -> ToolResult:
        raise self.problem


async def raised(tmp_path: Path, problem: BaseException, **options: Any) -> ToolResult:
    pipeline = pipeline_over(tmp_path, **options)
    pipeline.catalog._registry.register(Weather(problem))  # type: ignore[attr-defined]
    return await pipeline.call("weather", {}, CTX)


def error_of(result: ToolResult) -> dict[str, Any]:
    return result.wire()["structuredContent"]["error"]


async def test_the_message_reaches_the_caller_under_the_exceptions_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = await raised(tmp_path, ValueError("no such city"))

    assert error_of(result) == {
        "code": "E_TOOL",
        "name": "ValueError",
        "message": "no such city",
        "suggestion": "Read the message, correct the call, or try another way.",
        "helpUrl": "goat://errors/E_TOOL",
    }
    assert result.text.startswith("no such city\n")
    log = capsys.readouterr().err
    assert log.count("Traceback (most recent call last)") == 1 and '"call_id": "call-1"' in log


@pytest.mark.parametrize(
    ("problem", "name", "message"),
    [
        (asyncio.CancelledError(), "CancelledError", "CancelledError"),
        (SystemExit(3), "SystemExit", "the function ended with exit status 3"),
    ],
)
async def test_a_tool_that_stops_itself_has_failed_and_its_caller_is_answered(
    problem: BaseException, name: str, message: str, tmp_path: Path
) -> None:
    error = error_of(await raised(tmp_path, problem))

    assert (error["code"], error["name"], error["message"]) == ("E_TOOL", name, message)


@pytest.mark.parametrize("problem", [asyncio.CancelledError(), SystemExit(3)])
@pytest.mark.parametrize("where", ["an extension", "a hook before", "a hook after"])
async def test_code_around_a_call_that_stops_itself_ends_that_call_with_an_error(
    where: str, problem: BaseException, tmp_path: Path
) -> None:
    async def stops(*given: Any) -> Any:
        raise problem

    around: dict[str, Any] = {
        "an extension": {"layers": (stops,)},
        "a hook before": {"hooks": Hooks(before=(stops,))},
        "a hook after": {"hooks": Hooks(after=(stops,))},
    }[where]

    result = await pipeline_over(tmp_path, fake("Read"), **around).call("Read", {}, CTX)

    assert result.error_code == "E_INTERNAL"


async def test_a_long_message_is_cut_at_the_limit(tmp_path: Path) -> None:
    message = error_of(await raised(tmp_path, ValueError("x" * 5_000)))["message"]

    assert len(message) <= 1_000 and "characters cut" in message


async def test_a_secret_is_taken_out_of_the_message_and_of_the_log(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    redactor = Redactor(["canary-value"])
    problem = ValueError("login with canary-value and Bearer sk-ant-canary1234567890 failed")

    result = await raised(tmp_path, problem, redactor=redactor, telemetry=Telemetry(redactor=redactor))

    assert error_of(result)["message"] == "login with [redacted] and Bearer [redacted] failed"
    assert "canary" not in json.dumps(result.wire()) + capsys.readouterr().err


class _Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("cannot say")


class _Helpful(Exception):
    suggestion = "Name a town of the list."
    help_url = "https://example.org/towns"


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (ValueError(), ("ValueError", "ValueError")),
        (_Unreadable(), ("_Unreadable", "_Unreadable")),
        (ValueError("half \ud800"), ("ValueError", "half \\ud800")),
    ],
    ids=["no message", "a message that cannot be read", "half a character"],
)
async def test_there_is_always_a_message_that_every_client_can_read(
    problem: Exception, expected: tuple[str, str], tmp_path: Path
) -> None:
    error = error_of(await raised(tmp_path, problem))

    assert (error["name"], error["message"]) == expected


async def test_a_suggestion_and_a_link_of_the_exception_are_passed_on(tmp_path: Path) -> None:
    error = error_of(await raised(tmp_path, _Helpful("no such town")))

    assert (error["suggestion"], error["helpUrl"]) == ("Name a town of the list.", "https://example.org/towns")


async def test_errors_with_a_code_and_protocol_errors_stay_as_they_are(tmp_path: Path) -> None:
    result = await raised(tmp_path, ToolError(ErrorCode.NOT_FOUND, "gone"))
    with pytest.raises(UpstreamError):
        await raised(tmp_path, UpstreamError(-32050, "custom"))

    assert result.error_code == "E_NOT_FOUND"


async def test_hooks_after_a_failure_see_the_message_and_may_replace_it(tmp_path: Path) -> None:
    seen: list[str] = []

    async def after(spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        seen.append(result.text.splitlines()[0])
        return text_result("replaced")

    result = await raised(tmp_path, ValueError("no such city"), hooks=Hooks(after_failure=(after,)))

    assert (seen, result.text) == (["no such city"], "replaced")


EXTENSION = """
from goat_mcp.core.side_effect import SideEffect
class Weather:
    def register(self, tools):
        tools.add("weather", "Weather of a town.", self.weather, side_effect=SideEffect.NONE)
    async def weather(self, ctx, arguments):
        raise ValueError("no such city")
"""


async def test_a_function_of_an_extension_tells_its_caller_what_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(tmp_path, monkeypatch, {"weather": "weather_x:Weather"}, {"weather_x": EXTENSION})

    async with open_tools(
        {"workspace": [str(tmp_path)], "extensions": ["weather"]}, state_directory=tmp_path / "state"
    ) as tools:
        result = await tools.call("weather", {})

    assert (result.error_code, result.text.splitlines()[0]) == ("E_TOOL", "no such city")
    assert "weather_x.py" in capsys.readouterr().err
