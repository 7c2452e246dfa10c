"""What a rule means in words, and which stricter rules are named beside it."""

from __future__ import annotations

import pytest

from goat_mcp.calls.permissions.mode import Effect
from goat_mcp.calls.permissions.rule import parse_rule
from goat_mcp.gateway.rules.words import meaning, stricter

ALLOW, ASK, DENY = Effect.ALLOW, Effect.ASK, Effect.DENY


@pytest.mark.parametrize(
    ("effect", "text", "words"),
    [
        (ALLOW, "Bash(npm run *)", "allowed without asking: commands like `npm run *`"),
        (ASK, "Bash(git push)", "asked about each time: commands that are exactly `git push`"),
        (DENY, "Read(./secrets/**)", "refused in every mode: reading or changing files like `./secrets/**`"),
        (ALLOW, "Read(src/**)", "allowed without asking: reading files like `src/**`"),
        (ALLOW, "Edit(src/**)", "allowed without asking: changes of files like `src/**`"),
        (DENY, "Write(a.txt)", "refused in every mode: Write of files like `a.txt`"),
        (
            ALLOW,
            "WebFetch(domain:example.org)",
            "allowed without asking: WebFetch calls for example.org and hosts below it",
        ),
        (ALLOW, "WebFetch(domain:*.example.org)", "allowed without asking: WebFetch calls for hosts below example.org"),
        (ALLOW, "mcp__github", "allowed without asking: all tools of the server github"),
        (ALLOW, "mcp__github__get_*", "allowed without asking: all tools with a name like `mcp__github__get_*`"),
        (DENY, "*", "refused in every mode: all tools with a name like `*`"),
        (ASK, "Bash", "asked about each time: all calls of Bash"),
        (ALLOW, "mcp__g__x(repo:o/*)", "allowed without asking: calls of mcp__g__x with repo like `o/*`"),
        (ALLOW, "Agent(explorer)", "allowed without asking: calls of Agent with a type like `explorer`"),
    ],
)
def test_a_rule_in_plain_words(effect: Effect, text: str, words: str) -> None:
    assert meaning(effect, parse_rule(text, may_name_all=True)) == words


def test_an_end_is_said_and_whether_it_is_over() -> None:
    rule = parse_rule("Bash until 2030-01-01T00:00:00Z")

    assert "until 20" in meaning(ALLOW, rule, now_s=0) and "over" not in meaning(ALLOW, rule, now_s=0)
    assert meaning(ALLOW, rule, now_s=2e9).endswith("(which is over)")


@pytest.mark.parametrize(
    ("rule", "other", "meet"),
    [
        ("Bash(npm run *)", "Bash(npm run deploy)", True),
        ("Bash(npm run *)", "Bash(git *)", False),
        ("Bash(npm test)", "Bash(npm run *)", False),
        ("Bash(npm test)", "Bash(npm *)", True),
        ("Bash(npm test)", "Bash", True),
        ("Bash(npm test)", "Edit", False),
        ("Bash(npm test)", "*", True),
        ("Edit(src/**)", "Read(./secrets/**)", False),
        ("Edit(src/a.py)", "Read(src/**)", True),
        ("Edit(src/**)", "Edit(*.env)", True),
        ("Write(src/a.py)", "Edit(src/**)", True),
        ("Read(src/**)", "Edit(src/**)", False),
        ("WebFetch(domain:a.org)", "WebFetch(domain:b.org)", False),
        ("WebFetch(domain:x.a.org)", "WebFetch(domain:a.org)", True),
        ("http-fetch__get(domain:a.org)", "WebFetch(domain:a.org)", True),
        ("mcp__github", "mcp__github__delete_*", True),
        ("mcp__github__get_x", "mcp__github", True),
        ("mcp__github", "mcp__mail", False),
    ],
)
def test_a_stricter_rule_is_named_if_both_may_mean_one_call(rule: str, other: str, meet: bool) -> None:
    listed = [(DENY, parse_rule(other, may_name_all=True))]

    assert bool(stricter(ALLOW, parse_rule(rule), listed)) is meet


def test_only_what_is_stricter_and_not_over_wins() -> None:
    bash = parse_rule("Bash(ls)")
    over = parse_rule("Bash until 2020-01-01T00:00:00Z")
    listed = [(ALLOW, parse_rule("Bash")), (ASK, parse_rule("Bash")), (DENY, parse_rule("Bash")), (DENY, over)]

    assert [effect for effect, _ in stricter(ALLOW, bash, listed)] == [ASK, DENY]
    assert [effect for effect, _ in stricter(ASK, bash, listed)] == [DENY]
    assert stricter(DENY, bash, listed) == []
