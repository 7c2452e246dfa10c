"""A login for each workspace (`oauth.account: workspace`), beside those that all workspaces use. AUT-1, WSP-1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.core.calling_client import ClientRequest
from goat_mcp.core.errors import ErrorCode
from goat_mcp.upstreams.config.entry import HttpEndpoint
from goat_mcp.upstreams.oauth.login_contract import slot_of
from goat_mcp.upstreams.oauth.login_store import LoginStore
from goat_mcp.upstreams.oauth.upstream_login import UpstreamLogin
from goat_mcp.upstreams.status import ReasonCode
from tests.upstreams.fleet import fleet, load
from tests.upstreams.oauth.guarded_server import Agreeable, Guarded, guarded_server, log_in, login_of, logins_of
from tests.upstreams.test_late_workspace import Roots

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

PER_WORKSPACE = {"account": "workspace"}


@dataclass
class Editor:
    """A client that has a project open."""

    root: Path
    protocol_version: str = "2025-11-25"
    is_stateless: bool = False
    capabilities: Mapping[str, Any] = field(default_factory=lambda: {"roots": {}})
    log_level: str | None = None
    given: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notices: None = None
    known_roots: Sequence[Path] = ()

    async def roots(self) -> Sequence[Path]:
        return (self.root,)

    async def ask(self, requests: Mapping[str, ClientRequest]) -> Mapping[str, dict[str, Any]]:
        raise AssertionError("nothing is asked here")

    async def notify(self, method: str, params: Mapping[str, Any]) -> None: ...


def projects(folder: Path) -> tuple[Path, Path]:
    found = (folder / "one").resolve(), (folder / "two").resolve()
    for project in found:
        project.mkdir()
    return found


def login_in(folder: Path, server: Guarded, project: Path) -> UpstreamLogin:
    (config,) = load(folder, {"web": server.entry(oauth=PER_WORKSPACE)}).configs
    assert isinstance(config.target, HttpEndpoint)
    return logins_of(folder).load(config, config.target, workspace=str(project))


async def token_of(folder: Path, server: Guarded, project: Path) -> str:
    """Log in for this project."""
    with anyio.fail_after(60):
        return (await login_in(folder, server, project).log_in(Agreeable())).secrets.access_token


def used(server: Guarded) -> str:
    """The token of the last request."""
    return server.events("request")[-1]["token"]


async def test_each_project_uses_its_own_account_and_one_without_is_told_for_which(tmp_path: Path) -> None:
    one, two = projects(tmp_path)
    with guarded_server(tmp_path) as server:
        token = await token_of(tmp_path, server, one)
        entries = {"web": server.entry(oauth=PER_WORKSPACE)}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path), roots=Roots(one)) as running:
            answer = (await running.call("mcp__web__read")).text
            used_in_one = used(server)
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path), roots=Roots(two)) as running:
            refused = await running.failing("mcp__web__read")
            other = await token_of(tmp_path, server, two)
            again = (await running.call("mcp__web__read")).text
            used_in_two = used(server)

    assert (answer, again) == ("read done", "read done")
    assert (used_in_one, used_in_two) == (token, other)
    assert refused.code is ErrorCode.AUTH
    assert f"for the workspace {two}" in refused.message
    assert "goat-mcp auth login web --workspace DIR" in refused.suggestion


async def test_clients_of_two_projects_behind_one_gateway_have_an_account_each(tmp_path: Path) -> None:
    """WSP-1: at the same time; a refusal of one says nothing of the other."""
    one, two = projects(tmp_path)
    three = tmp_path / "three"
    three.mkdir()
    with guarded_server(tmp_path) as server:
        token = await token_of(tmp_path, server, one)
        entries = {"web": server.entry(oauth=PER_WORKSPACE)}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path), roots=Roots(one)):
            pass  # its tools are known from now on
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            first = (await running.call("mcp__web__read", client=Editor(one), session_key="one")).text
            used_in_one = used(server)
            refused = await running.failing("mcp__web__read", client=Editor(two), session_key="two")
            as_well = await running.failing("mcp__web__read", client=Editor(three), session_key="three")
            meanwhile = (await running.call("mcp__web__read", client=Editor(one), session_key="one")).text
            other = await token_of(tmp_path, server, two)
            second = (await running.call("mcp__web__read", client=Editor(two), session_key="two")).text
            used_in_two = used(server)

    assert [first, meanwhile, second] == ["read done"] * 3
    assert (used_in_one, used_in_two) == (token, other)
    assert (refused.code, str(two) in refused.message) == (ErrorCode.AUTH, True)
    assert (as_well.code, str(three) in as_well.message) == (ErrorCode.AUTH, True)


async def test_without_a_workspace_there_is_no_account_to_use(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        entries = {"web": server.entry(oauth=PER_WORKSPACE)}
        async with fleet(tmp_path, entries, logins=logins_of(tmp_path)) as running:
            status = running.status("web")

    assert status.reason_code is ReasonCode.NO_WORKSPACE
    assert "oauth.account: workspace" in status.detail


async def test_a_login_of_all_workspaces_stays_what_it_was_and_is_not_one_of_a_project(tmp_path: Path) -> None:
    """Also those that were stored before there was a difference: their files have the same names."""
    one, _ = projects(tmp_path)
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        await token_of(tmp_path, server, one)
        await login_in(tmp_path, server, one).log_out()
        left = LoginStore(logins_of(tmp_path).state).all()
        shared = await login_of(tmp_path, server.url).token()
        own = await login_in(tmp_path, server, one).token()

    assert [(facts.workspace, facts.slot) for facts in left] == [("", slot_of(server.url, "owner"))]
    assert shared is not None
    assert own is None


async def test_a_stored_login_without_the_field_is_one_of_all_workspaces(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        store = LoginStore(logins_of(tmp_path).state)
        (facts,) = store.all()
        file = store.file_of(facts)
        text = file.read_text()
        assert '"workspace":"",' in text
        file.write_text(text.replace('"workspace":"",', ""))
        token = await login_of(tmp_path, server.url).token()

    assert token is not None
    assert file.name.startswith(slot_of(server.url, "owner"))
