"""The way of one call: every stage, in order, and what each refusal looks like."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.audit.call_record import CallRecord, RecordOptions
from goat_mcp.calls.audit.recorded_calls import recorded_calls
from goat_mcp.calls.audit.records import CallFilter
from goat_mcp.calls.audit.verify import verify
from goat_mcp.calls.extensions import CallNext
from goat_mcp.calls.hooks import Hooks, PreToolUse
from goat_mcp.calls.hooks.stages import PreHook
from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.calls.permissions.permission import Permission
from goat_mcp.calls.permissions.rule_set import RuleSet
from goat_mcp.calls.permissions.rules_in_force import RulesInForce
from goat_mcp.calls.permissions.session_modes import SessionModes
from goat_mcp.calls.pipeline import CallRequest, Pipeline
from goat_mcp.calls.scheduler import Scheduler
from goat_mcp.catalog.catalog import Catalog
from goat_mcp.catalog.registry import Registry
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.redaction import Redactor
from goat_mcp.core.result import ToolResult, text_block, text_result
from goat_mcp.core.side_effect import SideEffect
from goat_mcp.core.spec import ToolSpec
from goat_mcp.core.tool import Access
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.spill import SpillFiles
from goat_mcp.state.telemetry import Telemetry
from tests.tool_doubles import FakeTool, fake

pytestmark = pytest.mark.anyio

CTX = ToolContext(call_id="call-1")
NOTHING: dict[str, Any] = {}


def pipeline_over(tmp_path: Path, *tools: FakeTool, **options: Any) -> Pipeline:
    registry = Registry()
    registry.replace_source("builtin", tools)
    options.setdefault("permission", Permission())
    options.setdefault("telemetry", Telemetry())
    options.setdefault("audit", AuditLog(tmp_path / "audit.jsonl"))
    return Pipeline(
        catalog=Catalog(registry),
        scheduler=Scheduler(),
        spill=SpillFiles(StateDirectory(tmp_path)),
        **options,
    )


def audit_lines(tmp_path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]


async def test_a_result_comes_back_as_the_tool_gave_it(tmp_path: Path) -> None:
    answer = text_result("hello", facts={"n": 1})
    tool = fake("Read", answer=answer)

    result = await pipeline_over(tmp_path, tool).call("Read", {"a": 1}, CTX)

    assert result == answer
    assert tool.calls == [{"a": 1}]


async def test_an_unknown_tool_is_a_result_and_not_an_exception(tmp_path: Path) -> None:
    result = await pipeline_over(tmp_path).call("Nope", {}, CTX)

    assert (result.is_error, result.error_code) == (True, "E_TOOL_NOT_FOUND")


async def test_a_tool_error_is_told_with_code_and_suggestion(tmp_path: Path) -> None:
    tool = fake("Read", answer=ToolError(ErrorCode.NOT_FOUND, "/a does not exist", "Use Glob."))

    result = await pipeline_over(tmp_path, tool).call("Read", {}, CTX)

    assert result.text == "/a does not exist\nUse Glob.\n[E_NOT_FOUND]"
    assert result.wire()["structuredContent"] == {
        "status": "error",
        "error": {
            "code": "E_NOT_FOUND",
            "name": "NotFound",
            "message": "/a does not exist",
            "suggestion": "Use Glob.",
            "helpUrl": "goat://errors/E_NOT_FOUND",
        },
    }


async def test_a_bug_shows_the_call_id_and_nothing_of_itself(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tool = fake("Read", answer=RuntimeError("secret detail"))

    result = await pipeline_over(tmp_path, tool).call("Read", {}, CTX)

    assert result.error_code == "E_INTERNAL"
    assert "call-1" in result.text
    assert "secret detail" not in json.dumps(result.wire())
    assert capsys.readouterr().err.count("secret detail") == 1


async def test_AU_11_a_bug_shows_no_traceback_no_path_and_no_secret(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:  # R-SECRET-3
    monkeypatch.setenv("INNOCENT", "env-canary")
    bug = OSError(2, f"{Path.home()} canary-in-a-bug Bearer sk-ant-canary1234567890 INNOCENT=env-canary")
    tool = fake("Read", answer=bug)

    redactor = Redactor(["canary-in-a-bug"])
    pipeline = pipeline_over(tmp_path, tool, redactor=redactor, telemetry=Telemetry(redactor=redactor))
    result = await pipeline.call("Read", {}, CTX)
    shown, logged = json.dumps(result.wire()), capsys.readouterr().err

    assert result.error_code == "E_INTERNAL" and CTX.call_id in result.text
    assert [leak for leak in ("Traceback", str(Path.home()), "canary", "OSError", __file__) if leak in shown] == []
    assert logged.count("Traceback") == 1 and CTX.call_id in logged
    assert "canary-in-a-bug" not in logged and "sk-ant" not in logged
    assert audit_lines(tmp_path)[-1]["error_code"] == "E_INTERNAL"


async def test_R_SECRET_2_an_error_is_told_without_the_configured_secret(tmp_path: Path) -> None:
    answer = ToolError(ErrorCode.MODEL, "it said: bad key configured-canary", "Not Bearer configured-canary.")
    tool = fake("Agent", answer=answer)

    result = await pipeline_over(tmp_path, tool, redactor=Redactor(["configured-canary"])).call("Agent", {}, CTX)

    assert result.text == "it said: bad key [redacted]\nNot Bearer [redacted].\n[E_MODEL]"
    assert "canary" not in json.dumps(result.wire())


async def test_AU_06_of_200_parallel_calls_each_has_its_decision_and_its_outcome(tmp_path: Path) -> None:
    tools = (fake("Ok"), fake("Fails", answer=ToolError(ErrorCode.EXIT, "no")), fake("Write", SideEffect.MUTATING))
    log, redactor = Telemetry(), Redactor()
    people = CallRecord(StateDirectory(tmp_path), RecordOptions(), redactor=redactor, warn=log.warning, pid=1)
    audit = AuditLog(tmp_path / "audit.jsonl", people=people)
    pipeline = pipeline_over(tmp_path, *tools, permission=Permission(modes=SessionModes(Mode.PLAN)), audit=audit)
    names = ["Ok", "Fails", "Write", "Nope"]

    async with anyio.create_task_group() as group:
        for number in range(200):
            ctx = ToolContext(call_id=f"call-{number}")
            group.start_soon(pipeline.call, names[number % 4], {"n": number}, ctx)

    lines = audit_lines(tmp_path)
    assert [line["seq"] for line in lines] == list(range(1, 401))
    assert verify(tmp_path / "audit.jsonl").bad is None
    of_call = {f"call-{number}": list[Any]() for number in range(200)}
    for line in lines:
        of_call[line["call_id"]].append((line["event"], line.get("decision", line.get("error_code"))))
    expected = {
        "Ok": [("decision", "allow"), ("outcome", None)],
        "Fails": [("decision", "allow"), ("outcome", "E_EXIT")],
        "Write": [("decision", "deny"), ("outcome", "E_PLAN_MODE")],
        "Nope": [("decision", "deny"), ("outcome", "E_TOOL_NOT_FOUND")],
    }
    assert of_call == {f"call-{number}": expected[names[number % 4]] for number in range(200)}
    audit.close()
    recorded = {call["call_id"]: call for call in recorded_calls(tmp_path / "calls.db", 1000, CallFilter())}
    assert {
        id: [("decision", call["decision"]), ("outcome", call["error_code"])] for id, call in recorded.items()
    } == of_call
    assert {call["arguments"]["n"] for call in recorded.values()} == set(range(200))


async def test_R_AUDIT_2_a_call_that_is_cancelled_while_a_person_is_asked_is_on_record(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def never(form: Any) -> Any:
        asked.set()
        await anyio.sleep_forever()

    pipeline = pipeline_over(
        tmp_path, fake("Write", SideEffect.MUTATING), permission=Permission(approval=Approval.ELICIT)
    )
    async with anyio.create_task_group() as group:
        group.start_soon(pipeline.call, "Write", {"a": 1}, ToolContext(call_id="c", ask=never))
        await asked.wait()
        group.cancel_scope.cancel()

    assert [(line["event"], line["call_id"]) for line in audit_lines(tmp_path)] == [("decision", "c"), ("outcome", "c")]
    assert audit_lines(tmp_path)[0] | {"ts": "", "prev": "", "pid": 0, "args_sha256": ""} == {
        "ts": "",
        "seq": 1,
        "prev": "",
        "event": "decision",
        "call_id": "c",
        "session": "local",
        "principal": "local",
        "pid": 0,
        "tool": "Write",
        "decision": "none",
        "rule": "ended before a decision: E_CANCELLED",
        "args_sha256": "",
        "args_chars": 8,
    }


async def test_AU_05_unrecorded_calls_that_change_something_are_refused_and_reads_run(tmp_path: Path) -> None:
    read, write = fake("Read", SideEffect.READ_ONLY), fake("Write", SideEffect.MUTATING)
    fetch = fake("Fetch", SideEffect.NETWORK)
    pipeline = pipeline_over(tmp_path, read, write, fetch, permission=Permission(modes=SessionModes(Mode.BYPASS)))
    (tmp_path / "audit.jsonl").mkdir()

    codes = [(await pipeline.call(name, {}, CTX)).error_code for name in ("Read", "Write", "Fetch")]

    assert codes == [None, "E_AUDIT", "E_AUDIT"]
    assert (read.calls, write.calls, fetch.calls) == ([{}], [], [])


async def test_an_upstreams_own_protocol_error_passes_through(tmp_path: Path) -> None:
    tool = fake("mcp__x__y", answer=UpstreamError(-32050, "custom", {"k": 1}))

    with pytest.raises(UpstreamError) as caught:
        await pipeline_over(tmp_path, tool).call("mcp__x__y", {}, CTX)

    assert (caught.value.code, caught.value.message, caught.value.data) == (-32050, "custom", {"k": 1})


async def test_a_denied_call_has_no_effect_and_is_recorded(tmp_path: Path) -> None:
    tool = fake("Write", SideEffect.MUTATING)

    result = await pipeline_over(tmp_path, tool, permission=Permission(modes=SessionModes(Mode.PLAN))).call(
        "Write", {}, CTX
    )

    assert (result.error_code, tool.calls) == ("E_PLAN_MODE", [])
    assert [(line["event"], line.get("decision")) for line in audit_lines(tmp_path)] == [
        ("decision", "deny"),
        ("outcome", None),
    ]


async def test_the_decision_is_on_record_before_the_effect(tmp_path: Path) -> None:
    seen: list[str] = []

    class Spying(FakeTool):
        async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
            seen.extend(line["event"] for line in audit_lines(tmp_path))
            return text_result("done")

    await pipeline_over(tmp_path, Spying(fake("Read").spec)).call("Read", {"secret": "canary"}, CTX)

    assert seen == ["decision"]
    assert [line["event"] for line in audit_lines(tmp_path)] == ["decision", "outcome"]
    assert "canary" not in (tmp_path / "audit.jsonl").read_text()


async def test_a_hook_can_refuse(tmp_path: Path) -> None:
    async def refuse(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(deny="not today")

    tool = fake("Read")
    result = await pipeline_over(tmp_path, tool, hooks=Hooks(before=(refuse,))).call("Read", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_HOOK_DENIED", [])
    assert result.text.startswith("not today")


async def test_an_input_that_a_hook_rewrote_is_validated_again(tmp_path: Path) -> None:
    class Strict(FakeTool):
        def validate(self, arguments: Any) -> Any:
            if arguments.get("path") == "/etc":
                raise ToolError(ErrorCode.INPUT, "path: not there")
            return dict(arguments)

    async def rewrite(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(arguments={"path": "/etc"})

    tool = Strict(fake("Read").spec)
    result = await pipeline_over(tmp_path, tool, hooks=Hooks(before=(rewrite,))).call("Read", {"path": "/ok"}, CTX)

    assert (result.error_code, tool.calls) == ("E_INPUT", [])


async def test_hooks_add_context_and_replace_output(tmp_path: Path) -> None:
    async def before(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(context="remember the style guide")

    async def after(spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        return text_result(result.text.upper())

    hooks = Hooks(before=(before,), after=(after,))
    result = await pipeline_over(tmp_path, fake("Read"), hooks=hooks).call("Read", {}, CTX)

    assert [block["text"] for block in result.content] == ["DONE", "remember the style guide"]


async def test_a_call_goes_to_its_tool_by_two_functions(tmp_path: Path) -> None:
    """What only passes on costs every call time, and every reader a jump."""
    stack: list[str] = []

    class Watching(FakeTool):
        async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
            stack.extend(frame.name for frame in traceback.extract_stack() if "/goat_mcp/" in frame.filename)
            return await super().execute(input, ctx)

    await pipeline_over(tmp_path, Watching(fake("Read").spec)).call("Read", {}, CTX)

    assert stack == ["call", "_execute"]


async def test_extensions_wrap_the_call_like_an_onion(tmp_path: Path) -> None:
    order: list[str] = []

    def layer(name: str) -> Any:
        async def around(
            spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext, call_next: CallNext
        ) -> ToolResult:
            order.append(f"{name} in")
            result = await call_next({**arguments, name: True})
            order.append(f"{name} out")
            return result

        return around

    tool = fake("Read")
    layers = (layer("outer"), layer("inner"))
    await pipeline_over(tmp_path, tool, layers=layers).call("Read", {}, CTX)

    assert order == ["outer in", "inner in", "inner out", "outer out"]
    assert tool.calls == [{"outer": True, "inner": True}]


async def test_text_over_the_limit_goes_to_a_file_whole(tmp_path: Path) -> None:
    text = "".join(f"line {number}\n" for number in range(10_000))

    result = await pipeline_over(tmp_path, fake("X", answer=text_result(text)), max_chars=2_000).call("X", {}, CTX)

    (spilled,) = (tmp_path / "spill" / "local").glob("*/*")
    assert spilled.read_text() == text
    assert str(spilled) in result.text
    assert len(result.text) < 2_300
    assert result.text.startswith("line 0\n") and result.text.endswith("line 9999\n")


async def test_images_are_kept_when_text_is_cut(tmp_path: Path) -> None:
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    answer = ToolResult(content=(text_block("x" * 5_000), image))

    result = await pipeline_over(tmp_path, fake("X", answer=answer), max_chars=1_000).call("X", {}, CTX)

    assert result.content[-1] == image


async def test_a_batch_runs_in_parallel_and_answers_in_request_order(tmp_path: Path) -> None:
    release = anyio.Event()
    slow = fake("Slow", answer=text_result("slow"), release=release)

    class Releasing(FakeTool):
        async def execute(self, input: Any, ctx: ToolContext) -> ToolResult:
            await slow.started.wait()
            release.set()
            return text_result("fast")

    pipeline = pipeline_over(tmp_path, slow, Releasing(fake("Fast").spec))
    with anyio.fail_after(60):
        outcome = await pipeline.call_all([CallRequest("Slow", {}, CTX), CallRequest("Fast", {}, CTX)])

    assert [result.text for result in outcome.results] == ["slow", "fast"]
    assert outcome.stopped_by is None


async def test_conflicting_calls_take_turns(tmp_path: Path) -> None:
    release = anyio.Event()
    touches = Access(writes=("/a",))
    first = fake("First", touches=touches, release=release)
    second = fake("Second", touches=touches)
    pipeline = pipeline_over(tmp_path, first, second)

    async with anyio.create_task_group() as group:
        group.start_soon(pipeline.call, "First", NOTHING, CTX)
        await first.started.wait()
        group.start_soon(pipeline.call, "Second", NOTHING, CTX)
        await anyio.wait_all_tasks_blocked()
        assert not second.started.is_set()
        release.set()
    assert second.calls == [{}]


async def test_a_cancelled_call_is_on_record(tmp_path: Path) -> None:
    tool = fake("Slow", release=anyio.Event())
    pipeline = pipeline_over(tmp_path, tool)

    async with anyio.create_task_group() as group:
        group.start_soon(pipeline.call, "Slow", NOTHING, CTX)
        await tool.started.wait()
        group.cancel_scope.cancel()

    assert audit_lines(tmp_path)[-1]["error_code"] == "E_CANCELLED"


async def test_arguments_changed_after_the_check_do_not_reach_the_tool(tmp_path: Path) -> None:
    arguments = {"path": "/ok"}

    async def meddle(spec: ToolSpec, given: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        arguments["path"] = "/etc/shadow"
        return PreToolUse()

    tool = fake("Read")
    await pipeline_over(tmp_path, tool, hooks=Hooks(before=(meddle,))).call("Read", arguments, CTX)

    assert tool.calls == [{"path": "/ok"}]


async def test_the_record_of_a_decision_says_what_each_hook_said(tmp_path: Path) -> None:
    """R-HOOK-3: fixed order, the first denial ends it, outcomes are in the decision record."""

    async def first(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(context="looked")

    async def second(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(deny="not today")

    async def third(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        raise AssertionError("runs after a denial")

    tool = fake("Read")
    await pipeline_over(tmp_path, tool, hooks=Hooks(before=(first, second, third))).call("Read", {}, CTX)

    decision, _ = audit_lines(tmp_path)
    names = [one["hook"].rpartition(".")[2] for one in decision["hooks"]]
    assert (decision["decision"], names) == ("deny", ["first", "second"])
    assert [one["result"] for one in decision["hooks"]] == ["pass", "deny"]
    assert tool.calls == []


async def test_a_function_that_fails_before_a_call_refuses_it_and_one_after_it_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """R-HOOK-2."""

    async def broken_before(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        raise RuntimeError("before is broken")

    async def broken_after(spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        raise RuntimeError("after is broken")

    tool = fake("Read")
    refused = await pipeline_over(tmp_path, tool, hooks=Hooks(before=(broken_before,))).call("Read", {}, CTX)
    ran = await pipeline_over(tmp_path, tool, hooks=Hooks(after=(broken_after,))).call("Read", {}, CTX)

    assert (refused.error_code, ran.text, len(tool.calls)) == ("E_HOOK_DENIED", "done", 1)
    assert audit_lines(tmp_path)[0]["hooks"][0]["result"] == "failed: RuntimeError"
    log = capsys.readouterr().err
    assert [log.count(f"RuntimeError: {when} is broken") for when in ("before", "after")] == [1, 1]


@pytest.mark.parametrize(
    ("mode", "times"), [(Mode.BYPASS, 1), (Mode.DEFAULT, 1)], ids=["nobody else asks", "the mode has asked already"]
)
async def test_a_hook_that_wants_the_person_asked_has_them_asked_once(tmp_path: Path, mode: Mode, times: int) -> None:
    """R-PERM-3: hooks only tighten."""
    asked: list[Form] = []

    async def careful(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(ask="it is Friday")

    async def person(form: Form) -> Answer:
        asked.append(form)
        return Answer(Reply.ACCEPTED, {"decision": "allow_once"})

    permission = Permission(modes=SessionModes(mode), approval=Approval.ELICIT)
    pipeline = pipeline_over(
        tmp_path, fake("Write", SideEffect.MUTATING), permission=permission, hooks=hooks_of(careful)
    )
    result = await pipeline.call("Write", {}, replace(CTX, ask=person))

    assert (result.text, len(asked)) == ("done", times)


async def test_a_hooks_wish_to_ask_is_a_refusal_where_nobody_can_be_asked(tmp_path: Path) -> None:
    async def careful(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(ask="it is Friday")

    tool = fake("Read")
    result = await pipeline_over(tmp_path, tool, hooks=hooks_of(careful)).call("Read", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_PERMISSION", [])
    assert "it is Friday" in result.text


async def test_hooks_that_rewrite_without_end_are_refused_on_record(tmp_path: Path) -> None:
    async def restless(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        return PreToolUse(arguments={"n": arguments.get("n", 0) + 1})

    tool = fake("Read")
    result = await pipeline_over(tmp_path, tool, hooks=hooks_of(restless)).call("Read", {}, CTX)

    assert (result.error_code, tool.calls) == ("E_HOOK_DENIED", [])
    assert [line["event"] for line in audit_lines(tmp_path)] == ["decision", "outcome"]


def hooks_of(*before: PreHook) -> Hooks:
    return Hooks(before=before)


@pytest.mark.parametrize(
    ("options", "choice", "by"),
    [
        ({"rules": RuleSet.parse(allow=["Write"])}, "", "rule"),
        ({"rules": RuleSet.parse(deny=["Write"])}, "", "rule"),
        ({"modes": SessionModes(Mode.BYPASS)}, "", "mode"),
        ({"modes": SessionModes(Mode.DONT_ASK)}, "", "mode"),
        ({"approval": Approval.HOST}, "", "host"),
        ({"approval": Approval.ELICIT}, "allow_once", "user"),
        ({"approval": Approval.ELICIT}, "deny", "user"),
        ({"approval": Approval.ELICIT}, "", "nobody"),
    ],
)
async def test_R_PERM_5_the_record_says_who_decided(
    tmp_path: Path, options: dict[str, Any], choice: str, by: str
) -> None:
    async def ask(form: Form) -> Answer:
        answered = Answer(Reply.ACCEPTED, {form.questions[0].name: choice})
        return answered if choice else Answer(Reply.UNAVAILABLE)

    pipeline = pipeline_over(tmp_path, fake("Write", SideEffect.MUTATING), permission=Permission(**options))

    await pipeline.call("Write", {}, replace(CTX, ask=ask))

    assert audit_lines(tmp_path)[0]["by"] == by


async def test_R_PERM_2_whoever_holds_the_arguments_changes_nothing_after_the_check(tmp_path: Path) -> None:
    held: dict[str, Any] = {"paths": ["a"], "options": {"force": False}}

    async def ask(form: Form) -> Answer:
        held["paths"].append("/etc/passwd")
        held["options"]["force"] = True
        return Answer(Reply.ACCEPTED, {form.questions[0].name: "allow_once"})

    async def meddle(spec: ToolSpec, arguments: Mapping[str, Any], ctx: ToolContext) -> PreToolUse:
        arguments["options"]["force"] = True
        return PreToolUse()

    tool = fake("Write", SideEffect.MUTATING)
    pipeline = pipeline_over(
        tmp_path, tool, permission=Permission(approval=Approval.ELICIT), hooks=Hooks(before=(meddle,))
    )

    await pipeline.call("Write", held, replace(CTX, ask=ask))

    assert tool.calls == [{"paths": ["a"], "options": {"force": False}}]


async def test_R_PERM_4_a_rule_that_came_while_the_user_was_asked_holds_for_this_call(tmp_path: Path) -> None:
    rules, tool = RulesInForce(RuleSet()), fake("Write", SideEffect.MUTATING)
    pipeline = pipeline_over(tmp_path, tool, permission=Permission(rules, approval=Approval.ELICIT))

    async def ask(form: Form) -> Answer:
        rules.replace(RuleSet.parse(deny=["Write"]))
        return Answer(Reply.ACCEPTED, {form.questions[0].name: "allow_once"})

    result = await pipeline.call("Write", {}, replace(CTX, ask=ask))

    assert (result.error_code, tool.calls) == ("E_PERMISSION", [])
    assert "denied by rule Write" in result.text
    decision = audit_lines(tmp_path)[0]
    assert (decision["decision"], decision["by"], decision["rule"]) == ("deny", "rule", "E_PERMISSION: rule Write")


async def test_R_PERM_4_a_tool_that_its_server_changed_while_the_user_was_asked_does_not_run(tmp_path: Path) -> None:
    first, second = fake("mcp__x__y", SideEffect.MUTATING), fake("mcp__x__y", SideEffect.MUTATING)
    second.spec = replace(second.spec, description="Does something else now.")
    registry = Registry()
    registry.replace_source("mcp__x", [first])
    permission = Permission(approval=Approval.ELICIT)
    pipeline = replace(pipeline_over(tmp_path, permission=permission), catalog=Catalog(registry))

    async def ask(form: Form) -> Answer:
        registry.replace_source("mcp__x", [second])
        return Answer(Reply.ACCEPTED, {form.questions[0].name: "allow_once"})

    result = await pipeline.call("mcp__x__y", {}, replace(CTX, ask=ask))

    assert result.error_code == "E_PERMISSION" and "changed by its server" in result.text
    assert (first.calls, second.calls) == ([], [])
