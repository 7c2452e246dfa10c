"""Tasks of upstreams (SEP-2663) through us: our ids, what passes, and what an upstream may not do. # ERA-7"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.server.request_state import AESGCMRequestStateCodec

from goat_mcp.calls.audit.recorded_calls import recorded_calls
from goat_mcp.calls.audit.records import CallFilter
from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.result import UpstreamTask
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.server.tasks.sealed_task import SealedTasks
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.conformance.targets import direct
from tests.server.task_client import DECLARED, Refused, TaskClient, connected, running, task_client
from tests.upstreams.fleet import server

pytestmark = pytest.mark.anyio

DONE: dict[str, Any] = {
    "status": "completed",
    "result": {"content": [{"type": "text", "text": "made"}], "structuredContent": {"n": None}, "_meta": {"v/x": 1}},
}
ASKS: dict[str, Any] = {
    "status": "input_required",
    "inputRequests": {
        "their.key": {
            "method": "elicitation/create",
            "params": {"message": "Well?", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
}
WORK, MUST = "mcp__t__work", "mcp__t__must"


def gateway(folder: Path, entry: dict[str, Any] | None = None, **settings: Any) -> Gateway:
    file = folder / "upstreams.json"
    default = server("tasking.py", folder / "log", allow=["elicitation"])
    file.write_text(json.dumps({"mcpServers": {"t": default if entry is None else entry}}))
    return Gateway(
        Settings.model_validate(
            {"workspace": [folder], "mode": "bypassPermissions", "upstreams": [file], "sandbox": "off", **settings}
        ),
        approval=Approval.HOST,
        state=StateDirectory(folder / "state"),
    )


@asynccontextmanager
async def client_of(folder: Path, **settings: Any) -> AsyncGenerator[TaskClient]:
    served = gateway(folder, **settings)
    async with task_client(served) as client:
        await served.upstreams.first_outcome("mcp__t__", 30)
        yield client


def asked(folder: Path, *methods: str) -> list[dict[str, Any]]:
    """The params of what the upstream was asked."""
    lines = [json.loads(line) for line in (folder / "log").read_text().splitlines()]
    return [line["params"] for line in lines if line["method"] in methods]


async def test_an_upstreams_task_passes_with_an_id_of_ours_and_all_else_as_it_is(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        states = [{"status": "working", "statusMessage": "half way", "pollIntervalMs": 250}, DONE]
        created = await client.call(WORK, {"states": states})
        working = await client.get(created["taskId"])
        done = await client.get(created["taskId"])

    times = {"createdAt": "2026-01-02T03:04:05Z", "lastUpdatedAt": "2026-01-02T03:04:06Z", "ttlMs": 77_000}
    wire_id = created["taskId"]
    assert {key: one for key, one in created.items() if key != "_meta"} == {
        "resultType": "task",
        "taskId": wire_id,
        "status": "working",
        "pollIntervalMs": 100,
        **times,
    }
    assert "their-1" not in json.dumps(created) and wire_id.startswith("up.")
    about = {"resultType": "complete", "taskId": wire_id, **times}
    assert {key: one for key, one in working.items() if key != "_meta"} == {**about, **states[0]}
    assert {key: one for key, one in done.items() if key not in ("_meta", "result")} == {**about, "status": "completed"}
    assert done["result"] == {**DONE["result"], "isError": False, "resultType": "complete"}
    assert {one["taskId"] for one in asked(tmp_path, "tasks/get")} == {"their-1"}


async def test_the_extension_is_declared_for_a_client_that_declares_it_and_for_no_other(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        with_tasks = await client.call(WORK)
        without = await client.call(WORK, capabilities={"elicitation": {}})

    declared = [
        "extensions" in one["_meta"]["io.modelcontextprotocol/clientCapabilities"]
        for one in asked(tmp_path, "tools/call")
    ]
    assert declared == [True, False]
    assert (with_tasks["resultType"], without["content"][0]["text"]) == ("task", "at once")


async def test_a_question_in_the_task_keeps_its_key_and_names_its_author(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": [ASKS, DONE]}))["taskId"]
        asks = await client.get(task_id)
        await client.update(task_id, {"their.key": {"action": "accept", "content": {"n": None}}})
        done = await client.get(task_id)

    question = asks["inputRequests"]["their.key"]
    assert (question["method"], question["params"]["message"]) == ("elicitation/create", "t: Well?")
    (update,) = asked(tmp_path, "tasks/update")
    assert update["taskId"] == "their-1"
    assert update["inputResponses"] == {"their.key": {"action": "accept", "content": {"n": None}}}
    assert done["status"] == "completed"


async def test_roots_that_a_task_wants_are_the_workspace_and_no_question_to_the_client(tmp_path: Path) -> None:
    """ERA-6."""
    wants: dict[str, Any] = {
        "status": "input_required",
        "inputRequests": {"r": {"method": "roots/list"}, **ASKS["inputRequests"]},
    }
    only: dict[str, Any] = {"status": "input_required", "inputRequests": {"r": {"method": "roots/list"}}}
    entry = server("tasking.py", tmp_path / "log", allow=["elicitation", "roots"])
    served = gateway(tmp_path, entry)
    async with task_client(served, {**DECLARED, "roots": {}}) as client:
        await served.upstreams.first_outcome("mcp__t__", 30)
        task_id = (await client.call(WORK, {"states": [wants, only]}))["taskId"]
        first, second = await client.get(task_id), await client.get(task_id)

    assert (first["status"], list(first["inputRequests"])) == ("input_required", ["their.key"])
    assert second["status"] == "working" and "inputRequests" not in second
    given = [one["inputResponses"] for one in asked(tmp_path, "tasks/update")]
    assert given == [{"r": {"roots": [{"uri": tmp_path.as_uri(), "name": tmp_path.name}]}}] * 2


async def test_cancelling_reaches_the_upstream_is_recorded_and_asks_nobody(tmp_path: Path) -> None:
    rules = {"ask": [WORK]}
    async with client_of(tmp_path, permissions=rules, mode="bypassPermissions") as client:
        asked_first = await client.call(WORK)
        (key,) = asked_first["inputRequests"]
        answers = {key: {"action": "accept", "content": {"decision": "allow_once"}}}
        schema = asked_first["inputRequests"][key]["params"]["requestedSchema"]["properties"]
        (field,) = list(schema)[:1]
        options = schema[field].get("enum") or [one["const"] for one in schema[field]["oneOf"]]
        answers[key]["content"] = {field: options[0]}
        again = {"name": WORK, "arguments": {}, "inputResponses": answers}
        created = await client.request("tools/call", {**again, "requestState": asked_first["requestState"]})
        acks = [await client.cancel(created["taskId"]) for _ in range(2)]
        ended = await client.get(created["taskId"])

    assert [ack["resultType"] for ack in acks] == ["complete"] * 2
    assert ended["status"] == "cancelled"
    assert len(asked(tmp_path, "tasks/cancel")) == 2
    calls = recorded_calls(tmp_path / "state" / "calls.db", 20, CallFilter())
    follow_ups = [one for one in calls if one["arguments"] == {"request": "tasks/cancel"}]
    assert len(follow_ups) == 2 and {one["tool"] for one in follow_ups} == {WORK}


async def test_an_id_holds_after_a_reconnect_and_a_restart(tmp_path: Path) -> None:
    """The upstream is over HTTP, or keeps its tasks: here its process is the only thing that goes on."""
    first = gateway(tmp_path)
    async with running(first) as adapter:
        async with connected(adapter) as client:
            await first.upstreams.first_outcome("mcp__t__", 30)
            task_id = (await client.call(WORK, {"states": [{"status": "working"}]}))["taskId"]
        async with connected(adapter) as again:
            assert (await again.get(task_id))["status"] == "working"
    second = gateway(tmp_path)
    async with task_client(second) as client:
        await second.upstreams.first_outcome("mcp__t__", 30)
        with pytest.raises(Refused) as caught:
            await client.get(task_id)

    # The new process of the upstream was asked under its own id, and has forgotten it.
    assert asked(tmp_path, "tasks/get")[-1]["taskId"] == "their-1"
    assert (caught.value.code, caught.value.message) == (-32602, "no such task")


async def test_another_process_with_the_same_keys_reads_answers_and_cancels_a_task_of_an_http_upstream(
    tmp_path: Path,
) -> None:
    """As replicas do: nothing is kept of it but the id that the client has."""
    with direct(tmp_path, "--tasks", "offered") as url:
        entry = {"url": url, "allow": ["elicitation"]}
        here, there = tmp_path / "here", tmp_path / "there"
        for folder in (here, there):
            folder.mkdir()
        served = gateway(here, entry)
        async with task_client(served) as client:
            await served.upstreams.first_outcome("mcp__t__", 30)
            asks = (await client.call("mcp__t__confirm_delete", {"filename": "a"}))["taskId"]
            slow = (await client.call("mcp__t__slow_compute", {"seconds": 60}))["taskId"]
        key = StateDirectory(there / "state").folder("http") / "request-state.key"
        shutil.copy(here / "state" / "http" / "request-state.key", key)
        other = gateway(there, entry)
        async with task_client(other) as client:
            await other.upstreams.first_outcome("mcp__t__", 30)
            (question,) = (await client.until(asks, "input_required"))["inputRequests"]
            await client.update(asks, {question: {"action": "accept", "content": {"confirm": True}}})
            done = await client.until(asks)
            await client.cancel(slow)
            stopped = await client.until(slow)

    assert question == "confirm"
    assert done["result"]["content"] == [{"type": "text", "text": "deleted a"}]
    assert stopped["status"] == "cancelled"


def _tampered(task_id: str) -> str:
    head, body = task_id[:20], task_id[20:]
    other = "A" if body[0] != "A" else "B"
    return head + other + body[1:]


async def test_an_id_that_was_changed_cut_or_made_of_another_seal_is_unknown(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK))["taskId"]
        strangers = SealedTasks(AESGCMRequestStateCodec([b"x" * 32]))
        task = UpstreamTask("upstream:t", WORK, "their-1", "0" * 16)
        plain = "up." + base64.urlsafe_b64encode(b'{"k": "task", "p": "local"}').decode()
        fakes = (
            _tampered(task_id),
            task_id[:-3],
            task_id + "A",
            strangers.seal(task, "local"),
            plain,
            "up.",
            "their-1",
        )
        refused: list[tuple[int, str]] = []
        for one in fakes:
            for method in (client.get, client.cancel):
                with pytest.raises(Refused) as caught:
                    await method(one)
                refused.append((caught.value.code, caught.value.message))

    assert set(refused) == {(-32602, "no such task, or it has expired")}
    assert asked(tmp_path, "tasks/get", "tasks/cancel") == []


async def test_an_id_is_its_principals_and_its_upstreams_only(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    async with running(served) as adapter, connected(adapter) as client:
        await served.upstreams.first_outcome("mcp__t__", 30)
        launch = await _launch_of(client, adapter)
        theirs = UpstreamTask("upstream:t", WORK, "their-1", launch)
        sealed = _seal_of(adapter)
        mine = await client.get(sealed.seal(theirs, "local"))
        others = (
            sealed.seal(theirs, "profile:ada"),
            sealed.seal(UpstreamTask("upstream:t", WORK, "their-1", "0" * 16), "local"),
            sealed.seal(UpstreamTask("upstream:u", WORK, "their-1", launch), "local"),
            sealed.seal(UpstreamTask("upstream:t", "mcp__t__gone", "their-1", launch), "local"),
        )
        refused: list[tuple[int, str]] = []
        for one in others:
            with pytest.raises(Refused) as caught:
                await client.get(one)
            refused.append((caught.value.code, caught.value.message))

    assert mine["status"] == "working"
    assert set(refused) == {(-32602, "no such task, or it has expired")}


async def _launch_of(client: TaskClient, adapter: Adapter) -> str:
    task_id = (await client.call(WORK))["taskId"]
    found = _seal_of(adapter).open(task_id, "local")
    assert found is not None
    return found.launch


def _seal_of(adapter: Adapter) -> SealedTasks:
    return adapter._tasks().sealed  # pyright: ignore[reportPrivateUsage]  # what only the server can make


async def test_an_id_expires(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goat_mcp.server.tasks.sealed_task.LEAST_KEPT_S", -1.0)
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"first": {"ttlMs": None}}))["taskId"]
        with pytest.raises(Refused) as caught:
            await client.get(task_id)

    assert caught.value.code == -32602
    assert asked(tmp_path, "tasks/get") == []


MANY_QUESTIONS = {str(number): {"method": "roots/list"} for number in range(101)}


@pytest.mark.parametrize(
    ("states", "says"),
    [
        ([DONE, {"status": "working"}], "said that the task is completed, and says now that it is working"),
        ([{"status": "cancelled"}, DONE], "said that the task is cancelled, and says now that it is completed"),
        ([{"status": "dancing"}], "says of a task that it is 'dancing', which is no status"),
        ([{"status": ["x"]}], "which is no status"),
        ([{"taskId": "of-somebody-else", **DONE}], "answered about another task than it was asked about"),
        ([{"status": "completed"}], "completed a task without a result"),
        ([{"status": "failed"}], "says that a task failed, and not how"),
        ([{"status": "input_required", "inputRequests": {"k": {"method": "x/y"}}}], "asks for something that MCP does"),
        (
            [{"status": "input_required", "inputRequests": {"k": {"method": "sampling/createMessage"}}}],
            "asks for sampling, which its entry does not allow",
        ),
        ([{"status": "failed", "error": {"code": True, "message": "no"}}], "says that a task failed, and not how"),
        ([{"status": "failed", "error": {"code": 10**400, "message": "no"}}], "says that a task failed, and not how"),
        ([{"status": "input_required", "inputRequests": MANY_QUESTIONS}], "asks 101 questions at once"),
    ],
    ids=[
        "backwards",
        "undead",
        "no status",
        "a list",
        "another task",
        "no result",
        "no error",
        "no question",
        "not allowed",
        "no number",
        "a huge number",
        "too many questions",
    ],
)
async def test_an_upstream_that_lies_about_its_task_is_told_of_and_not_believed(
    tmp_path: Path, states: list[dict[str, Any]], says: str
) -> None:
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": states}))["taskId"]
        with pytest.raises(Refused) as caught:
            for _ in states:
                await client.get(task_id)

    assert says in caught.value.message
    assert caught.value.code == -32603


@pytest.mark.parametrize(
    "first", [{"taskId": ""}, {"taskId": 7}, {"taskId": "x" * 5000}, {"taskId": "\u5b57" * 400}, {"status": "dancing"}]
)
async def test_a_task_that_cannot_be_one_is_a_failed_call(tmp_path: Path, first: dict[str, Any]) -> None:
    async with client_of(tmp_path) as client:
        answer = await client.call(WORK, {"first": first})

    assert (answer["resultType"], answer["isError"]) == ("complete", True)


async def test_a_huge_result_of_a_task_is_cut_as_that_of_a_call(tmp_path: Path) -> None:
    huge = {"status": "completed", "result": {"content": [{"type": "text", "text": "x" * 200_000}]}}
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": [huge]}))["taskId"]
        done = await client.get(task_id)

    text, link = done["result"]["content"]
    assert len(text["text"]) < 40_000 and "of 200000 characters cut" in text["text"]
    assert link["type"] == "resource_link"


async def test_a_task_that_failed_has_the_upstreams_own_error(tmp_path: Path) -> None:
    failed = {"status": "failed", "error": {"code": -32007, "message": "broke", "data": {"why": [1]}}}
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": [failed]}))["taskId"]
        state = await client.get(task_id)

    assert (state["status"], state["error"]) == ("failed", failed["error"])


async def test_an_upstream_that_dies_with_its_tasks_is_asked_again_and_says_that_it_knows_none(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": [{"status": "working"}, {"status": "dies"}]}))["taskId"]
        await client.get(task_id)
        with pytest.raises(Refused) as caught:
            await client.get(task_id)

    assert (caught.value.code, caught.value.message) == (-32602, "no such task")


async def test_what_the_rules_deny_by_now_is_refused(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK))["taskId"]
    denying = gateway(tmp_path, permissions={"deny": [WORK]})
    async with task_client(denying) as client:
        await denying.upstreams.first_outcome("mcp__t__", 30)
        with pytest.raises(Refused):
            await client.get(task_id)

    assert asked(tmp_path, "tasks/get") == []


async def test_a_stream_reports_on_an_upstreams_task(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        states = [{"status": "working", "pollIntervalMs": 50}] * 2 + [DONE]
        task_id = (await client.call(WORK, {"states": states}))["taskId"]
        await client.send("subscriptions/listen", {"notifications": {"taskIds": [task_id]}})
        said = [await client.notice(number) for number in range(3)]

    assert said[0]["params"]["notifications"] == {"taskIds": [task_id]}
    assert [one["params"]["status"] for one in said[1:]] == ["working", "completed"]
    assert {one["params"]["taskId"] for one in said[1:]} == {task_id}


async def test_a_handshake_client_gets_the_result_of_a_task_that_the_upstream_insists_on(tmp_path: Path) -> None:
    """ERA-7: it cannot say that it knows tasks, so we wait for the end, and answer what is asked on the way."""
    import mcp_types as types

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={})

    served = gateway(tmp_path)
    async with running(served) as adapter:
        await served.upstreams.first_outcome("mcp__t__", 30)
        async with Client(adapter.server, mode="legacy", elicitation_callback=accept) as client:
            result = await client.call_tool(MUST, {"states": [{"status": "working"}, ASKS, DONE]})

    assert result.content[0] == types.TextContent(type="text", text="made")
    (update,) = asked(tmp_path, "tasks/update")
    assert update["inputResponses"] == {"their.key": {"action": "accept", "content": {}}}


async def test_a_2026_07_28_client_without_tasks_is_told_what_it_lacks(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        with pytest.raises(Refused) as caught:
            await client.call(MUST, capabilities={"elicitation": {}})

    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


@pytest.mark.parametrize("keys", [["their.key"] * 3, ["their.key", "other", "their.key"]], ids=["one", "two"])
async def test_a_person_is_asked_each_question_of_a_held_task_once(tmp_path: Path, keys: list[str]) -> None:
    """It stays there until the upstream has read the answer."""
    import mcp_types as types

    asked_for: list[str] = []

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        asked_for.append(params.message)
        return types.ElicitResult(action="accept", content={})

    (question,) = ASKS["inputRequests"].values()
    states = [{**ASKS, "inputRequests": {key: question}} for key in keys]
    served = gateway(tmp_path)
    async with running(served) as adapter:
        await served.upstreams.first_outcome("mcp__t__", 30)
        async with Client(adapter.server, mode="legacy", elicitation_callback=accept) as client:
            await client.call_tool(MUST, {"states": [*states, DONE]})

    assert len(asked_for) == len(set(keys)) == len(asked(tmp_path, "tasks/update"))


async def test_a_held_task_asks_ten_times_at_most(tmp_path: Path) -> None:
    """ERA-4."""
    import mcp_types as types

    async def accept(context: Any, params: Any) -> types.ElicitResult:
        return types.ElicitResult(action="accept", content={})

    (question,) = ASKS["inputRequests"].values()
    states = [{**ASKS, "inputRequests": {f"key {number}": question}} for number in range(12)]
    served = gateway(tmp_path)
    async with running(served) as adapter:
        await served.upstreams.first_outcome("mcp__t__", 30)
        async with Client(adapter.server, mode="legacy", elicitation_callback=accept) as client:
            result = await client.call_tool(MUST, {"states": [*states, DONE]})

    assert result.is_error and "asked more than 10 times" in str(result.content)
    assert len(asked(tmp_path, "tasks/update")) == 10
    assert len(asked(tmp_path, "tasks/cancel")) == 1


async def test_a_held_task_has_the_time_of_a_call(tmp_path: Path) -> None:
    """FLW-3."""
    served = gateway(tmp_path, server("tasking.py", tmp_path / "log", allow=["elicitation"], timeout_s=1))
    async with running(served) as adapter:
        await served.upstreams.first_outcome("mcp__t__", 30)
        async with Client(adapter.server, mode="legacy") as client:
            result = await client.call_tool(MUST, {})

    assert result.is_error and "did not end within 1 s" in str(result.content)
    assert len(asked(tmp_path, "tasks/cancel")) == 1


async def test_a_task_that_brings_a_task_brings_no_result(tmp_path: Path) -> None:
    another = {"status": "completed", "result": {"resultType": "task", "taskId": "x", "status": "working"}}
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": [another]}))["taskId"]
        state = await client.get(task_id)

    assert state["status"] == "completed" and state["result"]["isError"]
    assert "completed a task with another task" in str(state["result"]["content"])


async def test_a_question_that_the_request_does_not_declare_is_not_passed_on(tmp_path: Path) -> None:
    """ERA-6."""
    without: dict[str, Any] = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    async with client_of(tmp_path) as client:
        task_id = (await client.call(WORK, {"states": [ASKS, ASKS]}))["taskId"]
        with pytest.raises(Refused) as caught:
            await client.get(task_id, capabilities=without)
        state = await client.get(task_id)

    assert caught.value.code == -32021
    assert caught.value.data == {"requiredCapabilities": {"elicitation": {"form": {}}}}
    assert set(state["inputRequests"]) == {"their.key"}


async def test_times_that_no_clock_knows_are_taken_for_nothing(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        made = await client.call(WORK, {"first": {"ttlMs": 10**400, "pollIntervalMs": 10**400}})

    assert made["resultType"] == "task" and made.get("pollIntervalMs") is None


async def test_a_held_task_is_cancelled_with_its_call(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    async with running(served) as adapter:
        await served.upstreams.first_outcome("mcp__t__", 30)
        async with Client(adapter.server, mode="legacy") as client:
            with anyio.move_on_after(1):
                await client.call_tool(MUST, {})
            with anyio.fail_after(20):
                while not asked(tmp_path, "tasks/cancel"):  # noqa: ASYNC110  # the upstream knows it, and tells nobody
                    await anyio.sleep(0.05)

    assert asked(tmp_path, "tasks/cancel")[0]["taskId"] == "their-1"
