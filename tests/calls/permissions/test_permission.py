"""Who answers when the decision is to ask, and which paths nobody may change unasked."""

from __future__ import annotations

from pathlib import Path

import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ONCE, DENY
from goat_mcp.calls.permissions.mode import Approval, Effect, Mode
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.rule import Call
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.core import platform
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.rights import NO_LIMITS, Rights
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.files.workspace.protected import protected_reason
from tests.tool_doubles import spec

pytestmark = pytest.mark.anyio

WRITE = spec("Write", SideEffect.MUTATING)


def answering(answer: str | None) -> ToolContext:
    async def ask(form: Form) -> Answer:
        assert "Write" in form.message
        question = form.questions[0]
        return Answer(Reply.UNANSWERED) if answer is None else Answer(Reply.ACCEPTED, {question.name: answer})

    return ToolContext(call_id="c", ask=ask)


NOBODY = ToolContext(call_id="c")


async def outcome(permission: Permission, ctx: ToolContext, writes: tuple[str, ...] = ()) -> ErrorCode | Effect:
    try:
        call = Call(WRITE, writes=writes)
        return (await permission.settle(permission.decide(call, ctx), call, ctx)).effect
    except ToolError as refusal:
        return refusal.code


@pytest.mark.parametrize(
    ("approval", "ctx", "expected"),
    [
        (Approval.HOST, NOBODY, Effect.ALLOW),
        (Approval.ELICIT, NOBODY, ErrorCode.PERMISSION),
        (Approval.ELICIT, answering(ALLOW_ONCE), Effect.ALLOW),
        (Approval.ELICIT, answering(DENY), ErrorCode.PERMISSION),
        (Approval.ELICIT, answering(None), ErrorCode.PERMISSION),
        (Approval.DENY, answering(ALLOW_ONCE), ErrorCode.PERMISSION),
    ],
)
async def test_who_answers_an_ask_of_the_mode(approval: Approval, ctx: ToolContext, expected: object) -> None:
    assert await outcome(Permission(approval=approval), ctx) is expected


async def test_whoever_is_asked_sees_what_the_call_would_do() -> None:
    shown: list[str] = []

    async def ask(form: Form) -> Answer:
        shown.append(form.message)
        return Answer(Reply.ACCEPTED, {form.questions[0].name: ALLOW_ONCE})

    permission = Permission(approval=Approval.ELICIT)
    arguments = {"file_path": "/ws/a\u202etxt.py", "content": "x" * 9_000, "note": "a\ncount: 4", "count": 3}
    call = Call(WRITE, arguments)
    await permission.settle(permission.decide(call, NOBODY), call, ToolContext(call_id="c", ask=ask))

    lines = shown[0].splitlines()
    assert lines[:2] == ["Allow Write? (mode default)", "Risk: medium: changes"]
    assert lines[2] == "file_path: /ws/a\\u202etxt.py"
    assert len(lines[3]) < 4_100 and "characters cut" in lines[3]
    assert lines[4:] == ["note: a", "    count: 4", "count: 3"]


async def test_a_command_that_rules_could_let_pass_is_shown_whole() -> None:
    shown: list[str] = []

    async def ask(form: Form) -> Answer:
        shown.append(form.message)
        return Answer(Reply.CANCELLED)

    command = "echo " + "x" * 16_000
    call = Call(spec("Bash", SideEffect.NETWORK), {"command": command})
    with pytest.raises(ToolError):
        permission = Permission(approval=Approval.ELICIT)
        await permission.settle(permission.decide(call, NOBODY), call, ToolContext(call_id="c", ask=ask))

    assert command in shown[0]


async def test_the_host_does_not_stand_in_for_an_ask_rule() -> None:
    permission = Permission(rules=RuleSet.parse(ask=["Write"]), approval=Approval.HOST)

    assert await outcome(permission, NOBODY) is ErrorCode.PERMISSION
    assert await outcome(permission, answering(ALLOW_ONCE)) is Effect.ALLOW


@pytest.mark.parametrize("mode", [Mode.ACCEPT_EDITS, Mode.BYPASS, Mode.DEFAULT])
async def test_a_protected_path_is_asked_about_in_every_mode(mode: Mode) -> None:
    permission = Permission(modes=SessionModes(mode), approval=Approval.HOST)

    assert await outcome(permission, NOBODY, ("/ws/.git/hooks/pre-commit",)) is ErrorCode.PERMISSION
    assert await outcome(permission, NOBODY, ("/ws/src/a.py",)) is Effect.ALLOW


async def test_plan_mode_has_its_own_error() -> None:
    assert await outcome(Permission(modes=SessionModes(Mode.PLAN)), NOBODY) is ErrorCode.PLAN_MODE


async def test_a_refusal_names_the_rule_that_would_allow() -> None:
    permission = Permission(modes=SessionModes(Mode.DONT_ASK))

    with pytest.raises(ToolError) as caught:
        await permission.settle(
            permission.decide(Call(WRITE, writes=("/ws/a.py",)), NOBODY), Call(WRITE, writes=("/ws/a.py",)), NOBODY
        )

    assert "permissions.allow: [Write] (Write(//ws/a.py) allows no more than this)" in caught.value.suggestion


async def test_a_refusal_names_the_command_that_would_allow_no_more_than_this() -> None:
    permission = Permission(modes=SessionModes(Mode.DONT_ASK), rules_command="goat-mcp rules allow")
    call = Call(WRITE, writes=("/ws/a b.py",))

    with pytest.raises(ToolError) as caught:
        await permission.settle(permission.decide(call, NOBODY), call, NOBODY)

    assert caught.value.suggestion == (
        "The user can allow it with `goat-mcp rules allow 'Write(//ws/a b.py)'`, "
        "or all calls of Write with the rule permissions.allow: [Write]."
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("C:\\ws\\a b.py", '`goat-mcp rules allow "Write(//c/ws/a b.py)"`, or'),
        ("C:\\ws\\$x.py", "the rule permissions.allow: [Write] (Write(//c/ws/$x.py) allows no more than this)"),
    ],
)
async def test_on_windows_its_command_is_one_for_cmd_and_powershell(
    path: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(platform, "SYSTEM", "windows")
    permission = Permission(modes=SessionModes(Mode.DONT_ASK), rules_command="goat-mcp rules allow")
    call = Call(WRITE, writes=(path, path.lower()[0] + path[1:]))  # as asked for, and as it is on disk

    with pytest.raises(ToolError) as caught:
        await permission.settle(permission.decide(call, NOBODY), call, NOBODY)

    assert words in caught.value.suggestion
    assert caught.value.suggestion.count("ws/") == 1


@pytest.mark.parametrize(
    "path",
    [
        "/w/.git/hooks/pre-commit",
        "/w/.GIT/Hooks/pre-push",
        "/w/sub/.git/config",
        "/w/.goat/rules",
        "/w/.goat-mcp.yaml",
        "/w/goat-mcp.yaml",
        "/w/.mcp.json",
        "/home/me/.config/goat-mcp/upstreams.json",
        "/home/me/.config/Claude/claude_desktop_config.json",
        "/w/.vscode/tasks.json",
        "/w/.idea/workspace.xml",
        "/w/.bashrc",
        "/w/home/.zshrc",
        "/w/.claude/settings.json",
        "/w/.claude",
        "/w/.git/commondir",
        "/w/.git/worktrees/a/config.worktree",
        "/w/.git/rebase-merge/git-rebase-todo",
        "/w/.config/fish/conf.d/x.fish",
        "/w/x.code-workspace",
        "/w/.zlogout",
    ],
)
def test_protected_paths(path: str) -> None:
    assert protected_reason(path)


@pytest.mark.parametrize(
    "path", ["/w/.gitignore", "/w/src/config", "/w/git/hooks/x", "/w/.github/workflows/ci.yml", "/w/goat.py"]
)
def test_ordinary_paths(path: str) -> None:
    assert protected_reason(path) is None


async def test_what_is_protected_is_judged_below_the_workspace() -> None:
    permission = Permission(roots=lambda: (Path("/home/me/.claude/worktrees/x"),))

    assert await outcome(permission, NOBODY, ("/home/me/.claude/worktrees/x/src/a.py",)) is Effect.ALLOW
    assert await outcome(permission, NOBODY, ("/home/me/.claude/worktrees/x/.mcp.json",)) is ErrorCode.PERMISSION


def decided(modes: SessionModes, rights: Rights, writes: tuple[str, ...] = ()) -> Effect:
    ctx = ToolContext(call_id="c", session_key="agent:1", rights=rights)
    return Permission(modes=modes).decide(Call(WRITE, writes=writes), ctx).effect


def test_an_agents_mode_only_narrows_and_a_nested_one_does_not_widen_it_again() -> None:
    asking = NO_LIMITS.narrowed(allowed=None, modes=("default",))
    planning = NO_LIMITS.narrowed(allowed=None, modes=("plan",))
    free = SessionModes(Mode.BYPASS)

    assert decided(free, NO_LIMITS) is Effect.ALLOW
    assert decided(free, asking) is Effect.ASK
    assert (
        decided(SessionModes(Mode.DEFAULT), NO_LIMITS.narrowed(allowed=None, modes=("bypassPermissions",)))
        is Effect.ASK
    )
    assert decided(free, planning.narrowed(allowed=None, modes=("bypassPermissions",))) is Effect.DENY


def test_an_agent_is_in_the_mode_of_the_session_it_works_for() -> None:
    modes = SessionModes(Mode.PLAN)
    modes.leave_plan("stdio")

    agents = NO_LIMITS.narrowed(allowed=None, client_session="stdio")

    assert decided(modes, agents) is Effect.ASK
    assert decided(modes, NO_LIMITS) is Effect.DENY


def test_an_agent_bound_to_a_directory_writes_nowhere_else() -> None:
    bound = NO_LIMITS.narrowed(allowed=None, writes_below="/ws/.worktrees/a")
    free = SessionModes(Mode.BYPASS)

    assert decided(free, bound, ("/ws/.worktrees/a/x.py",)) is Effect.ALLOW
    assert decided(free, bound, ("/ws/x.py",)) is Effect.DENY
    assert decided(free, bound, ("/ws/.worktrees/ab/x.py",)) is Effect.DENY
