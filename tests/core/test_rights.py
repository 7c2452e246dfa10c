"""Rights of agents: each start may only narrow them."""

from __future__ import annotations

from goat_mcp.core.rights import NO_LIMITS, Rights


def test_an_agent_has_no_more_tools_than_its_starter() -> None:
    starter = NO_LIMITS.narrowed(allowed=frozenset({"Read", "Grep"}))

    agent = starter.narrowed(allowed=frozenset({"Read", "Write"}))

    assert (agent.permits("Read"), agent.permits("Grep"), agent.permits("Write")) == (True, False, False)
    assert starter.narrowed(allowed=None).allowed == starter.allowed
    assert agent.depth == 2


def test_what_was_denied_once_stays_denied() -> None:
    agent = NO_LIMITS.narrowed(allowed=None, denied=frozenset({"Bash"})).narrowed(allowed=frozenset({"Bash", "Read"}))

    assert (agent.permits("Bash"), agent.permits("Read")) == (False, True)


def test_a_servers_name_stands_for_all_its_tools() -> None:
    starter = Rights(allowed=frozenset({"mcp__github", "mcp__jira__search"}))

    agent = starter.narrowed(allowed=frozenset({"mcp__github__issues", "mcp__jira", "mcp__other"}))

    assert agent.allowed == {"mcp__github__issues", "mcp__jira__search"}
    assert not agent.permits("mcp__github__delete")
    assert starter.permits("mcp__github__delete")
    assert not Rights(denied=frozenset({"mcp__github"})).permits("mcp__github__issues")
    assert Rights(denied=frozenset({"mcp__git"})).permits("mcp__github__issues")


def test_modes_add_up_and_the_first_directory_and_session_stay() -> None:
    starter = NO_LIMITS.narrowed(allowed=None, modes=("plan",), client_session="stdio", writes_below="/a")

    agent = starter.narrowed(allowed=None, modes=("bypassPermissions",), client_session="agent:1", writes_below="/b")

    assert (agent.modes, agent.client_session, agent.writes_below) == (("plan", "bypassPermissions"), "stdio", "/a")
