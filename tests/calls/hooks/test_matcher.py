"""Which tools a matcher means, as Claude Code's reference says it."""

from __future__ import annotations

import pytest

from goat_mcp.calls.hooks.command import BrokenMatcher, Matcher

MCP = "mcp__memory__create"


@pytest.mark.parametrize(
    ("text", "means", "leaves"),
    [
        ("", ("Bash", MCP), ()),
        ("*", ("Bash", MCP), ()),
        ("Bash", ("Bash",), ("BashOutput", "bash", MCP)),
        ("Edit|Write", ("Edit", "Write"), ("NotebookEdit",)),
        ("Edit, Write", ("Edit", "Write"), ("NotebookEdit",)),
        ("Task", ("Agent",), ("TaskOutput",)),
        ("FileEdit", ("Edit",), ("Write",)),
        ("^Notebook", ("NotebookEdit",), ("Read",)),
        ("Edit.*", ("Edit", "NotebookEdit"), ("Read",)),
        ("^Edit$", ("Edit",), ("NotebookEdit",)),
        ("^Task$", ("Agent",), ("TaskOutput",)),
        ("mcp__memory__.*", (MCP,), ("mcp__memory2__create", "Read")),
        ("mcp__.*__create", (MCP,), ("mcp__memory__read",)),
        (MCP, (MCP,), ("mcp__memory__create_all",)),
        ("(?<verb>Read|Write)", ("Read",), ("Bash",)),
        ("^(?!mcp__).*", ("Read",), (MCP,)),
        ("mcp__memory", (MCP,), ("mcp__memory2__create",)),
        ("mcp__memory__*", (MCP,), ("mcp__memo__create",)),
    ],
)
def test_a_matcher_means_these_tools_and_leaves_those(
    text: str, means: tuple[str, ...], leaves: tuple[str, ...]
) -> None:
    matcher = Matcher.parse(text)

    assert [name for name in means if not matcher.matches(name)] == []
    assert [name for name in leaves if matcher.matches(name)] == []


def test_a_bare_server_names_no_tool_in_claude_code() -> None:
    assert not Matcher.parse("mcp__memory", whole_servers=False).matches(MCP)


def test_a_type_of_agent_is_matched_by_its_own_name() -> None:
    assert Matcher.parse("search|code-reviewer").matches("search")
    assert not Matcher.parse("code-reviewer").matches("senior-code-reviewer")


def test_what_is_no_regular_expression_is_said() -> None:
    with pytest.raises(BrokenMatcher, match=r"'\[a' is no regular expression"):
        Matcher.parse("[a")
