"""Variables that a call hands to its command count as exported by the command itself, for every rule that denies or
asks (R-SHELL-5b)."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.decide import decide
from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import RuleConditions, RuleSet
from goat_mcp.commands.shell.script_rules import CommandPattern
from goat_mcp.core.side_effect import SideEffect
from tests.manifests.calling import Caller
from tests.tool_doubles import spec

_BASH = spec("Bash", SideEffect.NETWORK)
_RM = RuleSet.parse(deny=["Bash(rm:*)"])
_RUNS_RM: list[tuple[str, Mapping[str, str]]] = [
    ("$X file", {"X": "rm"}),
    ("$X", {"X": "rm file"}),
    ("nice $X file", {"X": "rm"}),
    ("made-up $X file", {"X": "/bin/rm"}),
    ("made-up", {"RUNNER": "rm"}),
    ("made-up", {"RUNNER": "sh -c 'rm x'"}),
    ("made-up", {"RUNNER": 'a "b\n$(rm x)" ; é'}),
    ("made-up", {"RUNNER": "it's\nrm x"}),
    ('eval "$X"', {"X": "rm file"}),
    ('bash -c "$X"', {"X": "rm file"}),
    ("bash -x a.sh", {"PS4": "$(rm x)"}),
    ("bash -i", {"PROMPT_COMMAND": "rm x"}),
    ("bash -i", {"PS1": "`rm x`"}),
    ("bash a.sh", {"BASH_ENV": "/proc/self/fd/0"}),
    ("ls", {"BASH_FUNC_ls": "() { rm x; }"}),
    ("git log", {"GIT_PAGER": "rm x"}),
    ("git log", {"PAGER": "rm x"}),
    ("git commit", {"EDITOR": "rm"}),
    ("git commit", {"GIT_EDITOR": "/bin/rm -f"}),
    ("git fetch", {"GIT_SSH_COMMAND": "rm x"}),
    ("git fetch", {"GIT_SSH": "/bin/rm"}),
    ("git diff", {"GIT_EXTERNAL_DIFF": "rm"}),
    ("git z", {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "alias.z", "GIT_CONFIG_VALUE_0": "!rm x"}),
    ("git z", {"GIT_CONFIG_PARAMETERS": "'alias.z=!rm x'"}),
    ("man ls", {"MANPAGER": "rm x"}),
    ("less f", {"LESSOPEN": "|rm %s"}),
    ("tar cf a b", {"TAR_OPTIONS": "--checkpoint=1 --checkpoint-action=exec=rm"}),
    ("rsync a h:b", {"RSYNC_RSH": "rm"}),
    ("make", {"MAKEFLAGS": "--eval=x:;rm"}),
    ("make", {"SHELL": "/bin/rm"}),
    ("perl a.pl", {"PERL5OPT": "-e'system(q(rm x))'"}),
    ("python a.py", {"BROWSER": "rm"}),
    ("sudo -A ls", {"SUDO_ASKPASS": "/bin/rm"}),
    ("docker compose up", {"DOCKER_HOST": "ssh://h", "X": "rm"}),
    ("fzf", {"FZF_DEFAULT_COMMAND": "rm x"}),
    ("npm test", {"npm_config_script_shell": "rm"}),
    ("cargo build", {"RUSTC_WRAPPER": "rm"}),
    ("echo $((X))", {"X": "a[$(rm x)]"}),
    ("made-up", {"A": "b", "C": "d", "E": "x;rm y"}),
    ("ls", {"X": "a" * 17_000}),
]
_SHOWS_A_SECRET: list[tuple[str, Mapping[str, str]]] = [
    ('cat "$F"', {"F": "secrets/key"}),
    ("cat $F", {"F": "./secrets/key"}),
    ("head -1 ${F}", {"F": "sd/key"}),
    ('while read l; do echo "$l"; done < "$F"', {"F": "secrets/key"}),
    ('echo "$(<"$F")"', {"F": "src/../secrets/key"}),
    ('cd src; cat "../$F"', {"F": "secrets/key"}),
    ("for f in $F; do cat $f; done", {"F": "secrets/key"}),
    ("cat $F", {"F": "secrets/*"}),
    ("cat $F", {"G": "x", "F": "{docs,secrets}/key"}),
]
_HARMLESS: list[tuple[str, Mapping[str, str]]] = [
    ("make test", {"CI": "1"}),
    ("make", {"CFLAGS": "-O2 -Wall", "PREFIX": "/opt/x"}),
    ("npm test", {"NODE_ENV": "test", "FORCE_COLOR": "0"}),
    ("pytest -q", {"PYTHONPATH": "src:tests/rm", "PYTHONHASHSEED": "0"}),
    ("git commit -m 'rm old file'", {"GIT_AUTHOR_NAME": "Zoë O'Neil", "GIT_AUTHOR_EMAIL": "z@x.org"}),
    ("cargo test", {"RUST_LOG": "debug,hyper=info", "RUST_BACKTRACE": "1"}),
    ("go test ./...", {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0"}),
    ("ls", {"EMPTY": ""}),
    ("made-up --x", {"JSON": '{"a": [1, 2], "b": "c"}'}),
    ("docker ps", {"DOCKER_HOST": "tcp://127.0.0.1:2375"}),
]


def _call(command: str, env: Mapping[str, str], folder: str = "/ws", **more: Any) -> Call:
    return Call(_BASH, {"command": command, "env": env}, roots=(folder,), directory=folder, **more)


@pytest.mark.parametrize(("command", "env"), _RUNS_RM, ids=str)
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.BYPASS])
def test_f13_05_env_a_denied_program_is_denied_in_a_variable_too(
    command: str, env: Mapping[str, str], mode: Mode
) -> None:
    assert decide(_call(command, env), _RM, mode).effect is Effect.DENY
    assert decide(_call(command, env), RuleSet.parse(ask=["Bash(rm:*)"]), Mode.BYPASS).effect is Effect.ASK


@pytest.mark.parametrize(("command", "env"), _SHOWS_A_SECRET, ids=str)
@pytest.mark.parametrize("rule", ["Read(./secrets/**)", "Read(secrets)"])
def test_f13_05_env_a_file_that_may_not_be_read_is_not_named_by_a_variable(
    tmp_path: Path, command: str, env: Mapping[str, str], rule: str
) -> None:
    for name in ("secrets", "src", "docs"):
        (tmp_path / name).mkdir()
    (tmp_path / "secrets" / "key").write_text("x")
    (tmp_path / "sd").symlink_to("secrets")
    call = _call(command, env, str(tmp_path))

    assert decide(call, RuleSet.parse(deny=[rule]), Mode.BYPASS).effect is Effect.DENY
    assert decide(call, RuleSet.parse(ask=[rule]), Mode.BYPASS).effect is Effect.ASK


@pytest.mark.parametrize(
    "rule", ["Bash(rm:*)", "Bash(export:*)", "Edit(./secrets/**)", "Write(./secrets/**)", "Read(b)"]
)
@pytest.mark.parametrize(
    "command", ['echo x > "$F"', "tee $F < a", 'cp a "$F"', 'rm "${F}"', "ls $F", "made-up", "$F", "cat a > b", "'"]
)
@pytest.mark.parametrize("value", ["secrets/key", "rm", "a b", 'it\'s\n"b"', "\\", "$(rm x)", "é", "\x1b[0m", "b"])
def test_f13_05_env_counts_as_an_export_in_front_for_every_rule(rule: str, command: str, value: str) -> None:
    written = Call(_BASH, {"command": f"export F={shlex.quote(value)}\n{command}"}, roots=("/ws",), directory="/ws")

    for rules in (RuleSet.parse(deny=[rule]), RuleSet.parse(ask=[rule])):
        assert decide(_call(command, {"F": value}), rules, Mode.BYPASS) == decide(written, rules, Mode.BYPASS)


@pytest.mark.parametrize(("command", "env"), _HARMLESS, ids=str)
def test_a_variable_that_names_nothing_denied_changes_nothing(
    tmp_path: Path, command: str, env: Mapping[str, str]
) -> None:
    rules = RuleSet.parse(deny=["Bash(rm:*)", "Bash(git push:*)", "Read(./secrets/**)"])

    assert decide(_call(command, env, str(tmp_path)), rules, Mode.BYPASS).effect is Effect.ALLOW


@pytest.mark.parametrize("name", ["PATH", "LD_PRELOAD", "GIT_DIR", "HOME", "A"])
def test_no_allow_rule_means_a_command_with_variables_of_its_own(name: str) -> None:
    rules = RuleSet.parse(allow=["Bash(git status:*)", "Bash(git status)"])

    assert decide(_call("git status", {name: "x"}), rules, Mode.DONT_ASK).effect is Effect.DENY
    assert decide(_call("git status", {}), rules, Mode.DONT_ASK).effect is Effect.ALLOW
    assert not rules.allow.rules[0].covers(_call("git status", {name: "x"}))


def test_shell_text_beside_the_command_sees_the_variables_too() -> None:
    call = _call("sh a.sh", {"X": "rm"}, runs=("made-up $X file",))

    assert decide(call, _RM, Mode.BYPASS).effect is Effect.DENY


def test_only_listed_commands_may_run_by_a_variable_too() -> None:
    def listed(env: Mapping[str, str]) -> Effect:
        rules = RuleSet(only_commands=(CommandPattern.parse("git *"),))
        return decide(_call("git log", env), rules, Mode.BYPASS).effect

    assert (listed({"LANG": "C"}), listed({"GIT_PAGER": "rm x"})) == (Effect.ALLOW, Effect.DENY)


def test_a_condition_of_a_hook_sees_the_variables_too() -> None:
    holds = RuleConditions(lambda: ("/ws",), str)

    assert holds("Bash(rm:*)", _BASH, {"command": "made-up", "env": {"X": "rm"}})
    assert holds("Bash(rm:*)", _BASH, {"command": "$X", "env": {"X": "ls"}})
    assert not holds("Bash(rm:*)", _BASH, {"command": "made-up", "env": {"X": "ls"}})


@pytest.mark.anyio
@pytest.mark.parametrize("tool", ["Bash", "bash__exec"])
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
async def test_f13_05_env_no_tool_that_takes_variables_runs_a_denied_program(
    tmp_path: Path, tool: str, mode: str
) -> None:
    one = Caller(tmp_path, {"mode": mode, "permissions": {"deny": ["Bash(rm *)"], "allow": ["Bash"]}})
    (one.project / "kept.txt").write_text("kept")

    result = await one.call(tool, command="nice $X kept.txt", env={"X": "rm"})
    by_name = await one.call(tool, command="xargs -a names env", env={"X": "rm kept.txt"})

    assert (result.error_code, by_name.error_code) == ("E_PERMISSION", "E_PERMISSION")
    assert (one.project / "kept.txt").exists()
