"""Clients that others wrote get in with nothing but the address: they find the provider, log in, and call."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from pydantic import AnyUrl

from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.node_side import FOLDER, Node
from tests.openid_provider import OpenIdProvider, openid_provider

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]
BACK = "http://127.0.0.1:9/callback"


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    with openid_provider("/tenant") as provider:
        yield provider


@contextmanager
def goat_with(provider: OpenIdProvider, launch: Launch) -> Generator[HttpGoat]:
    variables = {
        "GOAT_MCP_IDENTITY__ISSUER": provider.issuer,
        "GOAT_MCP_IDENTITY__SCOPES": "mcp",
        "GOAT_MCP_IDENTITY__TOOLS": "TodoWrite",
        "GOAT_MCP_MODE": "bypassPermissions",
    }
    with http_goat(replace(launch, variables=variables)) as goat:
        yield goat


class Storage(TokenStorage):
    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
async def test_the_python_sdk_finds_the_provider_and_gets_in(
    provider: OpenIdProvider, launch: Launch, mode: str
) -> None:
    came_back: list[AuthorizationCodeResult] = []

    async def visit(url: str) -> None:
        async with httpx2.AsyncClient() as browser:
            answer = await browser.get(url, follow_redirects=False)
        query = parse_qs(urlsplit(answer.headers["location"]).query)
        came_back.append(AuthorizationCodeResult(code=query["code"][0], state=query["state"][0], iss=query["iss"][0]))

    async def result() -> AuthorizationCodeResult:
        return came_back[0]

    provider.claims["sub"] = "ada"
    with goat_with(provider, launch) as goat:
        metadata = OAuthClientMetadata(client_name="python", redirect_uris=[AnyUrl(BACK)])
        login = OAuthClientProvider(goat.url, metadata, Storage(), visit, result)
        async with (
            httpx2.AsyncClient(auth=login, timeout=60) as http,
            Client(streamable_http_client(goat.url, http_client=http), mode=mode) as client,
        ):
            answer = await client.call_tool("TodoWrite", {"todos": []})

    assert not answer.is_error, answer
    assert provider.resources == [goat.url]
    assert {"/.well-known/oauth-authorization-server/tenant", "/tenant/.well-known/openid-configuration"} & set(
        provider.asked
    )
    assert isinstance(answer, types.CallToolResult)
    audit = "".join(file.read_text() for file in (launch.folder / "state").rglob("audit*.jsonl"))
    assert '"user:ada"' in audit


def test_the_typescript_sdk_finds_the_provider_and_gets_in(
    provider: OpenIdProvider, launch: Launch, seek_node: Callable[[], Node]
) -> None:
    provider.claims["sub"] = "bob"
    with goat_with(provider, launch) as goat:
        job: dict[str, Any] = {"url": goat.url, "call": "TodoWrite", "arguments": {"todos": []}}
        said = json.loads(seek_node().run_script(FOLDER / "client_oauth.mjs", json.dumps(job)))

    assert not said["result"].get("isError"), said
    assert (said["asked"]["resource"], said["asked"]["scope"]) == (goat.url, "mcp")
    audit = "".join(file.read_text() for file in (launch.folder / "state").rglob("audit*.jsonl"))
    assert '"user:bob"' in audit
