"""Hooks whose matcher means no tool are told, with the names it may have meant; those of an unseen server are not."""

from __future__ import annotations

import pytest

from goat_mcp.calls.hooks.command import HookCommand, Matcher, unmatched_hooks
from goat_mcp.calls.hooks.settings import HookEvent

TOOLS = ("Agent", "Bash", "Read", "Write", "Edit", "NotebookEdit", "mcp__github__search")


def told(matcher: str, *unlisted: str, event: HookEvent = "PreToolUse", is_imported: bool = False) -> list[str]:
    hook = HookCommand(
        event=event,
        location="hooks.0",
        argv=("x",),
        matcher=Matcher.parse(matcher, whole_servers=not is_imported),
        is_imported=is_imported,
    )
    found = unmatched_hooks([hook], TOOLS, is_off=lambda name: name == "http-fetch__get", unlisted=unlisted)
    return [f"{place}: {problem}" for place, problem in found]


@pytest.mark.parametrize(
    ("matcher", "problem"),
    [
        ("Bsh", "its matcher names Bsh, which is no tool; did you mean Bash?"),
        ("Edit|Wriet", "its matcher names Wriet, which is no tool; did you mean Write?"),
        ("READ", "its matcher names READ, which is no tool; did you mean Read?"),
        ("zzzzzz", "its matcher names zzzzzz, which is no tool"),
        ("mcp__gihub", "its matcher names mcp__gihub__, which is no tool; did you mean mcp__github__search?"),
        (
            "mcp__github__serch",
            "its matcher names mcp__github__serch, which is no tool; did you mean mcp__github__search?",
        ),
        ("^Bsh$", "its matcher '^Bsh$' matches no tool; did you mean Bash?"),
        ("mcp__jira__.*", "its matcher 'mcp__jira__.*' matches no tool"),
    ],
)
def test_a_matcher_that_means_no_tool_is_told_with_the_nearest(matcher: str, problem: str) -> None:
    assert told(matcher) == [f"hooks.0: {problem}"]


@pytest.mark.parametrize(
    "matcher",
    ["", "*", "Bash", "Task", "MultiEdit|Write", "bash", "^Notebook", "mcp__github", "mcp__.*", "http-fetch__get"],
)
def test_a_matcher_that_means_a_tool_is_not(matcher: str) -> None:
    assert told(matcher) == []


@pytest.mark.parametrize("matcher", ["mcp__jira", "mcp__jira__create", "mcp__jira__.*", "jira.*"])
def test_what_may_mean_a_server_that_nobody_has_listed_is_not(matcher: str) -> None:
    assert told(matcher, "jira") == []
    assert told(matcher) != []


def test_a_misspelt_built_in_is_told_while_servers_are_out_of_reach() -> None:
    assert told("Bsh", "jira") != []


def test_what_is_about_no_tool_or_was_told_when_it_was_read_is_not_told_here() -> None:
    assert told("startup", event="SessionStart") == []
    assert told("mcp__jira", is_imported=True) == []
