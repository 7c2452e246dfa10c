"""What the examples of the built-in tools give back: each is run, over a small project, with people, models, pages and
servers that answer as told. What differs from run to run and from machine to machine has one name here."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio

from goat_mcp.calls.permissions.mode import Approval, Mode
from goat_mcp.catalog.builtin_contracts import builtin_contracts
from goat_mcp.catalog.filter import TEAMS_VARIABLE
from goat_mcp.catalog.goa_tools import GOA_TOOLS
from goat_mcp.core.context import ToolContext
from goat_mcp.core.elicitation import Answer, Ask, Form, Reply, nobody_to_ask
from goat_mcp.core.result import ToolResult
from goat_mcp.gateway.gateway import Gateway
from goat_mcp.settings.settings import Settings
from goat_mcp.state.directory import StateDirectory
from tests.agents.scripted import prompt_of, says
from tests.web.http.local_server import LocalServer, page, serving
from tests.web.search.fake_providers import FakeSearxng, Page

PROJECT, STATE = "/home/me/project", "/home/me/.local/state/goat-mcp"
TASK = "rdom6cxnuu2zfwckdnxlaa7teodtiine"
BOUND_S = 60.0
TIMEOUT_S = 300.0
ROOT = Path(__file__).resolve().parents[1]
SERVERS = ("docs", "shop")
SERVER = Path(__file__).with_name("example_servers.py")
FILES = {
    "a.py": "x = 1\nfoo = x\nprint(foo)\n",
    "main.py": '"""The program."""\n\n\ndef main() -> None:\n    print("hello")\n',
    "src/main.py": "".join(f"line_{number} = {number}\n" for number in range(1, 251)),
    "src/old.py": "# Deprecated: use main.py\n",
    "src/app.ts": "// TODO: load the settings\nexport const port = 8080\n",
    "src/view.tsx": "export const view = () => null\n",
    "src/main.go": 'package main\n\nfunc helloHandler() {\n\tfmt.Println("hello")\n}\n',
    "Makefile": "test:\n\t@echo 12 passed\n",
    "a.ipynb": json.dumps(
        {
            "cells": [
                {
                    "cell_type": "code",
                    "execution_count": 1,
                    "id": "3f2a9c01",
                    "metadata": {},
                    "outputs": [],
                    "source": ["x = 1"],
                }
            ],
            "metadata": {},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    ),
}
FIRST_CHANGE_S = 1_700_000_000
SAID = {
    "Where does this code base retry": "src/http.py:41 retries three times, after 1, 2 and 4 s.",
    "PEP": "Sam Gross.",
}
RESULTS = (
    Page("OpenSSL advisory", "https://openssl-library.org/news/vulnerabilities/", "Fixed in the newest releases."),
    Page("Coroutines and tasks", "https://docs.python.org/3/library/asyncio-task.html", "class asyncio.TaskGroup"),
)
_VARYING = (
    (re.compile(r"\b[a-z2-7]{32}\b"), TASK),
    (re.compile(rf"{STATE}/(spill|plans)/(?:[^\s/]+/)+"), rf"{STATE}/\1/.../"),
    (re.compile(r"\b(bash|agent)-[0-9a-f]{8,}"), r"\1-0123456789abcdef"),
    (re.compile(r"\b\d{8}-\d{6}-([a-z-]+)-[0-9a-f]{4}\b"), r"20260102-030405-\1-0a1b"),
    (re.compile(r"\b(page|cell) (?!3f2a9c01)(?:[0-9a-f]{12}|[0-9a-f]{8})\b"), r"\1 0123456789ab"),
    (re.compile(r"\b\d+\.\d s\b"), "1.5 s"),
)


@dataclass
class World:
    """A running gateway, and what its examples need around them."""

    gateway: Gateway
    project: Path
    state: Path
    hold: anyio.Event = field(default_factory=anyio.Event)

    async def call(self, name: str, /, *, ask: Ask | None = None, **arguments: Any) -> ToolResult:
        given = json.loads(json.dumps(arguments).replace(PROJECT, str(self.project)))
        ctx = ToolContext(call_id="example", session_key="example", ask=ask or _first_choice)
        with anyio.fail_after(BOUND_S):
            return await self.gateway.call(name, given, ctx)

    def named_alike(self, text: str) -> str:
        text = text.replace(str(self.project), PROJECT).replace(str(self.state), STATE)
        for pattern, name in _VARYING:
            text = pattern.sub(name, text)
        return text


async def _first_choice(form: Form) -> Answer:
    """A person who takes the first of what is offered."""
    asked = [question for question in form.questions if question.options]
    firsts = {one.name: one.options[0].value for one in asked}
    return Answer(
        Reply.ACCEPTED, {one.name: (firsts[one.name],) if one.multiple else firsts[one.name] for one in asked}
    )


@asynccontextmanager
async def _world(folder: Path) -> AsyncGenerator[World]:
    project, state = folder / "project", folder / "state"
    for number, (name, text) in enumerate(FILES.items()):
        file = project / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (FIRST_CHANGE_S + number, FIRST_CHANGE_S + number))
    servers = folder / "servers.json"
    entries = {name: {"command": sys.executable, "args": [str(SERVER), name]} for name in SERVERS}
    servers.write_text(json.dumps({"mcpServers": entries}))
    provider = FakeSearxng()
    provider.pages = RESULTS
    web = {"/3/library/asyncio.html": page("<h1>asyncio</h1><p>A library to write <b>concurrent</b> code.</p>")}
    web["/pep-0703/"] = page("<h1>PEP 703</h1><p>Author: Sam Gross</p>")
    async with serving(web) as pages:
        with provider.running():
            settings = {
                "workspace": [str(project)],
                "upstreams": [str(servers)],
                "catalog": {"toolsets": ["goa", "code"]},
                "sandbox": "off",
                "web": {
                    "allow_hosts": [f"127.0.0.1:{pages.port}"],
                    "search": {"provider": "searxng", "base_url": provider.url},
                },
            }
            gateway = Gateway(Settings.model_validate(settings), approval=Approval.HOST, state=StateDirectory(state))
            world = World(gateway, project, state)
            _answer_requests_here(gateway, pages)
            gateway.models.endpoint = lambda overrides=None: _Model(world)  # type: ignore[method-assign]
            async with gateway.running():
                await gateway.upstreams.first_list(BOUND_S)
                yield world


class _Model:
    """Says what `SAID` has for the request; other agents wait until the world lets them go."""

    takes_tools = True

    def __init__(self, world: World) -> None:
        self._world = world

    async def reply(self, request: Any) -> Any:
        prompt = prompt_of(request)
        for beginning, text in SAID.items():
            if beginning in prompt:
                return says(text)
        await self._world.hold.wait()
        return says("Done.")


def _answer_requests_here(gateway: Gateway, pages: LocalServer) -> None:
    """Every page is on this machine, whatever its address says."""
    client = gateway.services.http
    stream = client.stream

    @asynccontextmanager
    async def local(method: str, url: str, **options: Any) -> AsyncGenerator[Any]:
        if url.startswith("http://127.0.0.1:"):
            asked = url
        else:
            asked = pages.url(urlsplit(url).path)
            options["allow_hosts"] = (f"127.0.0.1:{pages.port}",)
        async with stream(method, asked, **options) as response:
            yield response

    client.stream = local  # type: ignore[method-assign]


async def _outputs() -> dict[str, list[str]]:
    examples = {tool.name: tool.examples for tool in (*builtin_contracts(), *GOA_TOOLS)}
    with tempfile.TemporaryDirectory() as folder:
        async with _world(_real(folder)) as world:
            found: dict[str, list[str]] = {}
            for name, examples_of_it in examples.items():
                for index, example in enumerate(examples_of_it):
                    given = await _prepared(world, name, index, dict(example.input))
                    result = await world.call(name, **given)
                    found.setdefault(name, []).append(world.named_alike(result.text))
            return found


async def _prepared(world: World, name: str, index: int, given: dict[str, Any]) -> dict[str, Any]:
    """What has to be there before an example runs; and its input with what is of this run."""
    match name:
        case "Edit":
            await world.call("Read", file_path="@a.py")
        case "edit":
            await world.call("read", path=given["path"])
        case "ListMcpResources" if not given:
            for server in SERVERS:
                while "is down" in (await world.call(name, server=server)).text:  # noqa: ASYNC110  # it has no event here
                    await anyio.sleep(0.1)
        case "NotebookEdit":
            await world.call("Read", file_path="@a.ipynb")
        case "TaskOutput" | "TaskStop":
            seconds = 1 if given.get("block", True) and name == "TaskOutput" else 60
            given["task_id"] = await _task(world, f"echo ready; sleep {seconds}")
        case "ExitPlanMode":
            world.gateway.modes.choose("example", Mode.PLAN)
            if not given:
                await world.call(name, ask=nobody_to_ask, plan="# Rename the module")
        case "Agent" if "isolation" in given:
            for words in ("init -q", "add .", "-c user.name=Ada -c user.email=ada@example.org commit -qm first"):
                await world.call("Bash", command=f"git {words}")
        case "SendMessage" | "TeamCreate" | "TeamDelete":
            await _team_before(world, name, index)
        case _:
            pass
    return given


async def _task(world: World, command: str) -> str:
    """A task in the background that has printed something."""
    started = await world.call("Bash", command=command, run_in_background=True)
    output = Path(re.findall(r"output goes to (\S+);", started.text)[0])
    with anyio.fail_after(BOUND_S):
        while not _size_of(output):  # noqa: ASYNC110  # a file has no event
            await anyio.sleep(0.01)
    return started.text.split()[2]


def _real(folder: str) -> Path:
    return Path(folder).resolve()


def _size_of(file: Path) -> int:
    return file.stat().st_size


async def _team_before(world: World, name: str, index: int) -> None:
    """No team for TeamCreate, the team `release` for the others. Its members wait, but for TeamDelete."""
    if name != "SendMessage" or index == 0:
        world.hold.set()
        await world.call("TeamDelete", force=True)
        world.hold = anyio.Event()
    if name == "TeamDelete" or (name == "SendMessage" and index == 0):
        members = [{"name": "tester", "prompt": "Run the tests."}]
        created = await world.call("TeamCreate", team_name="release", members=members)
        if name == "TeamDelete":
            world.hold.set()
            await world.call("SendMessage", to="tester", type="shutdown_request")
            await world.call("TaskOutput", task_id=created.text.split()[-1])


def example_outputs() -> dict[str, list[str]]:
    """By tool, what each of its examples gives back. In a process of its own, in which nobody has settings."""
    with tempfile.TemporaryDirectory() as home:
        nobodys = {"HOME": home, "XDG_CONFIG_HOME": home, "XDG_STATE_HOME": home, TEAMS_VARIABLE: "1"}
        of_others = {key: value for key, value in os.environ.items() if not key.startswith("GOAT_MCP_")}
        done = subprocess.run(
            [sys.executable, "-m", "scripts.example_outputs"],
            cwd=ROOT,
            env={**of_others, **nobodys},
            stdout=subprocess.PIPE,
            check=True,
            timeout=TIMEOUT_S,
        )
    return json.loads(done.stdout)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(anyio.run(_outputs)))
