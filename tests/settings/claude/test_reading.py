"""A Claude Code settings file: what of it counts here, what is told, and what stops the start."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.hooks.command import HookCommand, Matcher
from goat_mcp.settings.claude import BrokenClaudeSettings, ClaudeSettings, RuleText, read_claude_settings

FILE = """{
  "model": "opus",
  "permissions": {
    "allow": [
      "Bash(npm run test:*)",
      "mcp__github__*"
    ],
    "ask": ["Bash(git push *)"],
    "deny": ["Read(./.env)",
             "Skill(deploy)"],
    "defaultMode": "acceptEdits",
    "additionalDirectories": ["../docs"]
  },
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Edit|Write",
        "hooks": [
          { "type": "command", "command": "jq . | ./check.sh", "timeout": 5 },
          { "type": "command", "command": "${CLAUDE_PROJECT_DIR}/check", "args": ["--all"] },
          { "type": "prompt", "prompt": "Is this wise?" }
        ]
      }
    ],
    "Stop": [{ "hooks": [{ "type": "command", "command": "say done" }] }]
  }
}
"""


def read(tmp_path: Path, content: Any) -> ClaudeSettings:
    file = tmp_path / "settings.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return read_claude_settings(file)


def hooks(*handlers: dict[str, Any], event: str = "PreToolUse", **group: Any) -> dict[str, Any]:
    return {"hooks": {event: [{"hooks": list(handlers), **group}]}}


def test_rules_and_hooks_come_with_the_line_they_stand_on(tmp_path: Path) -> None:
    file = f"{tmp_path}/settings.json"
    imported: dict[str, Any] = {
        "event": "PreToolUse",
        "matcher": Matcher(frozenset({"Edit", "Write"})),
        "refuses_on_failure": False,
        "strict": False,
        "is_imported": True,
    }

    settings = read(tmp_path, FILE)

    assert settings == ClaudeSettings(
        path=Path(file),
        allow=(RuleText("Bash(npm run test:*)", f"{file}:5"), RuleText("mcp__github__*", f"{file}:6")),
        ask=(RuleText("Bash(git push *)", f"{file}:8"),),
        deny=(RuleText("Read(./.env)", f"{file}:9"),),
        hooks=(
            HookCommand(
                location=f"{file}:19",
                argv=("/bin/sh", "-c", "jq . | ./check.sh"),
                timeout_s=5.0,
                in_shell=True,
                **imported,
            ),
            HookCommand(
                location=f"{file}:20", argv=("${CLAUDE_PROJECT_DIR}/check", "--all"), timeout_s=600.0, **imported
            ),
        ),
        default_mode="acceptEdits",
        notes=(
            f"{file}:10: rule 'Skill(deploy)' has no effect: there is no tool Skill here",
            f"{file}:11: permissions.defaultMode 'acceptEdits' is not taken over; use --mode",
            f"{file}:12: permissions.additionalDirectories are not taken over; use --workspace",
            f"{file}:21: a hook of type prompt does not run here; only programs (type command) do",
            f"{file}:25: hooks of Stop do not run: there is no such event here",
            f"{file}: without effect here: model",
        ),
    )


@pytest.mark.parametrize("rule", ["Bash", "Task(Explore)", "FileEdit(src/**)", "mcp__x", "mcp__x__y(a:b)", "((", "*"])
def test_every_rule_but_one_of_an_unknown_tool_is_handed_on(tmp_path: Path, rule: str) -> None:
    """R-PERM-7: what is broken is told by whoever parses rules, with the line."""
    settings = read(tmp_path, {"permissions": {"deny": [rule]}})

    assert ([one.text for one in settings.deny], settings.notes) == ([rule], ())


def test_a_name_that_is_nearly_one_of_ours_is_told(tmp_path: Path) -> None:
    (note,) = read(tmp_path, {"permissions": {"deny": ["Bsah(rm *)"]}}).notes

    assert note.endswith("rule 'Bsah(rm *)' has no effect: there is no tool Bsah here; did you mean Bash?")


@pytest.mark.parametrize(
    ("handler", "said"),
    [
        ({"type": "http", "url": "http://localhost"}, "a hook of type http does not run here"),
        ({"type": "command", "command": "Get-Item", "shell": "powershell"}, "a hook for PowerShell does not run here"),
        ({"type": "command", "command": "x", "if": "PowerShell(rm *)"}, "there is no tool PowerShell here"),
    ],
)
def test_a_hook_that_cannot_run_here_is_a_note(tmp_path: Path, handler: dict[str, Any], said: str) -> None:
    settings = read(tmp_path, hooks(handler))

    assert settings.hooks == ()
    assert said in settings.notes[0]


def test_a_hook_around_sessions_with_an_if_never_runs_there_or_here(tmp_path: Path) -> None:
    settings = read(tmp_path, hooks({"type": "command", "command": "x", "if": "Bash"}, event="SessionEnd"))

    assert (settings.hooks, len(settings.notes)) == ((), 1)


def test_a_hook_in_the_background_is_run_and_not_obeyed(tmp_path: Path) -> None:
    settings = read(tmp_path, hooks({"type": "command", "command": "x", "async": True}))

    assert ([hook.observes for hook in settings.hooks], len(settings.notes)) == ([True], 1)


def test_on_failure_block_refuses_where_a_hook_fails(tmp_path: Path) -> None:
    settings = read(tmp_path, hooks({"type": "command", "command": "x", "onFailure": "block"}))

    assert [hook.refuses_on_failure for hook in settings.hooks] == [True]


def test_a_matcher_of_a_bare_server_names_no_tool_and_says_so(tmp_path: Path) -> None:
    settings = read(tmp_path, hooks({"type": "command", "command": "x"}, matcher="mcp__github"))

    assert not settings.hooks[0].matcher.matches("mcp__github__search")
    assert "write mcp__github__.*" in settings.notes[0]


def test_hooks_that_are_switched_off_do_not_run(tmp_path: Path) -> None:
    settings = read(tmp_path, {"disableAllHooks": True, **hooks({"type": "command", "command": "x"})})

    assert (settings.hooks, len(settings.notes)) == ((), 1)


def test_the_bytes_a_user_trusted_count_and_not_what_is_on_disk(tmp_path: Path) -> None:
    file = tmp_path / "settings.json"
    file.write_text("{}")

    settings = read_claude_settings(file, b'{"permissions": {"deny": ["Bash"]}}')

    assert [rule.text for rule in settings.deny] == ["Bash"]


BROKEN: dict[str, tuple[str, str]] = {
    "no JSON": ('{\n "permissions": {\n', ":3: not valid JSON"),
    "a comment": ('{\n// no\n"permissions": {}}', ":2: not valid JSON"),
    "a list": ("[]", ":1: the file has to be an object"),
    "nested": ("[" * 200_000, ": not valid JSON"),
    "permissions": ('{\n"permissions": []}', ":2: permissions has to be an object"),
    "rules": ('{"permissions": {\n\n"deny": "Bash"}}', ":3: permissions.deny has to be a list"),
    "a rule": ('{"permissions": {"deny": ["Bash",\n7]}}', ":2: each rule of permissions.deny has to be a text"),
    "an empty rule": (
        '{"permissions": {"deny": ["Bash",\n" "]}}',
        ":2: each rule of permissions.deny has to be a text",
    ),
    "twice": ('{"permissions": {"deny": ["Bash"],\n"deny": []}}', ":2: permissions has 'deny' twice"),
    "groups": ('{"hooks": {\n"PreToolUse": {}}}', ":2: hooks.PreToolUse has to be a list"),
    "no hooks": ('{"hooks": {"PreToolUse": [\n{}]}}', ":2: a group of hooks.PreToolUse needs its `hooks`"),
    "no type": ('{"hooks": {"PreToolUse": [{"hooks": [\n{"command": "x"}]}]}}', ":2: a hook needs its `type`"),
    "no command": (
        '{"hooks": {"PreToolUse": [{"hooks": [\n{"type": "command"}]}]}}',
        ":2: a hook of type command needs",
    ),
    "matcher": ('{"hooks": {"PreToolUse": [{"hooks": [], "matcher":\n"("}]}}', ":2: matcher '(' is no regular"),
    "timeout": (
        '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x",\n"timeout": -1}]}]}}',
        ":2: timeout has to be a number of seconds over 0, not -1",
    ),
    "args": (
        '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "args": [\n1]}]}]}}',
        ":2: each of args has to be a text",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_file_is_told_with_its_line(tmp_path: Path, fault: str) -> None:
    """R-PERM-7, R-CONF-2."""
    content, said = BROKEN[fault]

    with pytest.raises(BrokenClaudeSettings) as broken:
        read(tmp_path, content)

    assert f"{tmp_path}/settings.json{said}" in str(broken.value)


def test_a_file_that_is_missing_too_long_or_no_text_is_told(tmp_path: Path) -> None:
    long = tmp_path / "long.json"
    long.write_bytes(b" " * (2 * 1024 * 1024) + b"{}")
    binary = tmp_path / "binary.json"
    binary.write_bytes(b"\xff\xfe\x00{")

    said: list[str] = []
    for file in (tmp_path / "none.json", tmp_path, long, binary):
        with pytest.raises(BrokenClaudeSettings) as broken:
            read_claude_settings(file)
        said.append(str(broken.value).removeprefix(f"{file}: "))

    assert said == [
        "there is no such file",
        "there is no such file",
        "is longer than 1048576 bytes",
        "is not UTF-8 text",
    ]
