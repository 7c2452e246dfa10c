"""Approvals that last: for a session, or always; for whom they hold and what becomes of the file they are in."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ALWAYS, ALLOW_ONCE, ALLOW_SESSION
from goat_mcp.calls.permissions.mode import Approval, Effect
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.state.directory import StateDirectory
from tests.tool_doubles import spec

pytestmark = pytest.mark.anyio


def write(path: str) -> Call:
    return Call(spec("Write", SideEffect.MUTATING), {"file_path": path}, (path,), (), (path,), ("/ws",))


def bash(command: str) -> Call:
    return Call(spec("Bash", SideEffect.NETWORK), {"command": command}, roots=("/ws",))


class Person:
    """Answers every form with one choice and keeps what was shown."""

    def __init__(self, choice: str) -> None:
        self.choice = choice
        self.shown: list[list[str]] = []

    async def ask(self, form: Form) -> Answer:
        self.shown.append([option.title for option in form.questions[0].options])
        return Answer(Reply.ACCEPTED, {form.questions[0].name: self.choice})

    def ctx(self, session: str = "s", principal: str = "p") -> ToolContext:
        return ToolContext(call_id="c", session_key=session, principal=principal, ask=self.ask)


NOBODY = ToolContext(call_id="c", session_key="s", principal="p")


def warn(event: str, **facts: Any) -> None:
    raise AssertionError((event, facts))


@pytest.fixture
def permission(tmp_path: Path) -> Permission:
    return Permission(
        approval=Approval.ELICIT, remembered=RememberedRules(StateDirectory(tmp_path / "state"), "scope", warn)
    )


async def settled(permission: Permission, call: Call, ctx: ToolContext) -> str:
    try:
        return (await permission.settle(permission.decide(call, ctx), call, ctx)).reason
    except ToolError as refused:
        return str(refused.code)


async def test_once_is_once(permission: Permission) -> None:
    assert "allowed once" in await settled(permission, write("/ws/a.py"), Person(ALLOW_ONCE).ctx())

    assert await settled(permission, write("/ws/a.py"), NOBODY) == ErrorCode.PERMISSION


async def test_an_answer_for_the_session_holds_for_that_file_and_that_session(permission: Permission) -> None:
    await settled(permission, write("/ws/a.py"), Person(ALLOW_SESSION).ctx())

    assert await settled(permission, write("/ws/a.py"), NOBODY) == "rule Write(//ws/a.py)"
    assert await settled(permission, write("/ws/b.py"), NOBODY) == ErrorCode.PERMISSION
    other = ToolContext(call_id="c", session_key="other", principal="p")
    assert await settled(permission, write("/ws/a.py"), other) == ErrorCode.PERMISSION


async def test_always_is_written_down_and_holds_for_whoever_said_it_in_another_process(
    permission: Permission, tmp_path: Path
) -> None:
    await settled(permission, write("/ws/a.py"), Person(ALLOW_ALWAYS).ctx())

    again = RememberedRules(StateDirectory(tmp_path / "state"), "scope", warn)
    after_restart = Permission(approval=Approval.ELICIT, remembered=again)
    later = ToolContext(call_id="c", session_key="new", principal="p")
    assert await settled(after_restart, write("/ws/a.py"), later) == "rule Write(//ws/a.py)"
    stranger = ToolContext(call_id="c", session_key="s", principal="q")
    assert await settled(after_restart, write("/ws/a.py"), stranger) == ErrorCode.PERMISSION
    assert again.path.stat().st_mode & 0o777 == 0o600
    decision = after_restart.decide(write("/ws/a.py"), later)
    assert decision.rule is not None and decision.rule.origin == f"{again.path}:1"


async def test_the_form_says_which_rule_always_would_add(permission: Permission) -> None:
    person = Person(ALLOW_ONCE)

    await settled(permission, bash("npm run 'my build'"), person.ctx())

    assert person.shown == [
        [
            "Allow once",
            "Allow for this session: Bash(npm run 'my build')",
            "Always allow: Bash(npm run 'my build')",
            "Allow for this session: commands that begin with `npm run 'my build'`",
            "Always allow: commands that begin with `npm run 'my build'`",
            "Deny",
        ]
    ]


@pytest.mark.parametrize(
    "command",
    ["make > out", "cd build && rm -rf src", "echo $(date)", "x=1 make", "make &", "for i in 1; do make; done"],
)
async def test_a_command_that_no_rule_could_let_pass_again_is_allowed_once_or_not_at_all(
    permission: Permission, command: str
) -> None:
    person = Person(ALLOW_ONCE)

    await settled(permission, bash(command), person.ctx())

    assert person.shown == [["Allow once", "Deny"]]


@pytest.mark.parametrize(
    "call",
    [
        Call(spec("unheard_of", SideEffect.NETWORK)),
        Call(spec("WebFetch", SideEffect.NETWORK), {"url": "https://[::1"}),
        Call(spec("Bash", SideEffect.NETWORK), {"command": "make", "env": {"PATH": "/tmp"}}),
    ],
    ids=lambda call: call.spec.name,
)
async def test_a_call_that_no_rule_can_name_is_allowed_once_or_not_at_all(permission: Permission, call: Call) -> None:
    person = Person(ALLOW_ONCE)

    await settled(permission, call, person.ctx())

    assert person.shown == [["Allow once", "Deny"]]


@pytest.mark.parametrize("name", ["mcp__x__do(it)", "mcp__x__get*"])
async def test_a_tool_whose_name_no_rule_can_hold_is_allowed_once_or_with_its_server(
    permission: Permission, name: str
) -> None:
    person = Person(ALLOW_ONCE)

    await settled(permission, Call(spec(name, SideEffect.NETWORK)), person.ctx())

    server = "Allow for this session: all tools of x, also those that change something"
    assert person.shown == [["Allow once", server, "Deny"]]


async def test_an_answer_nobody_was_offered_is_no_answer(permission: Permission) -> None:
    assert await settled(permission, bash("make > out"), Person(ALLOW_ALWAYS).ctx()) == ErrorCode.PERMISSION


@pytest.mark.parametrize("path", ["/ws/.git/hooks/pre-commit", "/ws/src/asked.py"])
async def test_a_protected_path_and_an_ask_rule_are_asked_about_each_time(tmp_path: Path, path: str) -> None:
    permission = Permission(RuleSet.parse(ask=["Edit(src/**)"]), approval=Approval.HOST, roots=lambda: (Path("/ws"),))
    person = Person(ALLOW_ONCE)

    await settled(permission, write(path), person.ctx())

    assert person.shown == [["Allow once", "Deny"]]


async def test_the_settings_rule_for_that_very_path_lifts_its_protection() -> None:  # R-FILE-9
    path = "/ws/.git/hooks/pre-commit"

    def effect(rule: str) -> Effect:
        permission = Permission(RuleSet.parse(allow=[rule]), roots=lambda: (Path("/ws"),))
        return permission.decide(write(path), NOBODY).effect

    assert effect("Write(./.git/hooks/pre-commit)") is Effect.ALLOW
    assert effect(f"Edit(/{path})") is Effect.ALLOW
    assert [effect(rule) for rule in ("Write", "Write(.git/**)", "Write(./.git/hooks)", "Write(pre-commit)")] == [
        Effect.ASK
    ] * 4


async def test_a_line_that_a_killed_process_left_half_costs_that_rule_only(tmp_path: Path) -> None:
    problems: list[str] = []

    def note(event: str, **facts: Any) -> None:
        problems.append(facts["path"])

    rules = RememberedRules(StateDirectory(tmp_path), "scope", note)
    rules.add("p", ["Write(//ws/a)"])
    whole = rules.path.read_bytes()

    for cut in range(1, len(whole) - 1):
        rules.path.write_bytes(whole[:cut])
        rules.add("p", ["Write(//ws/b)"])
        assert [rule.text for rule in rules.of("p")] == ["Write(//ws/b)"]

    assert set(problems) == {f"{rules.path}:1"}


async def test_a_rule_that_somebody_broke_by_hand_allows_nothing(tmp_path: Path) -> None:
    problems: list[str] = []

    def note(event: str, **facts: Any) -> None:
        problems.append(facts["problem"])

    rules = RememberedRules(StateDirectory(tmp_path), "scope", note)
    rules.add("p", ["Write(//ws/a)"])
    rules.path.write_text(json.dumps({"allow": "*", "principal": "p"}) + "\n[]\n" + rules.path.read_text())

    assert [rule.text for rule in rules.of("p")] == ["Write(//ws/a)"]
    assert len(problems) == 2


def bash_in(directory: str, command: str = "make") -> Call:
    return Call(spec("Bash", SideEffect.NETWORK), {"command": command}, roots=("/ws",), directory=directory)


@pytest.mark.parametrize("choice", [ALLOW_SESSION, ALLOW_ALWAYS])
async def test_a_command_that_was_allowed_in_one_directory_is_another_one_elsewhere(
    permission: Permission, choice: str
) -> None:
    person = Person(choice)
    await settled(permission, bash_in("/ws"), person.ctx())

    assert person.shown[0][1] == "Allow for this session: Bash(make) in /ws"
    assert await settled(permission, bash_in("/ws"), NOBODY) == "rule Bash(make)"
    assert await settled(permission, bash_in("/ws/sub"), NOBODY) == ErrorCode.PERMISSION


async def test_a_script_that_the_settings_allow_is_that_of_the_workspace(tmp_path: Path) -> None:
    permission = Permission(RuleSet.parse(allow=["Bash(./run.sh)", "Bash(npm test)"]), approval=Approval.ELICIT)

    assert permission.decide(bash_in("/ws", "./run.sh"), NOBODY).effect is Effect.ALLOW
    assert permission.decide(bash_in("/ws/sub", "./run.sh"), NOBODY).effect is Effect.ASK
    assert permission.decide(bash_in("/ws/sub", "npm test"), NOBODY).effect is Effect.ALLOW


@pytest.mark.parametrize("kind", ["*", "gen*", "prompt:*", "explorer)", "a b"])
async def test_a_model_does_not_write_the_pattern_that_is_offered(permission: Permission, kind: str) -> None:
    person = Person(ALLOW_ONCE)

    await settled(permission, Call(spec("Agent", SideEffect.SPAWNS), {"subagent_type": kind}), person.ctx())

    assert person.shown == [["Allow once", "Deny"]]


async def test_always_holds_for_a_path_through_a_link_as_well(permission: Permission) -> None:
    call = Call(spec("Write", SideEffect.MUTATING), {}, ("/ws/link",), (), ("/ws/file",), ("/ws",))

    await settled(permission, call, Person(ALLOW_ALWAYS).ctx())

    assert await settled(permission, call, NOBODY) == "rule Write(//ws/link)"


@pytest.mark.parametrize("line", ["[" * 100_000, '{"allow": ["Bash"], "principal": "p"}', "3", '{"allow": "Bash"}'])
async def test_a_line_that_nobody_wrote_here_allows_nothing_and_stops_nothing(tmp_path: Path, line: str) -> None:
    rules = RememberedRules(StateDirectory(tmp_path), "scope", lambda *_, **__: None)
    rules.add("p", ["Write(//ws/a)"])
    rules.path.write_text(line + "\n" + rules.path.read_text())

    assert [rule.text for rule in rules.of("p")] == ["Write(//ws/a)"]


@pytest.mark.parametrize("fault", ["a link", "written by others"])
async def test_rules_that_somebody_else_could_have_written_are_not_used(tmp_path: Path, fault: str) -> None:
    rules = RememberedRules(StateDirectory(tmp_path / "state"), "scope", lambda *_, **__: None)
    rules.add("p", ["Bash"])
    if fault == "a link":
        rules.path.rename(tmp_path / "elsewhere")
        rules.path.symlink_to(tmp_path / "elsewhere")
    else:
        rules.path.chmod(0o666)

    assert rules.of("p") == ()


async def test_one_root_inside_another_protects_no_less() -> None:
    permission = Permission(roots=lambda: (Path("/ws"), Path("/ws/.git")))

    assert permission.decide(write("/ws/.git/hooks/pre-commit"), NOBODY).reason.startswith("protected")
