"""What settings make of rules, and where a rule stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.configured_rules import origin_of_rule, rules_of
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.permissions.call import Call
from goat_mcp.permissions.decide import decide
from goat_mcp.permissions.mode import Effect, Mode
from goat_mcp.settings import BrokenSettings, load_settings, settings_of
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
        ("git status > f", Effect.DENY),
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
