"""Long calls of clients that know tasks (SEP-2663): what becomes one, how it is read, answered and ended. # ERA-7"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from mcp import Client

from goat_mcp.calls.hooks import Hooks
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Form, Question
from goat_mcp.core.errors import ErrorCode, ToolError, UpstreamError
from goat_mcp.core.result import ToolResult, text_block, text_result
from goat_mcp.core.spec import ToolSpec
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.server.asking import AskingTool
from tests.server.task_client import DECLARED, Refused, connected, running, task_client
from tests.tool_doubles import fake

pytestmark = pytest.mark.anyio

AFTER_S = 0.05
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (("get", {}), ("update", {"inputResponses": {}}), ("cancel", {}))
YES = {"action": "accept", "content": {"sure": "yes"}}


def gateway(folder: Path, *tools: Any, hooks: Hooks | None = None, **settings: Any) -> Gateway:
    settings.setdefault("tasks", {"after_s": AFTER_S})
    made = Gateway(
        Settings.model_validate({"workspace": [folder], "mode": "bypassPermissions", **settings}),
        approval=Approval.HOST,
        state=StateDirectory(folder / "state"),
        hooks=hooks,
    )
    for tool in tools:
        made.registry.register(tool)
    return made


def text_of(state: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in state["result"]["content"])


async def test_a_call_that_takes_long_is_answered_with_a_task_that_brings_its_result(tmp_path: Path) -> None:
    release = anyio.Event()
    answer = ToolResult(content=(text_block("made"),), structured={"n": 1}, meta={"vendor/x": 2})
    slow = fake("Slow", release=release, answer=answer)
    async with task_client(gateway(tmp_path, slow)) as client:
        created = await client.call("Slow")
        working = await client.get(created["taskId"])
        release.set()
        done = await client.until(created["taskId"])

    assert created["resultType"] == "task"
    assert created["status"] == working["status"] == "working"
    assert created.keys() & {"result", "error", "inputRequests", "requestState", "content"} == set()
    assert re.fullmatch(r"[a-z2-7]{32}", created["taskId"]), "160 random bits"
    assert created["ttlMs"] >= 3_600_000 and created["pollIntervalMs"] == 1000
    assert (done["resultType"], done["status"]) == ("complete", "completed")
    assert done["result"] == {
        "content": [{"type": "text", "text": "made"}],
        "structuredContent": {"n": 1},
        "isError": False,
        "_meta": {"vendor/x": 2},
        "resultType": "complete",
    }


async def test_a_short_call_and_that_of_a_client_without_tasks_are_answered_as_ever(tmp_path: Path) -> None:
    release = anyio.Event()
    slow, quick = fake("Slow", release=release), fake("Quick")
    async with task_client(gateway(tmp_path, slow, quick)) as client:
        short = await client.call("Quick")
        number = await client.send("tools/call", {"name": "Slow", "arguments": {}}, capabilities={"elicitation": {}})
        await slow.started.wait()
        await anyio.sleep(4 * AFTER_S)
        release.set()
        waited = await client.answer_to(number)

    assert [one["content"][0]["text"] for one in (short, waited)] == ["done", "done"]
    assert {one["resultType"] for one in (short, waited)} == {"complete"}


async def test_a_handshake_client_hears_of_no_tasks(tmp_path: Path) -> None:
    release = anyio.Event()
    slow = fake("Slow", release=release)
    async with running(gateway(tmp_path, slow)) as adapter, Client(adapter.server, mode="legacy") as client:
        results: list[types.CallToolResult] = []
        async with anyio.create_task_group() as group:

            async def call() -> None:
                results.append(await client.call_tool("Slow", {}))

            group.start_soon(call)
            await slow.started.wait()
            await anyio.sleep(4 * AFTER_S)
            release.set()
        declared = client.server_capabilities.extensions or {}
        with pytest.raises(Exception, match="Method not found"):
            await client.session.send_request(
                types.Request[Any, Any](method="tasks/get", params={"taskId": "x"}),  # pyright: ignore[reportArgumentType]  # of no revision
                types.EmptyResult,
            )

    assert results[0].content[0] == types.TextContent(type="text", text="done")
    assert "io.modelcontextprotocol/tasks" not in declared


async def test_a_client_that_declares_no_tasks_is_refused_with_the_capability_it_lacks(tmp_path: Path) -> None:
    async with task_client(gateway(tmp_path), {}) as client:
        refused: list[Refused] = []
        for method, more in METHODS:
            with pytest.raises(Refused) as caught:
                await client.request(f"tasks/{method}", {"taskId": "x", **more})
            refused.append(caught.value)
        with pytest.raises(Refused) as caught:
            await client.request("subscriptions/listen", {"notifications": {"taskIds": ["x"]}})
        refused.append(caught.value)

    wanted: dict[str, Any] = {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
    assert [(one.code, one.data) for one in refused] == [(-32021, wanted)] * 4


async def test_bash_in_the_background_is_a_task_whose_result_is_its_output(tmp_path: Path) -> None:
    async with task_client(gateway(tmp_path, tasks={"after_s": 0})) as client:
        created = await client.call("Bash", {"command": "echo made; exit 3", "run_in_background": True})
        done = await client.until(created["taskId"])

    assert created["resultType"] == "task" and "content" not in created
    assert (done["status"], done["result"]["isError"]) == ("completed", True)
    assert text_of(done).startswith("made\nExit code 3")
    assert done["result"]["_meta"]["goat-mcp/facts"]["exit_code"] == 3


async def test_hooks_see_what_a_command_in_the_background_brings(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []

    async def keep_back(spec: ToolSpec, result: ToolResult, ctx: ToolContext) -> ToolResult:
        seen.append((spec.name, result.text.splitlines()[0]))
        return text_result("kept back") if "secret" in result.text else result

    served = gateway(tmp_path, tasks={"after_s": 0}, hooks=Hooks(after=(keep_back,)))
    async with task_client(served) as client:
        created = await client.call("Bash", {"command": "printf 'sec''ret'", "run_in_background": True})
        done = await client.until(created["taskId"])

    assert [name for name, _ in seen] == ["Bash", "Bash"] and seen[-1] == ("Bash", "secret")
    assert text_of(done) == "kept back"


async def test_a_task_of_a_call_that_makes_itself_one_shows_that_one(tmp_path: Path) -> None:
    """Bash has its own limit: what it starts then is the same task for the client."""
    (tmp_path / "wait.sh").write_text("until test -e go; do sleep 0.02; done; echo made\n")
    bash = {"auto_background_after_s": 10 * AFTER_S}
    async with task_client(gateway(tmp_path, bash=bash)) as client:
        created = await client.call("Bash", {"command": "sh wait.sh"})
        await anyio.sleep(20 * AFTER_S)
        working = await client.get(created["taskId"])
        (tmp_path / "go").touch()
        done = await client.until(created["taskId"])

    assert (working["status"], done["status"]) == ("working", "completed")
    assert done["taskId"] == created["taskId"]
    assert text_of(done) == "made"


async def test_what_a_call_asks_is_answered_in_its_task_key_by_key(tmp_path: Path) -> None:
    asking = anyio.Event()

    async def body(ctx: ToolContext) -> str:
        await asking.wait()
        first = await ctx.ask(Form("Really?", (Question("sure", "Sure"),)))
        again = await ctx.ask(Form("Truly?", (Question("sure", "Sure"),)))
        return f"{first.values} {again.values}"

    async with task_client(gateway(tmp_path, AskingTool(body))) as client:
        task_id = (await client.call("Asks"))["taskId"]
        asking.set()
        first = await client.until(task_id, "input_required")
        (key,) = first["inputRequests"]
        unknown = await client.update(task_id, {"made-up": YES, key: "no object"})
        still = await client.get(task_id)
        await client.update(task_id, {key: YES})
        second = await client.until(task_id, "input_required")
        (other,) = second["inputRequests"]
        assert other != key
        await client.update(task_id, {key: {"action": "decline"}, other: YES})
        done = await client.until(task_id)

    assert first["inputRequests"][key]["method"] == "elicitation/create"
    assert unknown.keys() - {"_meta"} == {"resultType"}
    assert still["inputRequests"] == first["inputRequests"]
    assert text_of(done) == "{'sure': 'yes'} {'sure': 'yes'}"


async def test_a_question_before_the_task_is_a_question_of_the_call(tmp_path: Path) -> None:
    """SEP-2663: what is asked first is asked by the call itself, and its answer may become a task."""
    release = anyio.Event()

    async def body(ctx: ToolContext) -> str:
        given = await ctx.ask(Form("Really?", (Question("sure", "Sure"),)))
        await release.wait()
        return str(given.values)

    async with task_client(gateway(tmp_path, AskingTool(body), tasks={"after_s": 0.5})) as client:
        asked = await client.call("Asks")
        (key,) = asked["inputRequests"]
        again = {"name": "Asks", "arguments": {}, "inputResponses": {key: YES}, "requestState": asked["requestState"]}
        created = await client.request("tools/call", again)
        release.set()
        done = await client.until(created["taskId"])

    assert (asked["resultType"], created["resultType"]) == ("input_required", "task")
    assert "taskId" not in asked and "requestState" not in created
    assert text_of(done) == "{'sure': 'yes'}"


@pytest.mark.parametrize(
    ("failure", "status", "member", "holds"),
    [
        (ToolError(ErrorCode.INPUT, "no such thing"), "completed", "result", "no such thing"),
        (UpstreamError(-32050, "its own error", {"why": 1}), "failed", "error", "-32050"),
    ],
    ids=["a failed tool", "a JSON-RPC error"],
)
async def test_a_failure_is_a_result_and_only_an_error_of_the_protocol_fails_a_task(
    tmp_path: Path, failure: Exception, status: str, member: str, holds: str
) -> None:
    release = anyio.Event()
    async with task_client(gateway(tmp_path, fake("Slow", release=release, answer=failure))) as client:
        created = await client.call("Slow")
        release.set()
        done = await client.until(created["taskId"])

    assert done["status"] == status
    assert done.keys() & {"result", "error"} == {member}
    assert holds in str(done[member])


async def test_a_task_is_cancelled_once_and_cancelling_again_changes_nothing(tmp_path: Path) -> None:
    slow = fake("Slow", release=anyio.Event())
    async with task_client(gateway(tmp_path, slow)) as client:
        task_id = (await client.call("Slow"))["taskId"]
        acks = [await client.cancel(task_id) for _ in range(2)]
        done = await client.get(task_id)

    assert [ack.keys() - {"_meta"} for ack in acks] == [{"resultType"}] * 2
    assert done["status"] == "cancelled"
    assert done.keys() & {"result", "error"} == set()


async def test_a_task_outlives_the_connection_that_started_it(tmp_path: Path) -> None:
    release = anyio.Event()
    async with running(gateway(tmp_path, fake("Slow", release=release))) as adapter:
        async with connected(adapter) as client:
            task_id = (await client.call("Slow"))["taskId"]
        release.set()
        async with connected(adapter) as again:
            done = await again.until(task_id)

    assert text_of(done) == "done"


async def test_a_task_that_has_ended_is_there_after_a_restart_and_one_that_ran_is_said_to_be_lost(
    tmp_path: Path,
) -> None:
    release = anyio.Event()
    ended, runs = fake("Ended", release=release), fake("Runs", release=anyio.Event())
    first = gateway(tmp_path, ended, runs)
    async with task_client(first) as client:
        kept, lost = [(await client.call(name))["taskId"] for name in ("Ended", "Runs")]
        release.set()
        await client.until(kept)
        record = tmp_path / "state" / "tasks" / f"{lost}.json"
        as_it_ran = record.read_text()
    # The process was killed: what it had written of the running one is all there is.
    record.write_text(re.sub(r'"server": \[\d+, \d+\]', '"server": [1, 2]', as_it_ran))
    async with task_client(gateway(tmp_path)) as client:
        found, gone = await client.get(kept), await client.get(lost)

    assert text_of(found) == "done"
    assert (gone["status"], gone["error"]["data"]["reason"]) == ("failed", "orphaned")
    assert "look at what it did" in gone["error"]["message"]


NO_IDS = ("", "x", "../../etc/passwd", "a" * 32, "a" * 32 + ".web-1", "u" * 5000)


@pytest.mark.parametrize("task_id", NO_IDS, ids=lambda one: one[:12] or "no")
async def test_an_id_that_is_none_is_unknown(tmp_path: Path, task_id: str) -> None:
    async with task_client(gateway(tmp_path)) as client:
        refused: list[Refused] = []
        for method, more in METHODS:
            with pytest.raises(Refused) as caught:
                await client.request(f"tasks/{method}", {"taskId": task_id, **more})
            refused.append(caught.value)

    assert {(one.code, one.message) for one in refused} == {(-32602, "no such task, or it has expired")}


async def test_a_task_is_gone_once_its_time_is_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = anyio.Event()
    async with task_client(gateway(tmp_path, fake("Slow", release=release))) as client:
        task_id = (await client.call("Slow"))["taskId"]
        release.set()
        await client.until(task_id)
        for module in ("manager", "records"):
            monkeypatch.setattr(f"goat_mcp.commands.tasks.{module}.KEEP_ENDED_S", -60.0)
        expired: Refused | None = None
        with anyio.fail_after(10):
            while expired is None:
                try:
                    await client.get(task_id)
                    await anyio.sleep(0.02)  # its end is being recorded
                except Refused as refused:
                    expired = refused

    assert expired.code == -32602


async def test_a_name_that_an_agent_was_given_is_no_id_of_a_task(tmp_path: Path) -> None:
    """TaskOutput takes names; the extension knows ids alone."""
    served = gateway(tmp_path, tasks={"after_s": 0})
    async with task_client(served) as client:
        created = await client.call("Bash", {"command": "sleep 30", "run_in_background": True})
        task = await served.services.tasks().find(created["taskId"], "local")
        task.name = "b" * 32
        with pytest.raises(Refused) as caught:
            await client.get("b" * 32)
        await client.cancel(created["taskId"])

    assert caught.value.code == -32602


async def test_with_no_room_for_another_task_the_call_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.commands.tasks.manager.MAX_RUNNING", 0)
    release = anyio.Event()
    slow = fake("Slow", release=release)
    served = gateway(tmp_path, slow)
    served.services.tasks()._max_running = 0  # pyright: ignore[reportPrivateUsage]  # as with 32 of them
    async with task_client(served) as client:
        number = await client.send("tools/call", {"name": "Slow", "arguments": {}})
        await slow.started.wait()
        await anyio.sleep(4 * AFTER_S)
        release.set()
        answer = await client.answer_to(number)

    assert answer["resultType"] == "complete"


async def test_a_stream_that_names_a_task_gets_each_of_its_states(tmp_path: Path) -> None:
    release = anyio.Event()
    async with task_client(gateway(tmp_path, fake("Slow", release=release))) as client:
        task_id = (await client.call("Slow"))["taskId"]
        filter = {"toolsListChanged": True, "taskIds": [task_id, "a" * 32]}
        number = await client.send("subscriptions/listen", {"notifications": filter})
        acknowledged, working = await client.notice(0), await client.notice(1)
        release.set()
        done = await client.notice(2)

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert acknowledged["params"]["notifications"] == {"toolsListChanged": True, "taskIds": [task_id]}
    assert {one["method"] for one in (working, done)} == {"notifications/tasks"}
    assert [one["params"]["status"] for one in (working, done)] == ["working", "completed"]
    assert done["params"]["result"]["content"] == [{"type": "text", "text": "done"}]
    stamps = {one["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] for one in (working, done)}
    assert stamps == {number}


async def test_task_output_shows_the_call_of_a_task_too(tmp_path: Path) -> None:
    release = anyio.Event()
    answer = text_result("made")
    async with task_client(gateway(tmp_path, fake("Slow", release=release, answer=answer))) as client:
        task_id = (await client.call("Slow"))["taskId"]
        release.set()
        await client.until(task_id)
        shown = await client.call("TaskOutput", {"task_id": task_id})

    header, made = (block["text"] for block in shown["content"])
    assert header.startswith(f"Task {task_id}: completed")
    assert made == "made"


async def test_declaring_tasks_once_says_nothing_of_the_next_request(tmp_path: Path) -> None:
    release = anyio.Event()
    slow = fake("Slow", release=release)
    async with task_client(gateway(tmp_path, slow), {}) as client:
        created = await client.call("Slow", capabilities=DECLARED)
        with pytest.raises(Refused) as caught:
            await client.get(created["taskId"])
        release.set()
        found = await client.get(created["taskId"], capabilities=DECLARED)

    assert caught.value.code == -32021
    assert found["taskId"] == created["taskId"]
