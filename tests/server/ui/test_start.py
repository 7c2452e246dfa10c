"""The view Start."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.server.ui.hosts import HostChange, HostHere, Step
from goat_mcp.server.ui.start import NextStep, next_steps
from tests.server.ui.open_page import open_page
from tests.server.ui.test_now import words

pytestmark = pytest.mark.anyio

DIFF = '--- mcp.json\n+++ mcp.json\n@@ -1 +1 @@\n-{}\n+{"mcpServers": {"goat": {"args": ["--flag=<x>"]}}}'
EDITOR = HostHere("editor", "Editor", "/home/ada/.editor/mcp.json", connected=False, other_servers=2)
CONNECTED = HostHere("editor", "Editor", "/home/ada/.editor/mcp.json", connected=True, workspace="/home/ada/project")


@dataclass
class SomeHosts:
    found: Sequence[HostHere] = ()
    done: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])

    def here(self) -> Sequence[HostHere]:
        return self.found

    def plan(self, step: Step, host: str, workspace: str = "") -> HostChange:
        if host != "editor":
            raise ToolError(ErrorCode.INPUT, f"{host!r} is no host we know", "Known: editor.")
        return HostChange(
            "Editor", "mcp.json", DIFF, f"{step} {workspace}", f"Workspace: {workspace}", "Restart Editor."
        )

    def carry_out(self, step: Step, host: str, workspace: str, digest: str) -> HostChange:
        change = self.plan(step, host, workspace)
        if digest != change.digest:
            raise ToolError(ErrorCode.STALE, "mcp.json was changed after you looked at it", "Look again.")
        self.done.append((step, host, workspace))
        return change


@pytest.fixture(autouse=True)
def own_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("APPDATA", str(tmp_path / "config"))
    return tmp_path / "config" / "goat-mcp"


def titles(steps: Sequence[NextStep]) -> list[str]:
    return [step.title for step in steps]


async def test_hosts_are_shown_connected_or_not_with_what_each_can_do(tmp_path: Path) -> None:
    broken = HostHere("other", "Other", "/home/ada/other.toml", connected=True, problem="it starts /gone/goat-mcp")
    async with open_page(tmp_path, hosts=SomeHosts([CONNECTED, EDITOR, broken])) as page:
        html = (await page.client.get("/ui/start")).text

    page_text = words(html)
    for part in ("connected", "not connected", "does not work", "it starts /gone/goat-mcp", "/home/ada/project"):
        assert part in page_text
    assert "2 besides goat-mcp" in page_text and "Disconnect" in page_text
    assert "style=" not in html


async def test_a_page_without_hosts_says_what_to_do(tmp_path: Path) -> None:
    async with open_page(tmp_path, hosts=SomeHosts()) as page:
        page_text = words((await page.client.get("/ui/start")).text)

    assert "No host was found on this machine." in page_text and "goat-mcp install --print json" in page_text
    assert "No goat-mcp runs now." in page_text and "goat-mcp add NAME -- COMMAND" in page_text


async def test_a_page_that_may_not_change_hosts_says_so(tmp_path: Path) -> None:
    async with open_page(tmp_path) as page:
        page_text = words((await page.client.get("/ui/start")).text)
        refused = await page.post("/ui/start/connect", host="editor", workspace="", digest="connect ")

    assert "This page cannot change which hosts start goat-mcp." in page_text
    assert refused.status_code == 400 and "this page cannot change which hosts start goat-mcp" in refused.text


async def test_the_change_is_shown_and_only_that_change_is_made(tmp_path: Path) -> None:
    hosts = SomeHosts([EDITOR])
    async with open_page(tmp_path, hosts=hosts) as page:
        shown = (await page.client.get("/ui/start/connect?host=editor&workspace=/work")).text
        fields = dict(re.findall(r'name="(host|workspace|digest)" value="([^"]*)"', shown))
        before = list(hosts.done)
        answer = await page.post("/ui/start/connect", **fields)
        note = (await page.client.get("/ui/start")).text
        stale = await page.post("/ui/start/disconnect", **fields)

    assert '<span class="removed">-{}</span>' in shown and "&lt;x&gt;" in shown and "Restart Editor." in shown
    assert before == [] and hosts.done == [("connect", "editor", "/work")]
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/start")
    assert "<p>Editor starts goat-mcp now.</p><p>Workspace: /work</p><p>Restart Editor.</p>" in note
    assert stale.status_code == 400 and "was changed after you looked at it" in stale.text


async def test_an_unknown_host_and_an_unknown_step_are_refused(tmp_path: Path) -> None:
    hosts = SomeHosts([EDITOR])
    async with open_page(tmp_path, hosts=hosts) as page:
        unknown = await page.client.get("/ui/start/connect?host=<b>")
        step = await page.client.get("/ui/start/remove?host=editor")

    assert unknown.status_code == 400 and "is no host we know" in unknown.text and "<b>" not in unknown.text
    assert step.status_code == 404 and hosts.done == []


@pytest.fixture
def own_server(own_settings: Path) -> None:
    own_settings.mkdir(parents=True)
    (own_settings / "upstreams.json").write_text(json.dumps({"mcpServers": {"notes": {"command": "notes"}}}))


@pytest.mark.usefixtures("own_server")
async def test_servers_in_the_own_file_lead_to_the_catalog(tmp_path: Path) -> None:
    async with open_page(tmp_path, hosts=SomeHosts([CONNECTED])) as page:
        html = (await page.client.get("/ui/start")).text

    assert "1 server is behind goat-mcp." in words(html) and 'href="/ui/catalog"' in html


def test_the_next_step_is_the_first_that_is_missing() -> None:
    broken = HostHere("editor", "Editor", "f", connected=True, problem="it starts /gone")

    assert titles(next_steps([], 0, is_running=False))[:2] == ["Connect a host", "Add a server"]
    assert titles(next_steps([broken], 0, is_running=False))[0] == "Connect a host"
    assert titles(next_steps([EDITOR], 0, is_running=False))[1] == "Import the 2 MCP servers of your hosts"
    assert titles(next_steps([CONNECTED], 0, is_running=False))[:2] == ["Start Editor", "Add a server"]
    assert titles(next_steps([CONNECTED], 3, is_running=True))[0] == "See your tools"
