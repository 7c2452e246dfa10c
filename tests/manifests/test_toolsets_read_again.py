"""Documents of kind Toolset and Profile that change while the gateway runs (design D15)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from goat_mcp.core.rights import Rights
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from tests.manifests.declared import eventually, gateway_over, python
from tests.manifests.test_gateway_over_manifests import ONE, document, names

pytestmark = pytest.mark.anyio

BOUND_S = 60.0
SMALL = Rights(profiles=("small",))


def seen_by(gateway: Gateway, rights: Rights) -> list[str]:
    return [tool.spec.name for tool in gateway.catalog.of(rights).tools()]


def details(gateway: Gateway) -> list[str]:
    return [problem["detail"] for problem in gateway.problems()]


async def test_a_changed_toolset_is_what_clients_see_and_they_are_told(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    python(folder, "probe", ONE, "say")
    document(folder, "Toolset", "ops", tools=["Read"])
    gateway = gateway_over(tmp_path, folder, catalog={"toolsets": ["ops"]})
    changed = anyio.Event()
    before: list[str] = []
    after: list[str] = []
    refused: Any = None
    called: Any = None

    async def heard(message: Any) -> None:
        if "tools/list_changed" in str(getattr(message, "method", "")):
            changed.set()

    adapter = Adapter(gateway, "stdio")
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        async with Client(adapter.server, mode="legacy", message_handler=heard) as client:
            before = [tool.name for tool in (await client.list_tools()).tools]
            document(folder, "Toolset", "ops", tools=["Grep", "probe"])
            with anyio.fail_after(BOUND_S):
                await changed.wait()
            after = [tool.name for tool in (await client.list_tools()).tools]
            refused = await client.call_tool("Read", {"file_path": "@a"})
            called = await client.call_tool("probe__say", {})
        group.cancel_scope.cancel()

    assert (before, after) == (["Read"], ["Grep", "probe__say"])
    assert "[E_TOOL_NOT_IN_CATALOG]" in refused.content[0].text
    assert called.content[0].text == "1"


async def test_a_new_and_a_changed_profile_count_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Profile", "small", tools={"allow": ["Read", "Grep"]})
    gateway = gateway_over(tmp_path, folder)

    async with gateway.running():
        before = seen_by(gateway, SMALL)
        document(folder, "Profile", "small", tools={"allow": ["Glob"]})
        document(folder, "Profile", "other", tools={"allow": ["Bash"]})
        await eventually(lambda: seen_by(gateway, SMALL) == ["Glob"])
        await eventually(lambda: "other" in gateway.settings.profiles)

        assert sorted(before) == ["Grep", "Read"]
        assert seen_by(gateway, Rights(profiles=("other",))) == ["Bash"]
        assert seen_by(gateway, Rights(profiles=("small", "other"))) == []


async def test_the_profile_of_the_whole_process_counts_at_once(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Profile", "small", tools={"allow": ["Read"]})
    gateway = gateway_over(tmp_path, folder, profile="small")

    async with gateway.running():
        before = names(gateway)
        document(folder, "Profile", "small", tools={"allow": ["Read", "Glob"]})
        await eventually(lambda: len(names(gateway)) == 2)

    assert (before, sorted(names(gateway))) == (["Read"], ["Glob", "Read"])


@pytest.mark.parametrize("spec", [None, {"tools": {"alow": []}}, {"tools": {"allow": ["NoSuchTool"]}}])
async def test_a_profile_that_goes_or_breaks_gives_nobody_more(tmp_path: Path, spec: Any) -> None:
    folder = tmp_path / "tools"
    document(folder, "Profile", "small", tools={"allow": ["Read"]})
    gateway = gateway_over(tmp_path, folder)

    async with gateway.running():
        before = seen_by(gateway, SMALL)
        if spec is None:
            (folder / "profile-small.yaml").unlink()
        else:
            document(folder, "Profile", "small", **spec)
        await eventually(lambda: any("stays in use" in detail for detail in details(gateway)))

        assert (before, seen_by(gateway, SMALL)) == (["Read"], ["Read"])

        document(folder, "Profile", "small", tools={"allow": ["Glob"]})
        await eventually(lambda: seen_by(gateway, SMALL) == ["Glob"])
        assert details(gateway) == []


async def test_a_profile_that_breaks_costs_itself_only(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Toolset", "ops", tools=["Read"])
    document(folder, "Profile", "small", tools={"allow": ["Read"]})
    document(folder, "Profile", "other", tools={"allow": ["Read"]})
    gateway = gateway_over(tmp_path, folder, catalog={"toolsets": ["ops", "core"]})

    async with gateway.running():
        document(folder, "Profile", "small", tools={"allow": ["NoSuchTool"]})
        document(folder, "Profile", "other", tools={"allow": ["Glob"]})
        document(folder, "Profile", "third", tools={"allow": ["Grep"]})
        document(folder, "Toolset", "ops", tools=["Read", "WebFetch"])
        await eventually(lambda: seen_by(gateway, Rights(profiles=("other",))) == ["Glob"])
        await eventually(lambda: "third" in gateway.settings.profiles)

        assert seen_by(gateway, SMALL) == ["Read"]
        assert seen_by(gateway, Rights(profiles=("third",))) == ["Grep"]
        assert "WebFetch" in names(gateway)
        (detail,) = details(gateway)
        assert "profiles.small.tools.allow: 'NoSuchTool' names no tool" in detail


async def test_a_toolset_that_is_used_and_goes_stays_and_the_rest_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Toolset", "ops", tools=["Read", "Grep"])
    document(folder, "Profile", "small", tools={"allow": ["Read"]})
    gateway = gateway_over(tmp_path, folder, catalog={"toolsets": ["ops"]})

    async with gateway.running():
        (folder / "toolset-ops.yaml").unlink()
        document(folder, "Profile", "small", tools={"allow": ["Grep"]})
        await eventually(lambda: seen_by(gateway, SMALL) == ["Grep"])

        assert sorted(names(gateway)) == ["Grep", "Read"]
        (detail,) = details(gateway)
        assert detail == (
            f"{folder}: catalog.toolsets: 'ops' is no toolset; there are core, tasks, state, network, agent, mcp, "
            "notebook, teams, code, goa, base, manifests, upstream, meta, apps: "
            "what was declared before stays in use; fix it"
        )


async def test_a_reload_that_changes_neither_tells_nobody(tmp_path: Path) -> None:
    folder = tmp_path / "tools"
    document(folder, "Toolset", "ops", tools=["Read"])
    document(folder, "Profile", "small", tools={"allow": ["Read"]})
    gateway = gateway_over(tmp_path, folder, catalog={"toolsets": ["ops"]})
    told: list[int] = []
    gateway.lists.on_outdated(lambda: told.append(gateway.catalog.generation))

    async with gateway.running():
        with (folder / "toolset-ops.yaml").open("a") as file:
            file.write("# a remark\n")
        document(folder, "Toolset", "unused", tools=["Grep"])
        await eventually(lambda: "unused" in gateway.declared.toolsets)
        with (folder / "toolset-ops.yaml").open("a") as file:
            file.write("# another\n")
        python(folder, "probe", ONE, "say")
        await eventually(lambda: gateway.registry.get("probe__say") is not None)

    assert len(told) == 1
