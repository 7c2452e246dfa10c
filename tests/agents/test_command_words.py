"""The setting `agent.command`: words, groups and placeholders."""

from __future__ import annotations

from typing import Any

import pytest

from goat_mcp.agents.options import PLACEHOLDERS, Word, fill_words
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings

NOTHING = dict.fromkeys(PLACEHOLDERS, "")


def command(words: Any) -> tuple[Word, ...]:
    return load_settings({"agent": {"command": words}}).agent.command


def test_a_group_is_there_only_if_it_stands_for_something() -> None:
    words = command(["claude", "-p", ["--model", "{model}"], ["--resume", "{resume}"], ["--verbose"]])

    assert fill_words(words, NOTHING) == ["claude", "-p", "--verbose"]
    assert fill_words(words, {**NOTHING, "model": "sonnet"}) == ["claude", "-p", "--model", "sonnet", "--verbose"]


def test_what_is_filled_in_is_one_word_and_no_placeholder_of_its_own() -> None:
    words = command(["agent", "--turns={max_turns}", "{prompt}", '{"json": {}}'])

    assert fill_words(words, {**NOTHING, "max_turns": "5", "prompt": "a 'b' {model} $(c)\nd"}) == [
        "agent",
        "--turns=5",
        "a 'b' {model} $(c)\nd",
        '{"json": {}}',
    ]


def test_what_is_filled_in_is_never_an_option() -> None:
    words = command(["agent", "{prompt}", ["--model", "{model}"], "--mode={mode}"])

    assert fill_words(words, {**NOTHING, "prompt": "--yolo", "model": "-m", "mode": "-x"}) == [
        "agent",
        " --yolo",
        "--model",
        " -m",
        "--mode=-x",
    ]


def test_what_no_argument_can_hold_is_left_out() -> None:
    assert fill_words(command(["agent", "{prompt}"]), {**NOTHING, "prompt": "a\0b\ud800c"}) == ["agent", "ab?c"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["agent", "{modle}"], "{modle} is no placeholder; known are {prompt}"),
        ([["agent"]], "the first word is the program"),
        (["{model}"], "the first word is the program"),
        ([""], "the first word is the program"),
        (["./agent"], "a name in the PATH, or an absolute path"),
        (["tools/agent"], "a name in the PATH, or an absolute path"),
        (["agent", "a\0b"], "NUL"),
        ("agent -p", 'wants a list of words, e.g. ["claude", "-p"]'),
    ],
)
def test_a_command_that_cannot_be_meant_stops_the_start(words: Any, problem: str) -> None:
    with pytest.raises(BrokenSettings) as broken:
        command(words)

    assert "agent.command" in broken.value.message
    assert problem in broken.value.message
