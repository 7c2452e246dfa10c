"""What settings make of rules, and where a rule stands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from goat_mcp.calls.permissions.decide import decide
from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.gateway.build.rule_loading import origin_of_rule, rules_of
from goat_mcp.settings.claude import read_claude_settings
from goat_mcp.settings.loading import load_settings
from goat_mcp.settings.settings import BrokenSettings, settings_of
from tests.tool_doubles import spec


def decided(command: str, **bash: list[str]) -> tuple[Effect, str]:
    call = Call(spec("Bash", SideEffect.NETWORK), {"command": command})
    decision = decide(call, rules_of(settings_of({"bash": bash}, "a test")), Mode.BYPASS)
    return decision.effect, decision.reason


@pytest.mark.parametrize("command", ["rm x", "rm", "sudo rm -rf /", "ls; git push origin", "bash -c 'rm x'"])
def test_a_blocked_command_never_runs(command: str) -> None:
    effect, reason = decided(command, blocked=["rm", "git push"])

    assert effect is Effect.DENY and "bash.blocked" in reason


def test_others_do() -> None:
    assert decided("git pull", blocked=["rm", "git push"])[0] is Effect.ALLOW


@pytest.mark.parametrize(
    ("command", "effect"),
    [
        ("git status", Effect.ALLOW),
        ("git status && make test", Effect.ALLOW),
        ("make install", Effect.DENY),
        ("git status > f", Effect.ALLOW),
        ("git status -s", Effect.ALLOW),
        ("$git status", Effect.DENY),
        ("env git status", Effect.DENY),
        ("git status; id", Effect.DENY),
    ],
)
def test_where_some_commands_are_allowed_no_other_runs(command: str, effect: Effect) -> None:
    assert decided(command, allowed=["git status", "make test"])[0] is effect


def test_what_only_may_run_is_not_thereby_allowed_unasked() -> None:
    rules = rules_of(settings_of({"bash": {"allowed": ["make"]}}, "a test"))

    assert decide(Call(spec("Bash", SideEffect.SPAWNS), {"command": "make"}), rules, Mode.DEFAULT).effect is Effect.ASK


def test_a_broken_rule_is_told_with_its_file_and_line(tmp_path: Path) -> None:  # R-PERM-7
    file = tmp_path / "settings.yaml"
    file.write_text("mode: default\npermissions:\n  deny:\n    - Read(x)\n    - Bash(git\n")

    with pytest.raises(BrokenSettings) as caught:
        rules_of(load_settings({}, config_file=file))

    assert f"{file}:5" in str(caught.value) and "Bash(git" in str(caught.value)


def test_where_a_rule_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("permissions: {allow: [Bash(make *)]}\n")

    settings = load_settings({}, config_file=file, added={"permissions.allow": ["Write"]})

    assert origin_of_rule(settings, Effect.ALLOW, "Bash(make *)") == f"{file}:1"
    assert origin_of_rule(settings, Effect.ALLOW, "Write") == "the command line"
    monkeypatch.setenv("GOAT_MCP_PERMISSIONS__DENY", '["Read(x)"]')
    from_environment = load_settings({})
    assert origin_of_rule(from_environment, Effect.DENY, "Read(x)").endswith("GOAT_MCP_PERMISSIONS__DENY")


def imported(folder: Path, permissions: dict[str, list[str]]) -> RuleSet:
    file = folder / ".claude" / "settings.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"permissions": permissions}, indent=1))
    return rules_of(settings_of({}, "a test"), [read_claude_settings(file)])


def test_rules_of_a_claude_code_file_hold_as_they_do_there(tmp_path: Path) -> None:
    rules = imported(tmp_path, {"allow": ["Bash(npm run test:*)", "Edit(/src/**)"], "deny": ["Read(./.env)"]})

    def effect(tool: str, *paths: str, **arguments: str) -> Effect:
        call = Call(spec(tool, SideEffect.MUTATING), arguments, paths, (), paths, ("/ws",))
        return decide(call, rules, Mode.DONT_ASK).effect

    assert effect("Bash", command="npm run test -- -x") is Effect.ALLOW
    assert effect("Write", f"{tmp_path}/src/a.py") is Effect.ALLOW
    assert effect("Write", "/ws/src/a.py") is Effect.DENY
    assert effect("Read", "/ws/.env") is Effect.DENY


def test_such_a_rule_knows_its_line(tmp_path: Path) -> None:
    rules = imported(tmp_path, {"deny": ["Read(./.env)"]})

    assert rules.deny.rules[0].origin == f"{tmp_path}/.claude/settings.json:4"


def test_a_broken_rule_of_such_a_file_stops_the_start(tmp_path: Path) -> None:
    with pytest.raises(BrokenSettings, match=r"settings\.json:4"):
        imported(tmp_path, {"deny": ["Bash(git"]})
