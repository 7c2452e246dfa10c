"""Rules with an end, and rules that are replaced while calls wait: what is decided at which moment."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from goat_mcp.calls.permissions import rule_set
from goat_mcp.calls.permissions.decide import Decision
from goat_mcp.calls.permissions.mode import Approval, Effect, Mode
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.rule import BrokenRule, Call, parse_rule
from goat_mcp.calls.permissions.rule_end import seconds_in, split_end, with_end
from goat_mcp.calls.permissions.rule_set import FileRules, RuleSet
from goat_mcp.calls.permissions.rules_in_force import RulesInForce
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.core.context import ToolContext
from goat_mcp.core.side_effect import SideEffect
from tests.tool_doubles import spec

WRITE = spec("Write", SideEffect.MUTATING)
BASH = spec("Bash", SideEffect.SPAWNS)
END = "2030-01-01T00:00:00Z"
END_S = 1893456000.0


class Clock:
    """`time` for `rule_set`."""

    def __init__(self, now_s: float) -> None:
        self.now_s = now_s

    def time(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock(END_S - 1)
    monkeypatch.setattr(rule_set, "time", clock)
    monkeypatch.setattr("goat_mcp.calls.permissions.rules_in_force.time", clock)
    return clock


def decided(rules: RuleSet, call: Call, **options: Any) -> Decision:
    return Permission(RulesInForce(rules), **options).decide(call, ToolContext(call_id="c"))


def test_an_allow_rule_allows_until_its_end_and_not_in_that_second(clock: Clock) -> None:
    rules = RuleSet.parse(allow=[f"Write until {END}"])

    before = decided(rules, Call(WRITE))
    clock.now_s = END_S
    after = decided(rules, Call(WRITE))

    assert (before.effect, before.reason) == (Effect.ALLOW, f"rule Write until {END}")
    assert (after.effect, after.reason) == (Effect.ASK, "mode default")


def test_a_deny_rule_ends_as_the_user_said_and_the_others_stay(clock: Clock) -> None:
    rules = RuleSet.parse(deny=[f"Write until {END}", "Bash"])

    before = decided(rules, Call(WRITE), modes=SessionModes(Mode.BYPASS))
    clock.now_s = END_S
    after = decided(rules, Call(WRITE), modes=SessionModes(Mode.BYPASS))

    assert (before.effect, after.effect) == (Effect.DENY, Effect.ALLOW)
    assert decided(rules, Call(BASH)).effect is Effect.DENY


def test_what_has_ended_does_not_come_back_if_the_clock_is_set_back(clock: Clock) -> None:
    rules = RulesInForce(RuleSet.parse(allow=[f"Write until {END}"]))
    clock.now_s = END_S
    rules.now()

    clock.now_s = END_S - 100

    assert rules.now().allow.rules == ()


def test_rules_about_files_end_for_searches_and_the_workspace_too(clock: Clock) -> None:
    rules = RulesInForce(RuleSet.parse(deny=[f"Read(//ws/a) until {END}"]))
    files = FileRules(rules, tuple)

    assert files.hide_some() and files.keep_some() and files.hides("/ws/a") and files.forbids_to_read("/ws/a")
    clock.now_s = END_S
    assert not files.hide_some() and not files.keep_some() and not files.hides("/ws/a")
    assert files.never_read() == []


def test_a_decision_goes_by_the_rules_of_one_moment() -> None:
    class Changing:
        """Says something else each time it is asked."""

        def __init__(self) -> None:
            self.asked = 0

        def now(self) -> RuleSet:
            self.asked += 1
            return RuleSet.parse(allow=["Write"]) if self.asked == 1 else RuleSet()

    rules = Changing()
    decision = Permission(rules).decide(Call(WRITE, writes=("/ws/.vscode/x",)), ToolContext(call_id="c"))

    assert rules.asked == 1
    assert decision.reason.startswith("protected")


@pytest.mark.parametrize(
    ("text", "rule", "until_s"),
    [
        (f"Bash(npm run *) until {END}", "Bash(npm run *)", END_S),
        ("Bash(npm run *)   until\t2030-01-01T01:00:00+01:00", "Bash(npm run *)", END_S),
        (f"mcp__github until {END}", "mcp__github", END_S),
        ("Bash(sleep until 5)", "Bash(sleep until 5)", None),
        (f"Bash(x until {END})", f"Bash(x until {END})", None),
        ("Write", "Write", None),
    ],
)
def test_the_end_stands_behind_the_rule(text: str, rule: str, until_s: float | None) -> None:
    assert split_end(text) == (rule, until_s)
    assert parse_rule(text).until_s == until_s


@pytest.mark.parametrize("end", ["tomorrow", "2030-01-01", "2030-01-01T00:00:00", "18:00", "2030-13-01T00:00:00Z"])
def test_an_end_that_is_no_time_is_a_broken_rule(end: str) -> None:
    with pytest.raises(BrokenRule, match="is no time with its zone"):
        parse_rule(f"Write until {end}")


@pytest.mark.parametrize(("span", "found"), [("30m", 1800), ("1h", 3600), ("7D", 604800), ("2w", 1209600)])
def test_a_span_of_time(span: str, found: int) -> None:
    assert seconds_in(span) == found


@pytest.mark.parametrize("span", ["", "0h", "1", "h", "1.5h", "-1h", "1y", "99999d", "1 hour"])
def test_what_is_no_span_of_time(span: str) -> None:
    with pytest.raises(ValueError, match="is no span of time"):
        seconds_in(span)


def test_an_end_is_written_as_it_is_read() -> None:
    now_s = time.time()

    assert split_end(with_end("Bash(ls)", now_s + 3600)) == ("Bash(ls)", float(int(now_s + 3600)))


def test_rules_that_are_replaced_hold_for_the_next_decision_of_every_session() -> None:
    rules = RulesInForce(RuleSet())
    modes = SessionModes()
    permission = Permission(rules, modes, Approval.ELICIT)
    modes.grant("mine", [parse_rule("Edit(//ws/a)")])
    mine = ToolContext(call_id="c", session_key="mine")
    assert permission.decide(Call(WRITE), mine).effect is Effect.ASK

    rules.replace(RuleSet.parse(allow=["Write"]))
    assert permission.decide(Call(WRITE), mine).effect is Effect.ALLOW

    rules.replace(RuleSet.parse(deny=["Write"]))
    assert permission.decide(Call(WRITE), mine).effect is Effect.DENY


def test_at_no_moment_are_there_no_rules() -> None:
    """Searches and long decisions ask in threads, while the event loop replaces the rules and some end."""
    sets = [
        RuleSet.parse(deny=["Write", f"Edit until {with_end('', time.time() + more).split()[-1]}"]) for more in (0, 1)
    ]
    rules = RulesInForce(sets[0])
    stop, without = threading.Event(), list[str]()

    def ask() -> None:
        while not stop.is_set():
            if rules.now().denying(Call(WRITE)) is None:
                without.append("once")

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for number in range(2000):
        rules.replace(sets[number % 2])
    stop.set()
    for thread in threads:
        thread.join(60)

    assert without == []
    assert rules.now().deny.rules[0].text == "Write"
