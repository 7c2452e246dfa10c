"""What the suite runs in its client scenarios: goat-mcp with the suite's server as its only upstream, and a user of it.

`python -m tests.conformance.driver URL`; the scenario's name and what it wants come in environment variables.
"""

from __future__ import annotations

import gc

if __name__ == "__main__":
    # Importing the SDK takes a tenth longer with it, and tests start this hundreds of times.
    gc.disable()

import json
import os
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import mcp_types as types
from mcp import Client
from mcp.client.context import ClientRequestContext
from mcp.shared.auth import AuthorizationCodeResult
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from goat_mcp.calls.permissions.mode import Approval
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.server.adapter import Adapter
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.conformance.extension_logins import EXTENSION_LOGINS, extension_login
from tests.conformance.skill_user import SKILL_STEPS
from tests.conformance.targets import DIALECT, OPEN

WITHIN_S = 50.0
"""Less than the suite waits: it would end its shell and leave us running."""

CLIENT_METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The one that the suite knows."""

Step = Callable[[Client, Mapping[str, Any]], Awaitable[None]]


class Visitor:
    """The person who logs in: their browser goes where it is sent, and says yes."""

    redirect_uri = "http://127.0.0.1:1/callback"

    def __init__(self) -> None:
        self._brought: AuthorizationCodeResult | None = None

    async def visit(self, url: str) -> None:
        async with httpx.AsyncClient(trust_env=False) as browser:
            location = httpx.URL((await browser.get(url)).headers["location"])
        self._brought = AuthorizationCodeResult.model_validate(dict(location.params))

    async def came_back(self) -> AuthorizationCodeResult:
        assert self._brought is not None
        return self._brought


@asynccontextmanager
async def user(url: str, folder: Path, revision: str, oauth: Mapping[str, Any]) -> AsyncGenerator[Client]:
    """A client of a goat-mcp in front of that URL; both are gone afterwards."""
    upstreams = folder / "upstreams.json"
    entry = {"url": url, **OPEN, **({"oauth": oauth} if oauth else {})}
    upstreams.write_text(json.dumps({"mcpServers": {"suite": entry}}))
    settings = Settings.model_validate(
        {
            "workspace": [folder],
            "upstreams": [upstreams],
            "mode": "bypassPermissions",
            "catalog": {"schema_dialect": DIALECT},
        }
    )
    state = StateDirectory(folder / "state")
    gateway = Gateway(settings, approval=Approval.HOST, state=state, login_person=Visitor())
    adapter = Adapter(gateway, "stdio")
    mode = revision if revision in MODERN_PROTOCOL_VERSIONS else "legacy"
    async with gateway.running(), anyio.create_task_group() as group:
        await group.start(adapter.run)
        # A login takes longer than a client waits for its first list.
        await gateway.upstreams.first_outcome("any", WITHIN_S)
        async with Client(adapter.server, mode=mode, elicitation_callback=_accept) as client:
            yield client
        group.cancel_scope.cancel()


async def _accept(context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
    """Agree to everything, with the defaults of the form, and yes where there are none."""
    content: dict[str, Any] = {}
    if isinstance(params, types.ElicitRequestFormParams):
        for name, field in params.requested_schema.get("properties", {}).items():
            if "default" in field:
                content[name] = field["default"]
            elif field.get("type") == "boolean":
                content[name] = True
    return types.ElicitResult(action="accept", content=content)


async def _tools_of_upstream(client: Client) -> list[types.Tool]:
    """goat-mcp lists its own tools first; theirs are named in its manifests."""
    from goat_mcp.gateway.build.builtin_tools import TOOL_CLASSES

    ours = {tool.contract.name for tool in TOOL_CLASSES}
    return [tool for tool in (await client.list_tools()).tools if tool.name not in ours]


async def _just_look(client: Client, context: Mapping[str, Any]) -> None:
    await _tools_of_upstream(client)


async def _add_numbers(client: Client, context: Mapping[str, Any]) -> None:
    await _tools_of_upstream(client)
    await client.call_tool("add_numbers", {"a": 2, "b": 3})


async def _call_every_tool(client: Client, context: Mapping[str, Any]) -> None:
    for tool in await _tools_of_upstream(client):
        await client.call_tool(tool.name, dict.fromkeys(tool.input_schema.get("properties", {}), "x"))


async def _call_as_told(client: Client, context: Mapping[str, Any]) -> None:
    await _tools_of_upstream(client)
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def _use_everything(client: Client, context: Mapping[str, Any]) -> None:
    await _call_every_tool(client, context)
    for resource in (await client.list_resources()).resources:
        if not str(resource.uri).startswith("goat://"):
            await client.read_resource(str(resource.uri))
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)


async def _echo_the_schema(client: Client, context: Mapping[str, Any]) -> None:
    tools = {tool.name: tool for tool in await _tools_of_upstream(client)}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


STEPS: Mapping[str, Step] = {
    "initialize": _just_look,
    "request-metadata": _just_look,
    "json-schema-ref-no-deref": _just_look,
    "tools_call": _add_numbers,
    "http-standard-headers": _use_everything,
    "http-custom-headers": _call_as_told,
    "json-schema-2020-12-preservation": _echo_the_schema,
    **SKILL_STEPS,
}
"""What a user does in a scenario; in the others, call every tool there is."""


def _oauth(scenario: str, context: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the upstream's entry says of its login."""
    if scenario == "auth/basic-cimd":
        return {"client_metadata_url": CLIENT_METADATA_URL}
    return {name: context[name] for name in ("client_id", "client_secret", "issuer") if name in context}


async def _run(url: str, scenario: str, revision: str, context: Mapping[str, Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, anyio.fail_after(WITHIN_S):
        is_extension = scenario in EXTENSION_LOGINS
        oauth = extension_login(url, scenario, context, Path(folder)) if is_extension else _oauth(scenario, context)
        async with user(url, Path(folder), revision, oauth) as client:
            await STEPS.get(scenario, _call_every_tool)(client, context)


def main() -> int:
    environment = os.environ
    scenario = environment["MCP_CONFORMANCE_SCENARIO"]
    revision = environment["MCP_CONFORMANCE_PROTOCOL_VERSION"]
    context = json.loads(environment.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    try:
        anyio.run(_run, sys.argv[1], scenario, revision, context)
    except MCPError as refused:
        print(f"the upstream refused: {refused}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
