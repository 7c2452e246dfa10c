"""Hooks that are programs, through the pipeline: what they are given, and what follows from what they answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.hooks.command import HookCommand, Matcher
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.calls.pipeline import CallRequest
from goat_mcp.core.context import ToolContext
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, text_result
from goat_mcp.core.rights import Rights
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.processes.process_table import living_processes
from tests.calls.hooks.programs import hooked, imported, own, programs, saying, script, specific
from tests.calls.test_pipeline import CTX, NOTHING, audit_lines, pipeline_over
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio

Make = Callable[..., HookCommand]
BOTH = pytest.mark.parametrize("make", [own, imported], ids=["own", "imported"])


def outcomes(folder: Path) -> list[tuple[str, str]]:
    return [(one["hook"], one["result"]) for one in audit_lines(folder)[0].get("hooks", [])]


@BOTH
async def test_a_program_gets_the_call_as_json_and_no_word_of_it_anywhere_else(tmp_path: Path, make: Make) -> None:
    """PR-29, R-HOOK-1: shell syntax in the input stays text."""
    command = f"echo '$(touch {tmp_path}/a)' `touch {tmp_path}/b`; touch {tmp_path}/c\n\"$(id)"
    hook = script(tmp_path, "guard", f'env > "{tmp_path}/env"; tr "\\0" "\\n" < /proc/$$/cmdline > "{tmp_path}/words"')
    tool = fake("Bash")

    result = await hooked(tmp_path, tool, make(hook.argv)).call("Bash", {"command": command}, CTX)

    assert (result.text, tool.calls) == ("done", [{"command": command}])
    assert hook.inputs == [
        {
            "session_id": "local",
            "transcript_path": "",
            "cwd": "/project",
            "permission_mode": "default",
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": "call-1",
        }
    ]
    assert not any((tmp_path / name).exists() for name in "abc")
    assert (tmp_path / "words").read_text().splitlines() == list(hook.argv)
    assert "touch" not in (tmp_path / "env").read_text()


async def test_a_program_sees_a_few_variables_and_those_it_was_promised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R-HOOK-1: minimal environment."""
    monkeypatch.setenv("CANARY", "secret")
    monkeypatch.setenv("PROMISED", "yes")
    monkeypatch.setenv("SSH_AUTH_SOCK", "/run/agent")
    mine = script(tmp_path, "mine", f'env > "{tmp_path}/mine.env"')
    theirs = script(tmp_path, "theirs", f'env > "{tmp_path}/theirs.env"')

    await hooked(tmp_path, fake("Read"), own(mine.argv, env=("PROMISED",)), imported(theirs.argv)).call("Read", {}, CTX)

    def names(which: str) -> set[str]:
        return {line.partition("=")[0] for line in (tmp_path / f"{which}.env").read_text().splitlines()}

    usual = {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TMPDIR",
        "GOAT_MCP_CALL",
        "PWD",
        "OLDPWD",
        "_",
        "SHLVL",
    }
    assert {name for name in names("mine") - usual if not name.startswith("LC_")} == {"PROMISED"}
    assert {name for name in names("theirs") - usual if not name.startswith("LC_")} == {"CLAUDE_PROJECT_DIR"}


FAILURES = {
    "nonzero": "echo oops >&2; exit 1",
    "timeout": "sleep 60",
    "garbage": "echo certainly, go ahead",
    "broken json": "echo '{\"hookSpecificOutput\": '",
    "too big": "head -c 2000000 /dev/zero | tr '\\0' 'x'",
    "unknown member": 'echo \'{"permissionDecision": "deny"}\'',
    "wrong type": 'echo \'{"continue": "no"}\'',
    "another event": 'echo \'{"hookSpecificOutput": {"hookEventName": "Stop"}}\'',
    "unknown decision": specific(permissionDecision="perhaps"),
    "put off": specific(permissionDecision="defer"),
    "killed": "kill -9 $$",
    "missing": None,
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("kind", ["own", "observing", "imported", "imported, onFailure: block"])
async def test_every_failure_before_a_call_means_what_the_kind_of_hook_says(
    tmp_path: Path, failure: str, kind: str
) -> None:
    """R-HOOK-2: ours refuse, an observing one logs, Claude Code's logs and lets pass."""
    body = FAILURES[failure]
    if isinstance(body, dict):
        argv = saying(tmp_path, "guard", body).argv
    else:
        argv = script(tmp_path, "guard", body).argv if body is not None else (str(tmp_path / "nothing"),)
    timeout_s = 0.5 if failure == "timeout" else 20.0
    hook = {
        "own": own(argv, timeout_s=timeout_s),
        "observing": own(argv, timeout_s=timeout_s, observes=True, refuses_on_failure=False),
        "imported": imported(argv, timeout_s=timeout_s),
        "imported, onFailure: block": imported(argv, timeout_s=timeout_s, refuses_on_failure=True),
    }[kind]
    tool = fake("Write", SideEffect.NONE)

    result = await hooked(tmp_path, tool, hook).call("Write", {}, CTX)

    # What is no JSON to Claude Code is plain text, which it passes over; unknown members too.
    is_failure_there = failure not in ("garbage", "broken json", "unknown member")
    refused = kind == "own" or (kind == "imported, onFailure: block" and is_failure_there)
    assert (result.error_code, len(tool.calls)) == (("E_HOOK_DENIED", 0) if refused else (None, 1))
    said = outcomes(tmp_path)[0][1]
    assert ("failed" in said) == (kind in ("own", "observing") or is_failure_there)
    assert said.startswith("observed") == (kind == "observing")


@pytest.mark.parametrize("failure", ["nonzero", "timeout", "garbage", "too big", "missing", "unknown member"])
@pytest.mark.parametrize("is_error", [False, True], ids=["after a success", "after a failure"])
@BOTH
async def test_a_failure_after_a_call_is_noted_and_the_result_comes_once(
    tmp_path: Path, failure: str, make: Make, is_error: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-HOOK-2: what is done is done."""
    body = FAILURES[failure]
    argv = script(tmp_path, "guard", str(body)).argv if body is not None else (str(tmp_path / "nothing"),)
    event = "PostToolUseFailure" if is_error else "PostToolUse"
    answer = ToolError(ErrorCode.IO, "disk full") if is_error else text_result("written")
    tool = fake("Write", SideEffect.NONE, answer=answer)

    hook = make(argv, event=event, timeout_s=0.5 if failure == "timeout" else 20.0)
    result = await hooked(tmp_path, tool, hook).call("Write", {}, CTX)

    assert len(tool.calls) == 1
    assert (result.is_error, result.text.count("disk full" if is_error else "written")) == (is_error, 1)
    is_failure = make is own or failure not in ("garbage", "unknown member")
    assert ("hook failed" in capsys.readouterr().err) == is_failure
    assert ("[hook hook failed; the call had run" in result.text) == (make is own)


@BOTH
async def test_exit_code_two_refuses_with_what_the_program_printed_as_an_error(tmp_path: Path, make: Make) -> None:
    hook = script(tmp_path, "guard", "echo 'no writing on Fridays' >&2; exit 2")
    tool = fake("Write", SideEffect.NONE)

    result = await hooked(tmp_path, tool, make(hook.argv)).call("Write", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_HOOK_DENIED", [])
    assert result.text.startswith("no writing on Fridays\n")
    assert outcomes(tmp_path) == [("hook", "deny")]


@BOTH
@pytest.mark.parametrize("allows", [specific(permissionDecision="allow"), {"decision": "approve"}, {}])
async def test_exit_code_two_refuses_whatever_the_answer_says(
    tmp_path: Path, make: Make, allows: dict[str, Any]
) -> None:
    hook = saying(tmp_path, "guard", allows, exit_code=2)
    tool = fake("Write", SideEffect.NONE)

    result = await hooked(tmp_path, tool, make(hook.argv)).call("Write", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_HOOK_DENIED", [])


@pytest.mark.parametrize(
    ("said", "reason", "interrupts"),
    [
        (specific(permissionDecision="deny", permissionDecisionReason="not this one"), "not this one", False),
        ({"decision": "block", "reason": "not this one"}, "not this one", False),
        ({"continue": False, "stopReason": "the build is red"}, "a hook stopped the work: the build is red", True),
    ],
)
@BOTH
async def test_an_answer_refuses_with_its_reason(
    tmp_path: Path, make: Make, said: dict[str, Any], reason: str, interrupts: bool
) -> None:
    tool = fake("Write", SideEffect.NONE)
    pipeline = hooked(tmp_path, tool, make(saying(tmp_path, "guard", said).argv))

    outcome = await pipeline.call_all([CallRequest("Write", {}, CTX), CallRequest("Write", {}, CTX)])

    assert [result.error_code for result in outcome.results] == [
        "E_HOOK_DENIED",
        "E_CANCELLED" if interrupts else "E_HOOK_DENIED",
    ]
    assert outcome.results[0].text.startswith(reason)
    assert (outcome.interrupted, tool.calls) == (interrupts, [])


async def test_an_answer_counts_in_claude_code_whatever_the_exit_code(tmp_path: Path) -> None:
    said = specific(permissionDecision="deny", permissionDecisionReason="no")
    tool = fake("Read")

    result = await hooked(tmp_path, tool, imported(saying(tmp_path, "g", said, exit_code=1).argv)).call("Read", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_HOOK_DENIED", [])


@BOTH
async def test_allow_means_no_objection_and_nothing_more(tmp_path: Path, make: Make) -> None:
    """R-PERM-3: hooks only tighten."""
    hook = saying(tmp_path, "guard", specific(permissionDecision="allow"))
    tool = fake("Write", SideEffect.MUTATING)
    denied = Permission(RuleSet.parse(deny=["Write"]))
    asks = Permission(RuleSet.parse(ask=["Write"]))

    for permission in (denied, asks):
        result = await hooked(tmp_path, tool, make(hook.argv), permission=permission).call("Write", {}, CTX)
        assert (result.error_code, tool.calls) == ("E_PERMISSION", [])


@BOTH
async def test_a_rewritten_call_is_validated_and_decided_again(tmp_path: Path, make: Make) -> None:
    """PR-28, R-PERM-3: what the hook made of it is judged as if the client had sent it."""

    class Judging(type(fake("Bash"))):
        def access(self, input: Any) -> Any:
            from goat_mcp.core.tool import Access

            return Access(writes=("/w/.git/config",) if "rm" in input["command"] else ())

    tool = Judging(fake("Bash").spec)
    hook = saying(tmp_path, "guard", specific(permissionDecision="allow", updatedInput={"command": "rm -rf /"}))

    result = await hooked(tmp_path, tool, make(hook.argv)).call("Bash", {"command": "git status"}, CTX)

    assert (result.error_code, tool.calls) == ("E_PERMISSION", [])
    assert [one["tool_input"] for one in hook.inputs] == [{"command": "git status"}]
    assert outcomes(tmp_path) == [("hook", "rewrite")]


@BOTH
async def test_the_call_runs_as_the_hooks_left_it_and_each_sees_what_the_one_before_made(
    tmp_path: Path, make: Make
) -> None:
    first = saying(tmp_path, "first", specific(updatedInput={"command": "ls -l", "timeout": 5}))
    second = saying(tmp_path, "second", specific(additionalContext="The branch is main."))
    tool = fake("Bash")

    hooks = (make(first.argv, location="first"), make(second.argv, location="second"))
    result = await hooked(tmp_path, tool, *hooks).call("Bash", {"command": "ls"}, CTX)

    assert tool.calls == [{"command": "ls -l", "timeout": 5}]
    assert [one["tool_input"]["command"] for one in second.inputs] == ["ls -l", "ls -l"]
    assert result.text == "done\nThe branch is main."
    assert outcomes(tmp_path)[:2] == [("first", "rewrite"), ("second", "pass")]


async def test_two_hooks_run_in_order_and_the_first_denial_ends_it(tmp_path: Path) -> None:
    """R-HOOK-3, the record compared."""
    first = script(tmp_path, "first", "echo no >&2; exit 2")
    second = script(tmp_path, "second")
    hooks = (own(first.argv, location="first"), own(second.argv, location="second"))

    await hooked(tmp_path, fake("Read"), *hooks).call("Read", {}, CTX)
    assert (outcomes(tmp_path), second.inputs) == ([("first", "deny")], [])

    (tmp_path / "audit.jsonl").unlink()
    await hooked(tmp_path, fake("Read"), *reversed(hooks)).call("Read", {}, CTX)
    assert (outcomes(tmp_path), len(second.inputs)) == ([("second", "pass"), ("first", "deny")], 1)
    assert all(one["ms"] > 0 for one in audit_lines(tmp_path)[0]["hooks"])


async def test_an_observing_hook_is_asked_and_never_obeyed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = {**specific(permissionDecision="deny", permissionDecisionReason="I object", updatedInput={"x": 1})}
    hook = own(saying(tmp_path, "guard", said).argv, observes=True, refuses_on_failure=False)
    tool = fake("Read")

    result = await hooked(tmp_path, tool, hook).call("Read", {"a": 1}, CTX)

    assert (result.text, tool.calls) == ("done", [{"a": 1}])
    assert outcomes(tmp_path) == [("hook", "observed: deny")]
    assert "I object" in capsys.readouterr().err


@BOTH
async def test_what_a_hook_says_to_the_user_comes_with_the_result(tmp_path: Path, make: Make) -> None:
    hook = saying(tmp_path, "guard", {"systemMessage": "Your licence ends tomorrow."})

    before = await hooked(tmp_path, fake("Read"), make(hook.argv)).call("Read", {}, CTX)
    after = await hooked(tmp_path, fake("Read"), make(hook.argv, event="PostToolUse")).call("Read", {}, CTX)

    assert before.text == after.text == "done\n[hook hook, for the user: Your licence ends tomorrow.]"


@BOTH
async def test_hooks_see_the_result_and_say_something_beside_it(tmp_path: Path, make: Make) -> None:
    said = {
        "decision": "block",
        "reason": "The linter objects.",
        **specific("PostToolUse", additionalContext="Line 3."),
    }
    hook = saying(tmp_path, "lint", said)
    tool = fake("Write", SideEffect.NONE, answer=text_result("written", facts={"lines": 3}))

    pipeline = hooked(tmp_path, tool, make(hook.argv, event="PostToolUse"))
    result = await pipeline.call("Write", {"file_path": "/w/a"}, CTX)

    assert (result.is_error, result.text) == (False, "written\nThe linter objects.\nLine 3.")
    assert result.facts == {"lines": 3}
    assert hook.inputs[0]["tool_response"] == {
        "content": [{"type": "text", "text": "written"}],
        "isError": False,
        "facts": {"lines": 3},
        "filePath": "/w/a",
        "success": True,
    }


@BOTH
async def test_exit_code_two_after_a_call_tells_what_the_program_printed(tmp_path: Path, make: Make) -> None:
    hook = script(tmp_path, "lint", "echo 'line 3 is too long' >&2; exit 2")

    result = await hooked(tmp_path, fake("Read"), make(hook.argv, event="PostToolUse")).call("Read", {}, CTX)

    assert (result.is_error, result.text) == (False, "done\nline 3 is too long")


@pytest.mark.parametrize(
    "output",
    [
        "[redacted]",
        [{"type": "text", "text": "[redacted]"}],
        {"content": [{"type": "text", "text": "[redacted]"}]},
        {"stdout": "[redacted]", "stderr": "", "interrupted": False, "isImage": False},
    ],
    ids=["text", "blocks", "MCP result", "Claude Code's Bash"],
)
@pytest.mark.parametrize("member", ["updatedToolOutput", "updatedMCPToolOutput"])
@BOTH
async def test_an_output_that_a_hook_replaces_is_gone_from_everywhere(
    tmp_path: Path, make: Make, output: Any, member: str
) -> None:
    hook = saying(tmp_path, "redact", specific("PostToolUse", **{member: output}))
    secret = ToolResult(
        content=({"type": "text", "text": "canary"},),
        facts={"stdout": "canary"},
        structured={"a": "canary"},
        meta={"x/y": "canary"},
        other={"z": "canary"},
    )

    pipeline = hooked(tmp_path, fake("mcp__x__y", answer=secret), make(hook.argv, event="PostToolUse"))
    result = await pipeline.call("mcp__x__y", {}, CTX)

    assert result == ToolResult(content=({"type": "text", "text": "[redacted]"},))


@pytest.mark.parametrize(("make", "shown"), [(own, "[output suppressed by a hook]"), (imported, "canary")])
@pytest.mark.parametrize("said", [{"suppressOutput": True}, specific("PostToolUse", updatedToolOutput={"what": 1})])
async def test_ours_suppress_the_output_where_claude_codes_do_not(
    tmp_path: Path, make: Make, shown: str, said: dict[str, Any]
) -> None:
    hook = make(saying(tmp_path, "quiet", said).argv, event="PostToolUse")

    result = await hooked(tmp_path, fake("Read", answer=text_result("canary")), hook).call("Read", {}, CTX)

    assert result.text == shown


@BOTH
async def test_a_hook_after_a_call_can_stop_what_came_with_it(tmp_path: Path, make: Make) -> None:
    hook = make(saying(tmp_path, "stop", {"continue": False, "stopReason": "enough"}).argv, event="PostToolUse")
    tool = fake("Read")

    one = await hooked(tmp_path, tool, hook).call("Read", {}, CTX)

    assert one.text == "done\na hook stopped the work: enough. Begin nothing else and tell the user."


@pytest.mark.parametrize(
    "failure",
    [ToolError(ErrorCode.NOT_FOUND, "no such file"), RuntimeError("a bug"), UpstreamError(-32000, "no such file")],
    ids=["an error", "a bug", "an upstream's own"],
)
async def test_every_call_that_ran_and_failed_is_told_to_the_hooks_of_failures_only(
    tmp_path: Path, failure: Exception
) -> None:
    fails = script(tmp_path, "fails")
    succeeds = script(tmp_path, "succeeds")
    hooks = (own(fails.argv, event="PostToolUseFailure"), own(succeeds.argv, event="PostToolUse"))
    pipeline = hooked(tmp_path, fake("Read", answer=failure), *hooks)

    if isinstance(failure, UpstreamError):
        with pytest.raises(UpstreamError):
            await pipeline.call("Read", {}, CTX)
    else:
        await pipeline.call("Read", {}, CTX)

    assert ([one["is_interrupt"] for one in fails.inputs], succeeds.inputs) == ([False], [])
    assert "no such file" in fails.inputs[0]["error"] or isinstance(failure, RuntimeError)
    assert "a bug" not in fails.inputs[0]["error"]


async def test_a_call_that_never_ran_is_no_failure_to_tell(tmp_path: Path) -> None:
    fails = script(tmp_path, "fails")
    refuses = script(tmp_path, "refuses", "exit 2")
    hooks = (own(refuses.argv), own(fails.argv, event="PostToolUseFailure"))

    await hooked(tmp_path, fake("Read"), *hooks).call("Read", {}, CTX)

    assert fails.inputs == []


async def test_only_hooks_about_the_tool_run(tmp_path: Path) -> None:
    about = script(tmp_path, "about")
    other = script(tmp_path, "other")
    hooks = (
        own(about.argv, matcher=Matcher.parse("mcp__github__.*"), condition="mcp__github"),
        own(other.argv, matcher=Matcher.parse("Write")),
        own(other.argv, condition="Bash"),
    )

    await hooked(tmp_path, fake("mcp__github__search"), *hooks).call("mcp__github__search", {}, CTX)

    assert ([one["tool_name"] for one in about.inputs], other.inputs) == (["mcp__github__search"], [])


async def test_a_handler_that_two_imported_files_name_runs_once(tmp_path: Path) -> None:
    hook = script(tmp_path, "once")

    await hooked(tmp_path, fake("Read"), imported(hook.argv), imported(hook.argv)).call("Read", {}, CTX)

    assert len(hook.inputs) == 1


async def test_hooks_of_an_agents_call_are_told_of_the_agent_and_its_starters_session(tmp_path: Path) -> None:
    hook = script(tmp_path, "guard")
    ctx = ToolContext(call_id="c", session_key="agent:17", rights=Rights(depth=1, client_session="stdio"))

    await hooked(tmp_path, fake("Read"), own(hook.argv)).call("Read", {}, ctx)

    assert (hook.inputs[0]["session_id"], hook.inputs[0]["agent_id"]) == ("stdio", "17")


@pytest.mark.parametrize("body", ["sleep 300 &\nsleep 300", "trap '' TERM; sleep 300 & wait"], ids=["plain", "deaf"])
async def test_a_cancelled_call_leaves_nothing_of_its_hook_running(tmp_path: Path, body: str) -> None:
    """R-HOOK-1: its own group, which ends with the call."""
    hook = script(tmp_path, "slow", f'echo $$ > "{tmp_path}/pid.new"; mv "{tmp_path}/pid.new" "{tmp_path}/pid"\n{body}')
    pipeline = hooked(tmp_path, fake("Read"), own(hook.argv))

    async with anyio.create_task_group() as group:
        group.start_soon(pipeline.call, "Read", NOTHING, CTX)
        with anyio.fail_after(60):
            while not (tmp_path / "pid").exists():  # noqa: ASYNC110  # another process makes it
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()

    pid = int((tmp_path / "pid").read_text())
    assert [process for process in living_processes() if pid in (process.pid, process.group, process.session)] == []


async def test_functions_come_before_programs(tmp_path: Path) -> None:
    from goat_mcp.calls.hooks import PreToolUse

    async def rewrite(spec: Any, arguments: Any, ctx: ToolContext) -> PreToolUse:
        return PreToolUse(arguments={"path": "/rewritten"})

    hook = script(tmp_path, "guard")
    hooks = Hooks(before=(rewrite,), programs=programs(tmp_path, own(hook.argv)))

    await pipeline_over(tmp_path, fake("Read"), hooks=hooks).call("Read", {"path": "/a"}, CTX)

    assert hook.inputs[0]["tool_input"] == {"path": "/rewritten"}


@BOTH
async def test_a_program_need_not_read_a_long_call(tmp_path: Path, make: Make) -> None:
    hook = make(("/bin/sh", "-c", "exit 0"))
    content = "x" * 20_000_000

    result = await hooked(tmp_path, fake("Write", SideEffect.NONE), hook).call("Write", {"content": content}, CTX)

    assert result.text == "done"


async def test_what_is_no_json_number_is_no_answer(tmp_path: Path) -> None:
    said = '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"n": NaN}}}'
    hook = script(tmp_path, "guard", f"echo '{said}'")
    tool = fake("mcp__x__y")

    result = await hooked(tmp_path, tool, own(hook.argv)).call("mcp__x__y", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_HOOK_DENIED", [])
