"""Agents beside the calls: in the background at once or after 45 s, found by id and name, ended with all they run."""

from __future__ import annotations

import time
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest

from goat_mcp.calls.permissions.approval import ALLOW_ONCE
from goat_mcp.core.elicitation import Answer, Form, Reply
from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.core.result import ToolResult
from goat_mcp.processes.process_table import living_process
from tests.agents.scripted import BOUND_S, Ground, ScriptedModel, ground, results_in, says, use
from tests.processes.processes import running

pytestmark = pytest.mark.anyio


def id_of(result: ToolResult) -> str:
    return str((result.facts or {})["agent_id"])


async def ended(on: Ground, task_id: str) -> ToolResult:
    with anyio.fail_after(BOUND_S):
        return await on.call("TaskOutput", {"task_id": task_id})


def late(on: Ground) -> Any:
    """The context of a call that has to answer now."""
    since_s = time.monotonic() - 44.9
    return replace(on.ctx, client_waits_since_s=lambda: since_s)


def sleep_of(on: Ground) -> str:
    """A command that no other test runs: a sandbox tells its processes other numbers than ours."""
    return f"sleep {100_000 + zlib.crc32(bytes(on.workspace))}"


def sleeper(on: Ground) -> Any:
    return use("Bash", {"command": f"exec {sleep_of(on)}"}, "b")


async def pid_of(on: Ground) -> int:
    with anyio.fail_after(BOUND_S):
        while not (found := await anyio.to_thread.run_sync(running, sleep_of(on))):  # noqa: ASYNC110 - a process of another gives no event
            await anyio.sleep(0.01)
    return found[0]


async def gone(pid: int) -> None:
    with anyio.fail_after(BOUND_S):
        while living_process(pid) is not None:  # noqa: ASYNC110 - a process of another gives no event
            await anyio.sleep(0.01)


async def test_a_background_agent_answers_at_once_and_gives_its_final_text_later(tmp_path: Path) -> None:
    go = anyio.Event()
    model = ScriptedModel([says("Secret thoughts.", use("Glob", {"pattern": "*"}, "g")), go, says("The result.")])
    async with ground(tmp_path, model) as on:
        started = await on.agent(run_in_background=True, name="runner")
        at_work = await on.call("TaskOutput", {"task_id": id_of(started), "block": False})
        with anyio.fail_after(BOUND_S):
            while len(model.requests) < 2:  # noqa: ASYNC110 - the second question is what we wait for
                await anyio.sleep(0.01)
        doing = await on.call("TaskOutput", {"task_id": "runner", "block": False})
        go.set()
        over = await ended(on, id_of(started))
        again = await ended(on, "runner")

    facts = dict(started.facts or {})
    assert started.text.splitlines()[0] == f"Task started: {id_of(started)}"
    assert (facts["status"], facts["task_id"], started.task_id) == ("running", id_of(started), id_of(started))
    assert at_work.text.startswith(f"Task {id_of(started)}: running")
    assert "turn 1: Glob *" in at_work.text + doing.text
    assert "Secret thoughts" not in over.text
    assert over.text.splitlines()[1] == "The result."
    assert (over.facts or {})["task_type"] == "agent"
    assert again.text.splitlines()[1:] == over.text.splitlines()[1:]


async def test_the_output_file_holds_the_progress_and_then_the_result(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel([says("", use("Glob", {"pattern": "*"}, "g")), says("Done so.")])) as on:
        result = await on.agent()
        read = await on.call("Read", {"file_path": str((result.facts or {})["output_file"])})

    assert "turn 1: thinking" in read.text
    assert "turn 1: Glob *" in read.text
    assert read.text.splitlines()[-1].endswith("\tDone so.")


async def test_a_call_that_has_to_answer_leaves_its_agent_running(tmp_path: Path) -> None:
    go = anyio.Event()
    async with ground(tmp_path, ScriptedModel([go, says("Later.")])) as on:
        result = await on.agent(ctx=late(on))
        go.set()
        over = await ended(on, id_of(result))

    assert result.text.startswith(f"Task started: {id_of(result)}")
    assert over.text.splitlines()[1] == "Later."


async def test_a_call_waits_while_the_person_is_asked_and_asks_no_more_once_it_has_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.agents.agent_task.HEARTBEAT_S", 0.05)
    shown, answer_now, go = anyio.Event(), anyio.Event(), anyio.Event()

    async def ask(form: Form) -> Answer:
        shown.set()
        await answer_now.wait()
        return Answer(Reply.ACCEPTED, {form.questions[0].name: ALLOW_ONCE})

    one = use("Write", {"file_path": "@one.txt", "content": "1"}, "w1")
    two = use("Write", {"file_path": "@two.txt", "content": "2"}, "w2")
    model = ScriptedModel([says("", one), go, says("", two)])
    has_waited = False
    async with ground(tmp_path, model, mode="default") as on, anyio.create_task_group() as group:

        async def answer_after_the_limit() -> None:
            await shown.wait()
            await anyio.sleep(0.3)  # the call's time is over by now
            answer_now.set()

        group.start_soon(answer_after_the_limit)
        begun_s = time.monotonic()
        # The call's time is over as soon as the form is shown, however long the model and the queue take to get there.
        waits_since_s = lambda: begun_s - 44.9 if shown.is_set() else time.monotonic()  # noqa: E731
        result = await on.agent(ctx=replace(on.ctx, client_waits_since_s=waits_since_s, ask=ask))
        has_waited = answer_now.is_set()
        go.set()
        await ended(on, id_of(result))

        assert (on.workspace / "one.txt").exists()
        assert not (on.workspace / "two.txt").exists()
    assert has_waited
    assert "[E_APPROVAL_PENDING]" in results_in(model.requests[2].messages[-1])[0]


async def test_progress_names_the_turn_and_the_running_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.agents.agent_task.HEARTBEAT_S", 0.05)
    told: list[tuple[float, str | None]] = []
    heard = anyio.Event()
    async with ground(tmp_path) as on:
        wait = use("Bash", {"command": f"while [ ! -e {on.workspace}/go ]; do sleep 0.05; done"}, "b")
        model = ScriptedModel([says("", wait)])
        on.use(model)

        async def progress(done: float, total: float | None = None, message: str | None = None, **_: object) -> None:
            told.append((done, message))
            if message and message.startswith("turn 1: Bash while"):
                (on.workspace / "go").touch()
                heard.set()

        await on.agent(ctx=replace(on.ctx, progress=progress, wants_progress=True))

    assert heard.is_set()
    assert [done for done, _ in told] == sorted(done for done, _ in told)


async def test_a_background_agent_is_stopped_by_name_with_the_command_it_runs(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        model = ScriptedModel([says("", sleeper(on))])
        on.use(model)
        started = await on.agent(run_in_background=True, name="sleeper")
        pid = await pid_of(on)
        stopped = await on.call("TaskStop", {"task_id": "sleeper"})
        await gone(pid)
        after = await ended(on, id_of(started))

    assert stopped.text.startswith(f"Stopped task {id_of(started)} (a task).")
    assert (stopped.facts or {})["task_type"] == "agent"
    assert (after.facts or {})["status"] == "stopped"


async def test_a_stopped_agent_takes_its_background_commands_along(tmp_path: Path) -> None:
    go = anyio.Event()
    async with ground(tmp_path) as on:
        background = use("Bash", {"command": f"exec {sleep_of(on)}", "run_in_background": True}, "b")
        model = ScriptedModel([says("", background), go])
        on.use(model)
        started = await on.agent(run_in_background=True)
        pid = await pid_of(on)
        await on.call("TaskStop", {"task_id": id_of(started)})
        await gone(pid)

        assert on.gateway.services.tasks().running() == []


async def test_what_an_agent_leaves_running_is_named(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        background = use("Bash", {"command": "sleep 100", "run_in_background": True}, "b")
        model = ScriptedModel([says("", background)])
        on.use(model)
        result = await on.agent()
        (left,) = on.gateway.services.tasks().running()

    assert f"[it left running: task {left.id} (sleep 100)]" in result.text


async def test_a_cancelled_call_ends_its_agent_and_what_that_runs(tmp_path: Path) -> None:
    pid = 0
    async with ground(tmp_path) as on:
        model = ScriptedModel([says("", sleeper(on))])
        on.use(model)
        async with anyio.create_task_group() as group:
            group.start_soon(on.agent)
            pid = await pid_of(on)
            group.cancel_scope.cancel()
        await gone(pid)

        assert on.gateway.services.tasks().running() == []


async def test_a_cancelled_call_does_not_wait_for_an_agent_that_ends_slowly(tmp_path: Path) -> None:
    release, asked = anyio.Event(), anyio.Event()

    class Deaf:
        takes_tools = True

        async def reply(self, request: Any) -> Any:
            asked.set()
            with anyio.CancelScope(shield=True):
                await release.wait()
            return says("too late")

    async with ground(tmp_path, Deaf()) as on:
        with anyio.fail_after(BOUND_S):
            async with anyio.create_task_group() as group:
                group.start_soon(on.agent)
                await asked.wait()
                group.cancel_scope.cancel()
        (left,) = on.gateway.services.tasks().running()
        release.set()
        await ended(on, left.id)

        assert on.gateway.services.tasks().running() == []


async def test_a_nested_agent_ends_with_the_one_that_waits_for_it(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        nested = use("Agent", {"description": "inner", "prompt": "inner"}, "n")
        model = ScriptedModel([says("", nested), says("", sleeper(on))])
        on.use(model)
        started = await on.agent(run_in_background=True)
        pid = await pid_of(on)
        await on.call("TaskStop", {"task_id": id_of(started)})
        await gone(pid)

        assert on.gateway.services.tasks().running() == []
        assert on.gateway.on_demand.agents().spawner.live.find(id_of(started), "local") is None


async def test_an_agent_can_stop_itself(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        model = ScriptedModel([says("", use("TaskStop", {"task_id": "me"}, "s"))])
        on.use(model)
        result = await on.agent(name="me")

    assert result.error_code == "E_CANCELLED"


async def test_the_end_of_the_server_ends_its_agents(tmp_path: Path) -> None:
    async with ground(tmp_path) as on:
        model = ScriptedModel([says("", sleeper(on))])
        on.use(model)
        started = await on.agent(run_in_background=True)
        pid = await pid_of(on)
        task = await on.gateway.services.tasks().find(id_of(started), "local")
    await gone(pid)

    assert task.status == "stopped"


async def test_a_background_agent_that_fails_is_a_failed_task_that_says_why(tmp_path: Path) -> None:
    refused = ToolError(ErrorCode.NOT_CONFIGURED, "no key", "Set agent.key.")
    async with ground(tmp_path, ScriptedModel([refused])) as on:
        started = await on.agent(run_in_background=True)
        over = await ended(on, id_of(started))

    assert (over.facts or {})["status"] == "failed"
    assert over.text.splitlines()[1:4] == ["no key", "Set agent.key.", "[E_NOT_CONFIGURED]"]


async def test_ten_agents_run_at_once_and_the_eleventh_is_told_which(tmp_path: Path) -> None:
    go = anyio.Event()
    async with ground(tmp_path) as on:
        on.use(*(ScriptedModel([go, says("ok")]) for _ in range(12)))
        started = [await on.agent(run_in_background=True, name=f"n{number}") for number in range(10)]
        refused = await on.agent(run_in_background=True)
        go.set()
        for one in started:
            await ended(on, id_of(one))
        again = await on.agent()

    assert refused.error_code == "E_BUSY"
    assert "n9" in refused.text and "agent.max_at_once" in refused.text
    assert not again.is_error


async def test_agents_of_one_turn_run_side_by_side(tmp_path: Path) -> None:
    both = [anyio.Event(), anyio.Event()]

    class Meeting:
        takes_tools = True
        arrived = 0

        async def reply(self, request: Any) -> Any:
            both[Meeting.arrived].set()
            Meeting.arrived += 1
            for one in both:
                await one.wait()
            return says("met")

    nested = [use("Agent", {"description": "d", "prompt": f"p{number}"}, f"n{number}") for number in range(2)]
    starter, meeting = ScriptedModel([says("", *nested)]), Meeting()

    class Both:
        takes_tools = True

        async def reply(self, request: Any) -> Any:
            is_nested = str(request.messages[0].content[0]["text"]).startswith("p")
            return await (meeting if is_nested else starter).reply(request)

    async with ground(tmp_path, Both()) as on:
        result = await on.agent("start")

    assert result.text.startswith("done")
    assert [text.splitlines()[0] for text in results_in(starter.requests[1].messages[-1])] == ["met", "met"]


async def test_a_name_belongs_to_one_running_agent_of_a_principal(tmp_path: Path) -> None:
    go = anyio.Event()
    model = ScriptedModel([go, go, says("ok"), says("ok"), says("ok")])
    async with ground(tmp_path, model) as on:
        first = await on.agent(run_in_background=True, name="bob")
        second = await on.agent(name="bob")
        other = await on.agent(run_in_background=True, name="bob", ctx=replace(on.ctx, principal="eve"))
        foreign = await on.call("TaskOutput", {"task_id": id_of(first)}, replace(on.ctx, principal="eve"))
        go.set()
        await ended(on, id_of(first))
        third = await on.agent(name="bob")

    assert (second.error_code, other.is_error, third.is_error) == ("E_INPUT", False, False)
    assert "'bob' already" in second.text
    assert foreign.error_code == "E_TASK_UNKNOWN"
    assert foreign.text.splitlines()[1] == f"Running tasks: {id_of(other)} (bob)."


async def test_bad_names_are_refused_at_the_door(tmp_path: Path) -> None:
    async with ground(tmp_path, ScriptedModel()) as on:
        for name in ("", "-a", "a b", "a/b", "a\n", "x" * 65):
            assert (await on.agent(name=name)).error_code == "E_INPUT", name
        assert (await on.agent("")).error_code == "E_INPUT"


async def test_after_a_restart_a_task_shows_the_agents_last_words_only(tmp_path: Path) -> None:
    model = ScriptedModel([says("", use("Glob", {"pattern": "*"}, "g")), says("The result.")])
    async with ground(tmp_path, model) as on:
        started = await on.agent(run_in_background=True)
        await ended(on, id_of(started))
    async with ground(tmp_path) as on:
        over = await ended(on, id_of(started))

    assert (over.facts or {})["status"] == "completed"
    assert over.text.splitlines()[1] == "The result."
    assert "turn 1" not in over.text
