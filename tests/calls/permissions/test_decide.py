"""The decision table of design D8, whole-tool rules, and what always holds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.decide import decide as decide_call
from goat_mcp.calls.permissions.mode import Effect, Mode, allows_more
from goat_mcp.calls.permissions.rule import BrokenRule, Call, parse_rule
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolSpec


def spec(
    name: str,
    side_effect: SideEffect,
    risk: Risk,
    *,
    read_only: bool = False,
    destructive: bool = True,
    repeatable: bool = False,
) -> ToolSpec:
    return ToolSpec(
        name=name,
        title=name,
        description=name,
        input_schema={"type": "object"},
        side_effect=side_effect,
        toolset="core",
        risk=risk,
        hints=Hints(read_only=read_only, destructive=destructive, idempotent=repeatable, open_world=False),
    )


def decide(tool: ToolSpec, rules: RuleSet, mode: Mode) -> Decision:
    return decide_call(Call(tool), rules, mode)


TODO = spec("TodoWrite", SideEffect.NONE, Risk.NONE)
LOW = spec("TaskOutput", SideEffect.READ_ONLY, Risk.LOW, read_only=True, destructive=False)
STOP = spec("TaskStop", SideEffect.BLOCKING, Risk.LOW)
WRITE = spec("Write", SideEffect.MUTATING, Risk.MEDIUM)
FETCH = spec("WebFetch", SideEffect.NETWORK, Risk.HIGH, destructive=False, repeatable=True)
UPSTREAM = spec("mcp__x__y", SideEffect.NETWORK, Risk.HIGH)
BASH = spec("Bash", SideEffect.NETWORK, Risk.CRITICAL)
AGENT = spec("Agent", SideEffect.SPAWNS, Risk.CRITICAL)

ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY


@pytest.mark.parametrize(
    ("mode", "effects"),
    [
        #                      TODO   LOW    STOP   WRITE  FETCH  UPSTR  BASH   AGENT
        (Mode.DEFAULT, [ALLOW, ALLOW, ALLOW, ASK, ASK, ASK, ASK, ASK]),
        (Mode.ACCEPT_EDITS, [ALLOW, ALLOW, ALLOW, ALLOW, ASK, ASK, ASK, ASK]),
        (Mode.PLAN, [ALLOW, ALLOW, DENY, DENY, ASK, DENY, DENY, DENY]),
        (Mode.DONT_ASK, [ALLOW, ALLOW, ALLOW, DENY, DENY, DENY, DENY, DENY]),
        (Mode.BYPASS, [ALLOW] * 8),
    ],
)
def test_the_table_of_modes(mode: Mode, effects: list[Effect]) -> None:
    tools = [TODO, LOW, STOP, WRITE, FETCH, UPSTREAM, BASH, AGENT]
    assert [decide(tool, RuleSet(), mode).effect for tool in tools] == effects


# RSK-3
@pytest.mark.parametrize("name", ["Read", "Glob", "Grep", "ListMcpResources", "ReadMcpResource"])
@pytest.mark.parametrize("mode", list(Mode))
def test_the_five_are_allowed_in_every_mode_but_not_against_a_deny_rule(name: str, mode: Mode) -> None:
    tool = spec(name, SideEffect.NONE, Risk.NONE, read_only=True, destructive=False)

    assert decide(tool, RuleSet(), mode).effect is ALLOW
    assert decide(tool, RuleSet.parse(deny=[name]), mode).effect is DENY


@pytest.mark.parametrize("rule", ["mcp__x", "mcp__x__*", "mcp__x__y"])
def test_a_rule_may_name_a_server_all_its_tools_or_one(rule: str) -> None:
    assert decide(UPSTREAM, RuleSet.parse(allow=[rule]), Mode.DONT_ASK).effect is ALLOW


@pytest.mark.parametrize("rule", ["mcp__xy", "mcp__x__yy", "Bash"])
def test_a_rule_does_not_reach_other_tools(rule: str) -> None:
    assert decide(UPSTREAM, RuleSet.parse(allow=[rule]), Mode.DONT_ASK).effect is DENY


def test_a_rule_may_use_another_systems_name_of_a_tool() -> None:
    assert decide(WRITE, RuleSet.parse(deny=["FileWrite"]), Mode.BYPASS).effect is DENY


def test_a_decision_says_what_made_it() -> None:
    rules = RuleSet.parse(ask=["Bash"])

    assert decide(BASH, rules, Mode.BYPASS).reason == "rule Bash"
    assert decide(WRITE, rules, Mode.DONT_ASK).reason == "mode dontAsk"


@pytest.mark.parametrize("risk", list(Risk))
@pytest.mark.parametrize("side_effect", list(SideEffect))
@pytest.mark.parametrize("is_repeatable", [True, False])
@pytest.mark.parametrize("is_read_only", [True, False])
@pytest.mark.parametrize("before", [Mode.DEFAULT, Mode.ACCEPT_EDITS, Mode.BYPASS])
def test_a_mode_that_is_entered_unasked_allows_nothing_more(
    side_effect: SideEffect, risk: Risk, is_repeatable: bool, is_read_only: bool, before: Mode
) -> None:
    """Planning, too, which a model may begin by itself."""
    tool = spec("t", side_effect, risk, read_only=is_read_only, destructive=False, repeatable=is_repeatable)
    freedom = {ALLOW: 2, ASK: 1, DENY: 0}

    for wanted in Mode:
        if not allows_more(before, wanted):
            effects = [decide(tool, RuleSet(), mode).effect for mode in (before, wanted)]
            assert freedom[effects[1]] <= freedom[effects[0]], wanted


def test_an_allow_rule_lets_pages_be_fetched_while_planning() -> None:
    assert decide(FETCH, RuleSet.parse(allow=["WebFetch"]), Mode.PLAN).effect is ALLOW


def test_an_allow_rule_grants_no_change_while_planning() -> None:
    assert decide(WRITE, RuleSet.parse(allow=["Write"]), Mode.PLAN).effect is DENY


@pytest.mark.parametrize(
    "text", ["", "mcp__", "mcp__*", "*", "mcp__*__b", "two words", "mcp__a__", "Bsh", "Bash(git", "Bash()", "Read(!a)"]
)
def test_a_rule_that_is_not_understood_is_an_error_that_quotes_it(text: str) -> None:
    with pytest.raises(BrokenRule, match="rule"):
        parse_rule(text)


TOOLS = st.sampled_from([TODO, LOW, STOP, WRITE, FETCH, UPSTREAM, BASH, AGENT])
RULES = st.lists(
    st.sampled_from(["Bash", "Write", "Agent", "mcp__x", "mcp__x__*", "TodoWrite", "WebFetch"]), max_size=4
)


@given(TOOLS, RULES, RULES, RULES, st.sampled_from(list(Mode)))
def test_deny_beats_ask_beats_allow(
    tool: ToolSpec, allow: list[str], ask: list[str], deny: list[str], mode: Mode
) -> None:
    decision = decide(tool, RuleSet.parse(allow=allow, ask=ask, deny=deny), mode)

    if any(parse_rule(text).names(tool.name) for text in deny):
        assert decision.effect is DENY
    elif any(parse_rule(text).names(tool.name) for text in ask):
        assert decision.effect is ASK
    else:
        assert (
            decision.effect is not ASK
            or mode in (Mode.DEFAULT, Mode.ACCEPT_EDITS)
            or (tool, mode) == (FETCH, Mode.PLAN)
        )


@given(TOOLS, RULES, st.sampled_from(list(Mode)))
def test_one_more_deny_rule_never_allows_more(tool: ToolSpec, deny: list[str], mode: Mode) -> None:
    before = decide(tool, RuleSet.parse(deny=deny), mode).effect
    after = decide(tool, RuleSet.parse(deny=[*deny, tool.name]), mode).effect

    assert after is DENY
    assert before in (ALLOW, ASK, DENY)
