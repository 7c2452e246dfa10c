"""bg_exec: a program in the background, without a shell. Contract: tools.md, section 3; source: goa, `bg_exec`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.manifests.calling import Caller

pytestmark = pytest.mark.anyio

START = "bg_exec__start"


async def output(one: Caller, task_id: str) -> str:
    return (await one.call("TaskOutput", task_id=task_id, timeout=40_000)).text


async def test_words_reach_the_program_as_they_are(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    value = await one.value(START, command="printf", args=["<%s>", "a b", "$HOME", "`id`", "; echo x", "*", "'", "\n"])

    assert "<a b><$HOME><`id`><; echo x><*><'><\n>" in await output(one, value["taskId"])


async def test_stdin_is_given_whole_and_then_ends(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    value = await one.value(START, command="wc", args=["-c"], stdin="ä" * 150_000)

    assert "300000" in await output(one, value["taskId"])


async def test_without_stdin_it_is_empty(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    value = await one.value(START, command="wc", args=["-c"])

    assert "\n0\n" in await output(one, value["taskId"])


@pytest.mark.parametrize("word", ["no-such-program-here", "./missing", "cd", "if", "!", "[["])
@pytest.mark.parametrize("sandbox", ["off", "auto"])
async def test_a_missing_program_fails_at_once_and_what_only_a_shell_knows_is_none(
    tmp_path: Path, word: str, sandbox: str
) -> None:
    one = Caller(tmp_path, {"sandbox": sandbox})

    problem = await one.problem(START, command=word, args=["x"])

    assert f"there is no program {word!r}" in problem and "E_TOOL" in problem
    assert one.gateway.services.tasks().running() == []


async def test_task_stop_ends_it(tmp_path: Path) -> None:
    one = Caller(tmp_path)
    value = await one.value(START, command="sleep", args=["600"])

    stopped = await one.call("TaskStop", task_id=value["taskId"])

    assert (stopped.is_error, stopped.text.split("\n")[0]) == (False, f"Stopped task {value['taskId']} (sleep 600).")


async def test_it_is_ended_when_its_seconds_are_over(tmp_path: Path) -> None:
    one = Caller(tmp_path)

    value = await one.value(START, command="sleep", args=["600"], timeout=1)

    assert "timed out after 1 s" in await output(one, value["taskId"])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"args": []}, "command: is required"),
        ({"command": "a\0b"}, "holds a NUL character"),
        ({"command": "ls", "timeout": 0}, "timeout: wants at least 1"),
        ({"command": "ls", "args": [{"a": 1}]}, "args.0: wants string"),
        ({"command": "ls", "cwd": "/"}, "cwd: unknown field"),
    ],
)
async def test_what_cannot_be_started_is_said_before(tmp_path: Path, arguments: dict[str, Any], told: str) -> None:
    assert told in await Caller(tmp_path).problem(START, **arguments)
