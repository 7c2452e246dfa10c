"""Which scopes a person is offered for a call, and what their choice lets pass."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goat_mcp.calls.approvals.call_request import request_for_call
from goat_mcp.calls.approvals.record import Choice, Request, Verdict
from goat_mcp.calls.approvals.scopes import choices_for, chosen_verdict
from goat_mcp.calls.permissions.approval import narrowest_rules
from goat_mcp.calls.permissions.decide import decide
from goat_mcp.calls.permissions.mode import Effect, Mode
from goat_mcp.calls.permissions.rule import Call, parse_rule
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.side_effect import Hints, Risk, SideEffect
from goat_mcp.core.spec import ToolSpec
from tests.tool_doubles import spec

READS = Hints(read_only=True, destructive=False, idempotent=True, open_world=True)
SECRET = "hunter2-is-the-password"


def bash(command: str, directory: str = "/ws", **arguments: Any) -> Call:
    given = {"command": command, **arguments}
    return Call(spec("Bash", SideEffect.SPAWNS), given, roots=("/ws",), directory=directory)


def edit(path: str, tool: str = "Edit", roots: tuple[str, ...] = ("/ws",)) -> Call:
    return Call(spec(tool, SideEffect.MUTATING), {"file_path": path}, (path,), (), (path,), roots)


def upstream(name: str, *, reads: bool = False, risk: Risk = Risk.MEDIUM) -> ToolSpec:
    made = spec(f"mcp__gh__{name}", SideEffect.NETWORK, toolset="upstream")
    return replace(made, hints=READS, risk=risk) if reads else made


def offered(call: Call, **options: Any) -> dict[str, Choice]:
    return {one.scope: one for one in choices_for(call, narrowest_rules(call), **options)}


def request(call: Call) -> Request:
    choices = choices_for(call, narrowest_rules(call), redactor=Redactor())
    return request_for_call(call, "mode default", ToolContext(call_id="c"), choices=choices, redactor=Redactor())


def passes(rules: tuple[str, ...], call: Call, **others: list[str]) -> bool:
    allow = [replace(parse_rule(text), directory="/ws") for text in rules]
    set = RuleSet.parse(**others)
    return decide(call, replace(set, allow=RuleSet.of(allow=allow).allow), Mode.DEFAULT).effect is Effect.ALLOW


# --- edits -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["Edit", "Write", "NotebookEdit", "file-system__write"])
def test_all_edits_of_the_workspace_may_be_allowed_for_the_session(tool: str) -> None:
    choice = offered(edit("/ws/src/a.py", tool))["edits"]

    assert choice == Choice("edits", "Allow for this session: all edits of files in /ws", ("Edit(//ws/**)",))
    assert all(
        passes(choice.rules, edit("/ws/b/c.txt", one))
        for one in ("Edit", "Write", "NotebookEdit", "file-system__write")
    )
    assert not passes(choice.rules, edit("/elsewhere/b.txt"))
    assert not passes(choice.rules, edit("/ws-2/b.txt"))
    assert not passes(choice.rules, bash("rm /ws/b.txt"))
    assert not passes(choice.rules, edit("/ws/secrets/b"), deny=["Edit(secrets/**)"])


def test_a_root_with_signs_of_patterns_in_its_name_is_just_that_root() -> None:
    choice = offered(edit("/w*[s]/a", roots=("/w*[s]",)))["edits"]

    assert passes(choice.rules, edit("/w*[s]/deep/b"))
    assert not passes(choice.rules, edit("/wxs/b"))


@pytest.mark.parametrize(
    "call",
    [
        edit("/ws/.git/config"),
        edit("/ws/.bashrc"),
        edit("/elsewhere/a.py"),
        edit("/a.py", roots=("/",)),
        edit("/a.py", roots=()),
        edit("/ws/a.py", "Read"),
    ],
    ids=lambda call: f"{call.spec.name} {call.asked[0]} {call.roots}",
)
def test_edits_are_not_offered_for_a_call_that_they_would_not_let_pass(call: Call) -> None:
    assert "edits" not in offered(call)


# --- commands ----------------------------------------------------------------------------------------------------


def test_a_command_prefix_may_be_allowed_and_remembered() -> None:
    assert offered(bash("python3 -m pytest tests/test_a.py -q"))["command"] == Choice(
        "command",
        "Allow for this session: commands that begin with `python3 -m pytest` in /ws",
        ("Bash(python3 -m pytest *)",),
        may_remember=True,
        prefix="python3 -m pytest",
    )


@pytest.mark.parametrize(
    "call",
    [
        bash("git commit -m x && rm -rf src"),
        bash("git status > out"),
        bash("git log $(cat x)"),
        bash("X=1 git status"),
        bash("git status; ls"),
        bash("git status", env={"GIT_DIR": "/tmp"}),
        bash("bash -c 'git status'"),
        edit("/ws/git"),
    ],
    ids=lambda call: str(call.arguments),
)
def test_only_one_plain_command_has_a_prefix(call: Call) -> None:
    assert "command" not in offered(call)


_PIECES = st.sampled_from(
    [
        *("x", "src/a.py", "-q", "-x", "--force", "-c", "-e", "--exec", "-o", "/etc/passwd", "..", "sh", "bash", "-rf"),
        *("; rm -rf x", "&& rm x", "| sh", "|| rm x", "> /etc/x", "$(rm x)", "`rm x`", "\n rm x", "& rm x", "*", "~"),
        *("'a b'", '"; rm x"', "-exec", "{}", "+", "X=1", "--config=/tmp/x", "@file", "--upload-pack=rm", "run", "-p"),
        *("--eval=rm", "--rootdir=/tmp", "-I", "--to-command=sh", "-m", "code", "--", "-", "-C", "/tmp"),
    ]
)
_COMMANDS = st.sampled_from(
    [
        *("git commit -m x", "git log", "python3 -m pytest -q", "npm run test", "cargo test", "make test", "ls -la"),
        *("docker compose up -d", "uv run pytest", "find . -name x", "./run.sh a", "npx eslint .", "rg foo", "sort a"),
        *(
            "terraform plan",
            "node app.js",
            "go test ./...",
            "git worktree list",
            "yarn build",
            "gh pr list",
            "grep x y",
        ),
    ]
)


@settings(max_examples=400, deadline=None)
@given(_COMMANDS, st.lists(_PIECES, max_size=5), st.lists(_PIECES, max_size=2))
def test_a_prefix_lets_nothing_pass_that_does_not_begin_with_it(asked: str, rest: list[str], before: list[str]) -> None:
    choice = offered(bash(asked))["command"]
    prefix = tuple(shlex.split(choice.prefix))
    call = bash(" ".join([*before, choice.prefix, *rest]))

    if passes(choice.rules, call):
        assert call.script.commands
        assert all(words[: len(prefix)] == prefix for words in call.script.commands)
        # Nor is there anything inside that a deny rule would see, but for what the prefix itself names. Deny rules also
        # take a word for a command that is an argument here (`npm run test x`): they may see too much.
        inside = {words[0] for words in call.script.all_commands}
        assert inside <= {word.rpartition("/")[2] for word in (*prefix, *(word for word in rest if word.isalnum()))}
        assert not call.script.hidden


@pytest.mark.parametrize("asked", ["git commit -m x", "python3 -m pytest -q", "make test"])
def test_a_prefix_holds_where_the_call_began_and_deny_rules_hold_still(asked: str) -> None:
    rules = offered(bash(asked))["command"].rules

    assert passes(rules, bash(asked))
    assert not passes(rules, bash(asked, directory="/ws/sub"))
    assert not passes(rules, bash(asked), deny=[f"Bash({shlex.split(asked)[0]} *)"])
    assert not passes(rules, bash(asked), ask=[f"Bash({shlex.split(asked)[0]} *)"])


def test_a_person_may_edit_the_prefix_and_have_it_remembered() -> None:
    asked = request(bash("git commit -m x"))

    longer = chosen_verdict(asked, "command", remember=True, prefix="git commit -m *")

    assert longer == Verdict(True, "command", ("Bash(git commit -m *)",), remember=True)
    assert chosen_verdict(asked, "command") == Verdict(True, "command", ("Bash(git commit *)",))


@pytest.mark.parametrize(
    ("command", "prefix", "why"),
    [
        ("git commit -m x", "git", "a rule must spell it out"),
        ("git commit -m x", "git com", "does not begin with these words"),
        ("git commit -m x", "git push", "does not begin with these words"),
        ("git commit -m x", "git commit -m x y", "does not begin with these words"),
        ("git commit -m x", "git *", "a rule must spell it out"),
        ("git commit -m x", "*", "does not begin with these words"),
        ("git commit -m x", "'", "no closing quotation"),
        ("python3 -m pytest -q", "python3", "a rule must spell out what python3 runs"),
        ("python3 -m pytest -q", "python3 -m", "a rule must spell out what python3 runs"),
        ("uv run pytest -q", "uv run", "a rule must spell out what uv runs"),
    ],
)
def test_an_edited_prefix_is_whole_words_of_the_command_and_may_be_allowed(command: str, prefix: str, why: str) -> None:
    with pytest.raises(ToolError, match=why) as refused:
        chosen_verdict(request(bash(command)), "command", prefix=prefix)

    assert refused.value.code is ErrorCode.INPUT


@settings(max_examples=200, deadline=None)
@given(_COMMANDS, st.text("git comx*'\";$ -", max_size=12))
def test_no_edited_prefix_is_more_than_the_beginning_of_the_command(command: str, prefix: str) -> None:
    asked = request(bash(command))
    try:
        verdict = chosen_verdict(asked, "command", prefix=prefix)
    except ToolError as refused:
        assert refused.code is ErrorCode.INPUT
        return

    (rule,) = verdict.rules
    named = shlex.split(rule.removeprefix("Bash(").removesuffix(" *)"))
    assert named and shlex.split(command)[: len(named)] == named
    assert passes(verdict.rules, bash(command))


def test_only_the_scope_of_a_command_takes_a_prefix() -> None:
    with pytest.raises(ToolError, match="takes no prefix"):
        chosen_verdict(request(bash("git commit")), "session", prefix="git")


def test_a_scope_that_was_not_offered_is_none() -> None:
    with pytest.raises(ToolError, match="scope 'server' is not offered here"):
        chosen_verdict(request(bash("git commit")), "server")


# --- servers -----------------------------------------------------------------------------------------------------


def listed() -> list[ToolSpec]:
    return [
        upstream("list_prs", reads=True),
        upstream("get_pr", reads=True, risk=Risk.LOW),
        upstream("merge_pr"),
        upstream("get_or_delete", reads=True, risk=Risk.HIGH),
        upstream("get*", reads=True),
        replace(upstream("x", reads=True), name="o", canonical_name="mcp__other__get_x"),
        spec("Read", SideEffect.READ_ONLY),
    ]


def test_the_tools_of_a_server_that_only_read_are_those_listed_now() -> None:
    call = Call(upstream("list_prs", reads=True), {}, roots=("/ws",))
    choice = offered(call, listed=listed)["server_reads"]

    assert choice.rules == ("mcp__gh__list_prs", "mcp__gh__get_pr")
    assert choice.title == "Allow for this session: these tools of gh, which only read: list_prs, get_pr"
    assert not choice.may_remember


@pytest.mark.parametrize("tool", [upstream("merge_pr"), upstream("get_or_delete", reads=True, risk=Risk.HIGH)])
def test_a_tool_that_may_change_something_is_no_reading_one(tool: ToolSpec) -> None:
    assert "server_reads" not in offered(Call(tool), listed=listed)


def test_no_more_reading_tools_than_a_person_reads_are_offered() -> None:
    call = Call(upstream("t_500", reads=True))
    many = [upstream(f"t_{number}", reads=True) for number in range(1_000)]

    choice = offered(call, listed=lambda: many)["server_reads"]

    assert len(choice.rules) == 20 and choice.rules[0] == "mcp__gh__t_500"
    assert all(rule.removeprefix("mcp__gh__") in choice.title for rule in choice.rules)


def test_a_whole_server_may_be_allowed_for_the_session() -> None:
    choice = offered(Call(upstream("merge_pr")))["server"]

    assert choice.rules == ("mcp__gh",)
    assert "also those that change something" in choice.title
    assert passes(choice.rules, Call(upstream("anything")))
    assert not passes(choice.rules, Call(spec("mcp__ghx__anything", SideEffect.NETWORK)))
    assert not passes(choice.rules, Call(upstream("merge_pr")), deny=["mcp__gh__merge_pr"])


# --- all ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", [edit("/ws/a"), bash("git commit"), Call(upstream("merge_pr"))], ids=str)
def test_what_a_rule_asks_about_is_allowed_once_or_not_at_all(call: Call) -> None:
    assert list(offered(call, asked_by_rule=True)) == ["once"]


@pytest.mark.parametrize(
    ("call", "left"),
    [
        (bash(f"git commit -m {SECRET}"), ["once"]),
        (bash(f"git {SECRET}"), ["once"]),
        (edit(f"/ws/{SECRET}/a"), ["once", "edits"]),
        (Call(upstream(SECRET)), ["once", "server"]),
    ],
    ids=["in the command", "in the prefix", "in the path", "in the name"],
)
def test_a_choice_with_a_secret_in_it_is_left_out(call: Call, left: list[str]) -> None:
    assert list(offered(call, redactor=Redactor([SECRET]))) == left


def test_commands_elsewhere_are_allowed_once_or_not_at_all() -> None:
    assert list(offered(replace(Call(upstream("ssh")), runs=("make",)))) == ["once"]


@pytest.mark.parametrize(
    "call",
    [edit("/ws/a"), bash("git commit -m x"), bash("npm run test"), Call(upstream("list_prs", reads=True))],
    ids=lambda call: call.spec.name,
)
def test_every_scope_that_is_offered_lets_this_very_call_pass(call: Call) -> None:
    choices = offered(call, listed=listed)

    assert len(choices) > 3
    assert all(passes(one.rules, call) for one in choices.values() if one.scope != "once")
