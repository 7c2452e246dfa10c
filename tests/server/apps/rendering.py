"""A host that renders our MCP Apps in Chromium: the published `AppBridge`, and a sandbox as SEP-1865 wants it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from playwright.async_api import Frame, Page, Route, async_playwright

from goat_mcp.server.apps.apps import APPS_OF_TOOLS
from tests.e2e.node_side import MODULES, find_node

HOST = Path(__file__).with_name("host")
HOST_ORIGIN, SANDBOX_ORIGIN = "http://host.test", "http://sandbox.test"
BUILD_TIMEOUT_S = 60
POLICY = (
    "default-src 'none'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; connect-src 'self'; "
    "img-src 'self' data:; font-src 'self'; media-src 'self' data:; frame-src 'none'; object-src 'none'; "
    "base-uri 'self'"
)
"""What a host makes of a document that declares no domain, by the words of SEP-1865."""


@dataclass
class RenderedApp:
    """One document in its sandbox, what it asked of its host, and what the browser complained about."""

    page: Page
    frame: Frame
    called_at_s: list[float] = field(default_factory=list[float])
    opened: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])

    async def text(self) -> str:
        return await self.frame.locator("main").inner_text()

    async def shows(self, text: str) -> None:
        """Wait until it does."""
        await self.frame.locator("main").get_by_text(text).first.wait_for(timeout=15_000)


def chromium() -> str:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("needs Chromium (no `chromium` on PATH): apt-get install chromium")
    return program


@cache
def host_script() -> str:
    """The host's script with all it imports."""
    find_node()
    program = str(MODULES / "esbuild" / "bin" / "esbuild")
    command = [program, str(HOST / "host.mjs"), "--bundle"]
    environment = {**os.environ, "NODE_PATH": str(MODULES)}
    run = subprocess.run(
        command, capture_output=True, encoding="utf-8", timeout=BUILD_TIMEOUT_S, env=environment, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


@asynccontextmanager
async def rendered(
    client: Client,
    tool: str,
    *,
    theme: str = "light",
    sandbox: str = "same-origin",
    capabilities: dict[str, Any] | None = None,
    context: dict[str, Any] | None = None,
    result: dict[str, Any] | None = None,
    uri: str = "",
) -> AsyncGenerator[RenderedApp]:
    """Call the tool as a host does and show its document. `result`: what the host says that the call returned.

    `uri`: that of a document which is not ours.
    """
    (content,) = (await client.read_resource(uri or APPS_OF_TOOLS[tool])).contents
    answer = result if result is not None else _wire(await client.call_tool(tool, {}))
    script = host_script()
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=chromium(), args=["--no-sandbox"])
        page = await browser.new_page()
        app = RenderedApp(page, page.main_frame)

        async def call_tool(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
            app.called_at_s.append(time.monotonic())
            return _wire(await client.call_tool(name, arguments))

        def open_link(url: str) -> None:
            app.opened.append(url)

        async def serve(route: Route) -> None:
            if route.request.url.startswith(SANDBOX_ORIGIN):
                body, headers = (HOST / "sandbox.html").read_text(), {"content-security-policy": POLICY}
            else:
                body, headers = f"<!doctype html><title>host</title><body><script>{script}</script>", {}
            await route.fulfill(body=body, content_type="text/html", headers=headers)

        def complain(text: str) -> None:
            app.complaints.append(text)

        page.on("console", lambda message: complain(message.text) if message.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complain(str(error)))
        await page.route("**/*", serve)
        for name, function in (("callTool", call_tool), ("openLink", open_link)):
            await page.expose_function(name, function)  # pyright: ignore[reportUnknownMemberType]  # its own types
        await page.goto(f"{HOST_ORIGIN}/")
        await page.evaluate(
            "job => window.openApp(job)",
            {
                "html": getattr(content, "text", ""),
                "context": {"theme": theme, "toolInfo": {"tool": {"name": tool, "inputSchema": {"type": "object"}}}}
                | (context or {}),
                "capabilities": {"openLinks": {}, "serverTools": {}} if capabilities is None else capabilities,
                "result": answer,
                "sandbox": f"{SANDBOX_ORIGIN}/sandbox.html?kind={sandbox}",
            },
        )
        app.frame = page.frames[-1]
        yield app
        await browser.close()


def _wire(answer: Any) -> dict[str, Any]:
    return answer.model_dump(by_alias=True, exclude_none=True, mode="json")
