"""Our own resources as a client sees them, in both protocol eras, over an in-memory connection."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.exceptions import MCPError
from mcp_types import ResourceUpdatedNotification, TextResourceContents

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.core.context import ToolContext
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.plans import Presenter

# Clients of the handshake era subscribe; in 2026-07-28 they listen instead.
pytestmark = [
    pytest.mark.anyio,
    pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning"),
    pytest.mark.matrix,
]
both_eras = pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])

STDIO = Presenter("local", "stdio")
TODO = {"content": "Fix it", "status": "in_progress", "activeForm": "Fixing it"}
OTHER = ToolContext(call_id="o", principal="somebody else")
WAIT_S = 60


def gateway(folder: Path, **settings: Any) -> Gateway:
    tree = Settings.model_validate({"workspace": [folder], **settings})
    return Gateway(tree, approval=Approval.HOST, state=StateDirectory(folder / "state"))


@asynccontextmanager
async def connected(served: Gateway, mode: str, **options: Any) -> AsyncGenerator[Client]:
    adapter = Adapter(served, "stdio")
    async with served.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode=mode, **options) as client:
            yield client
        group.cancel_scope.cancel()


async def read(client: Client, uri: str) -> Any:
    """The one content of a resource; JSON as an object."""
    (content,) = (await client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    assert content.uri == uri
    return json.loads(content.text) if content.mime_type == "application/json" else content.text


@both_eras
async def test_what_there_is_is_listed_and_may_be_watched(tmp_path: Path, mode: str) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        listed = (await client.list_resources()).resources
        templates = (await client.list_resource_templates()).resource_templates
    async with connected(gateway(tmp_path), "legacy" if mode == "legacy" else "auto") as client:
        capability = client.server_capabilities.resources

    assert [(str(found.uri), found.mime_type) for found in listed] == [
        ("goat://todos", "application/json"),
        ("goat://tasks", "application/json"),
        ("goat://plans", "application/json"),
        ("goat://review", "application/json"),
        ("goat://calls", "application/json"),
        ("goat://errors", "text/markdown"),
        ("goat://status", "application/json"),
    ]
    assert [found.uri_template for found in templates] == [
        "goat://tasks/{id}",
        "goat://plans/{name}",
        "goat://review/{id}",
        "goat://output/{name}",
        "goat://errors/{code}",
    ]
    assert capability is not None and (capability.subscribe, capability.list_changed) == (True, True)


@both_eras
async def test_every_listed_resource_can_be_read(tmp_path: Path, mode: str) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        listed = (await client.list_resources()).resources

        for found in listed:
            assert await read(client, str(found.uri))


@both_eras
@pytest.mark.parametrize(
    "uri", ["goat://nope", "goat://tasks/abc", "goat://plans/../x", "goat://errors/E_NOPE", "file:///etc/passwd"]
)
async def test_what_is_not_there_is_an_error_with_its_uri(tmp_path: Path, mode: str, uri: str) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        with pytest.raises(MCPError) as refused:
            await client.read_resource(uri)

    assert refused.value.error.code == (-32002 if mode == "legacy" else -32602)
    assert refused.value.error.data == {"uri": uri}
    assert uri in refused.value.error.message


@both_eras
async def test_the_todo_list_is_its_principals(tmp_path: Path, mode: str) -> None:
    served = gateway(tmp_path)
    await served.call("TodoWrite", {"todos": [{**TODO, "content": "not yours"}]}, OTHER)

    async with connected(served, mode) as client:
        before = await read(client, "goat://todos")
        await client.call_tool("TodoWrite", {"todos": [TODO]})
        after = await read(client, "goat://todos")

    assert (before, after) == ({"todos": []}, {"todos": [TODO]})


@both_eras
async def test_tasks_show_how_they_do_and_what_they_print(tmp_path: Path, mode: str) -> None:
    served = gateway(tmp_path)
    command = "echo hello; exit 3"

    async with connected(served, mode) as client:
        foreign = await served.call("Bash", {"command": "echo secret", "run_in_background": True}, OTHER)
        await client.call_tool("Bash", {"command": command, "run_in_background": True})
        (listed,) = (await read(client, "goat://tasks"))["tasks"]
        await client.call_tool("TaskOutput", {"task_id": listed["id"]})
        ended = await read(client, listed["uri"])
        with pytest.raises(MCPError):
            await client.read_resource(f"goat://tasks/{(foreign.facts or {})['task_id']}")

    assert ended == {
        "id": listed["id"],
        "uri": f"goat://tasks/{listed['id']}",
        "kind": "shell",
        "title": command,
        "status": "failed",
        "exit_code": 3,
        "reason": "",
        "started_at": listed["started_at"],
        "seconds": ended["seconds"],
        "output_file": listed["output_file"],
        "output": "hello",
        "truncated": False,
    }


async def test_tasks_of_an_earlier_process_are_still_listed(tmp_path: Path) -> None:
    first = gateway(tmp_path)
    async with first.running():
        await first.call("Bash", {"command": "sleep 60", "run_in_background": True}, ToolContext(call_id="c"))

    async with connected(gateway(tmp_path), "legacy") as client:
        (task,) = (await read(client, "goat://tasks"))["tasks"]

    assert (task["title"], task["status"]) == ("sleep 60", "stopped")


@both_eras
async def test_plans_are_listed_with_their_status_and_read_as_text(tmp_path: Path, mode: str) -> None:
    served = gateway(tmp_path)
    plan = served.plan_approval.submit(STDIO, "# Plan\n\n1. Fix it\n")

    async with connected(served, mode) as client:
        (listed,) = (await read(client, "goat://plans"))["plans"]
        text = await read(client, listed["uri"])

    assert (listed["name"], listed["status"]) == (plan.name, "waiting")
    assert text == "# Plan\n\n1. Fix it\n"


@both_eras
async def test_the_call_log_shows_the_callers_own_calls_without_their_arguments(tmp_path: Path, mode: str) -> None:
    served = gateway(tmp_path)
    await served.call("Glob", {"pattern": "foreign"}, OTHER)

    async with connected(served, mode) as client:
        await client.call_tool("Glob", {"pattern": "canary"})
        await client.call_tool("Read", {"file_path": "relative"})
        log = await read(client, "goat://calls")

    shown = [(call["tool"], call["outcome"], set(call)) for call in log["calls"]]
    keys = {"time", "call_id", "tool", "outcome", "duration_ms"}
    assert shown == [("Read", "E_PATH_RELATIVE", keys), ("Glob", "ok", keys)]


@both_eras
async def test_the_help_url_of_an_error_leads_to_its_page(tmp_path: Path, mode: str) -> None:
    async with connected(gateway(tmp_path), mode) as client:
        answer = await client.call_tool("Read", {"file_path": "relative"})
        assert answer.structured_content is not None
        page = await read(client, answer.structured_content["error"]["helpUrl"])

    assert page.startswith("# E_PATH_RELATIVE\n")


class Told:
    """Updates a handshake client got."""

    def __init__(self) -> None:
        self.uris: list[str] = []
        self._came = anyio.Event()

    async def __call__(self, message: Any) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            self.note(message.params.uri)

    def note(self, uri: str) -> None:
        self.uris.append(uri)
        self._came.set()
        self._came = anyio.Event()

    async def wait_for(self, uri: str) -> None:
        with anyio.fail_after(WAIT_S):
            while uri not in self.uris:
                await self._came.wait()


async def subscribe(client: Client, uri: str) -> None:
    await client.session.subscribe_resource(uri)  # pyright: ignore[reportDeprecated]  # the older era knows no other


async def unsubscribe(client: Client, uri: str) -> None:
    await client.session.unsubscribe_resource(uri)  # pyright: ignore[reportDeprecated]  # as above


# CHG-3
async def test_a_handshake_client_hears_of_what_it_subscribed_to_and_of_nothing_else(tmp_path: Path) -> None:
    told = Told()
    async with connected(gateway(tmp_path), "legacy", message_handler=told) as client:
        await subscribe(client, "goat://todos")
        await client.call_tool("Bash", {"command": "true", "run_in_background": True})
        await client.call_tool("TodoWrite", {"todos": [TODO]})
        await told.wait_for("goat://todos")

        assert told.uris == ["goat://todos"]


async def test_after_an_unsubscribe_nothing_more_is_heard(tmp_path: Path) -> None:
    told = Told()
    async with connected(gateway(tmp_path), "legacy", message_handler=told) as client:
        for uri in ("goat://todos", "goat://calls"):
            await subscribe(client, uri)
        await unsubscribe(client, "goat://todos")
        await client.call_tool("TodoWrite", {"todos": [TODO]})
        await told.wait_for("goat://calls")  # of the same call, told in the same round

    assert told.uris == ["goat://calls"]


async def test_what_cannot_be_read_cannot_be_subscribed_to(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    async with connected(served, "legacy") as client:
        foreign = await served.call("Bash", {"command": "sleep 60", "run_in_background": True}, OTHER)
        with pytest.raises(MCPError) as refused:
            await subscribe(client, f"goat://tasks/{(foreign.facts or {})['task_id']}")

    assert refused.value.error.code == -32002


# CHG-3
async def test_a_2026_client_hears_of_what_it_listens_to(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    async with (
        connected(served, "2026-07-28") as client,
        client.listen(resource_subscriptions=["goat://todos", "goat://calls"]) as changes,
    ):
        await served.call("TodoWrite", {"todos": [TODO]}, OTHER)
        await client.call_tool("TodoWrite", {"todos": [TODO]})
        with anyio.fail_after(WAIT_S):
            heard = {(await anext(changes)).uri for _ in range(2)}  # type: ignore[union-attr]  # nothing but resources is listened to

    assert heard == {"goat://todos", "goat://calls"}


@asynccontextmanager
async def watching(served: Gateway, mode: str, uri: str) -> AsyncGenerator[tuple[Client, Told]]:
    """A client that watches in its era's way, and what it was told."""
    told = Told()
    async with connected(served, mode, message_handler=told) as client, anyio.create_task_group() as group:
        if mode == "legacy":
            await subscribe(client, uri)
            yield client, told
        else:
            async with client.listen(resource_subscriptions=[uri]) as changes:

                async def note() -> None:
                    async for change in changes:
                        told.note(change.uri)  # type: ignore[union-attr]  # nothing but resources is listened to

                group.start_soon(note)
                yield client, told
                group.cancel_scope.cancel()


@both_eras
async def test_a_watcher_of_todos_hears_of_another_process(tmp_path: Path, mode: str) -> None:
    other = gateway(tmp_path)
    async with watching(gateway(tmp_path), mode, "goat://todos") as (client, told):
        for content in ("first", "second"):
            told.uris.clear()
            todos = [{**TODO, "content": content}]

            await other.call("TodoWrite", {"todos": todos}, ToolContext(call_id="c", principal="local"))
            await told.wait_for("goat://todos")

            assert await read(client, "goat://todos") == {"todos": todos}
    other.database.close()


@both_eras
@pytest.mark.parametrize("below", [False, True])
async def test_a_watcher_of_plans_hears_of_another_process(tmp_path: Path, mode: str, below: bool) -> None:
    served, other = gateway(tmp_path), gateway(tmp_path)
    plan = served.plan_approval.submit(STDIO, "# Plan")
    uri = f"goat://plans/{plan.name}" if below else "goat://plans"

    async with watching(served, mode, uri) as (client, told):
        other.plan_approval.reject(STDIO, plan, "not like this")
        await told.wait_for(uri)
        (seen,) = (await read(client, "goat://plans"))["plans"]

    assert (seen["status"], seen["feedback"]) == ("rejected", "not like this")
    assert set(told.uris) == {uri}


async def test_a_change_of_somebody_elses_list_is_not_told(tmp_path: Path) -> None:
    served, other = gateway(tmp_path), gateway(tmp_path)
    hears: list[tuple[str, str | None]] = []
    served.announcements.listen(lambda uri, principal: hears.append((uri, principal)))
    look = served.resources.looks["goat://todos"]
    await look(["local"])

    await other.call("TodoWrite", {"todos": [TODO]}, OTHER)
    await look(["local"])
    assert hears == []

    await other.call("TodoWrite", {"todos": [TODO]}, ToolContext(call_id="c", principal="local"))
    await look(["local"])
    assert hears == [("goat://todos", "local")]
    other.database.close()
    served.database.close()


async def test_ones_own_changes_are_told_once(tmp_path: Path) -> None:
    served = gateway(tmp_path)
    hears: list[str] = []
    served.announcements.listen(lambda uri, principal: hears.append(uri))
    looks = (served.resources.looks["goat://todos"], served.resources.looks["goat://plans"])
    for look in looks:
        await look(["local"])

    await served.call("TodoWrite", {"todos": [TODO]}, ToolContext(call_id="c", principal="local"))
    plan = served.plan_approval.submit(STDIO, "# Plan")
    for look in (*looks, *looks):
        await look(["local"])

    assert [uri for uri in hears if uri != "goat://calls"] == [
        "goat://todos",
        "goat://plans",
        f"goat://plans/{plan.name}",
    ]
    served.database.close()


@both_eras
async def test_the_output_of_a_running_task_is_announced_while_it_is_watched(tmp_path: Path, mode: str) -> None:
    go = tmp_path / "go"
    command = f"until [ -e {go} ]; do sleep 0.1; done; echo printed; sleep 60"
    told = Told()
    async with connected(gateway(tmp_path), mode, message_handler=told) as client:
        await client.call_tool("Bash", {"command": command, "run_in_background": True})
        (task,) = (await read(client, "goat://tasks"))["tasks"]
        if mode == "legacy":
            await subscribe(client, task["uri"])
            go.touch()
            await told.wait_for(task["uri"])
        else:
            async with client.listen(resource_subscriptions=[task["uri"]]) as changes:
                go.touch()
                with anyio.fail_after(WAIT_S):
                    await anext(changes)
        seen = await read(client, task["uri"])
        await client.call_tool("TaskStop", {"task_id": task["id"]})

    assert (seen["status"], seen["output"]) == ("running", "printed")
