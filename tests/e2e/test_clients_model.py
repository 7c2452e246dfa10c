"""The client's own model, through sampling, with clients that others wrote, of both eras, over stdio and HTTP."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Generator
from typing import Any

import pytest

from tests.e2e.conftest import UNASKED, fill
from tests.e2e.goat import HttpGoat, Launch, http_goat
from tests.e2e.visits import MODEL, NOBODY, Kind, SeekNode, call, every_kind, visit

pytestmark = [pytest.mark.e2e, pytest.mark.anyio, pytest.mark.matrix]

PAGE = "<html><body><h1>Menu</h1><p>The goat eats <b>hay</b> at noon.</p></body></html>"


@pytest.fixture(scope="module")
def page_url() -> Generator[str]:
    class Menu(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = PAGE.encode() if self.path == "/menu" else b""
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Menu)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/menu"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def model_launch(tmp_path_factory: pytest.TempPathFactory, page_url: str) -> Launch:
    """goat-mcp that has no model of its own, and may fetch from this machine."""
    folder = tmp_path_factory.mktemp("model")
    host = page_url.split("/")[2]
    return Launch(folder, fill(folder / "workspace"), (*UNASKED, "--set", f'web.allow_hosts=["{host}"]'))


@pytest.fixture(scope="module")
def model_http(model_launch: Launch) -> Generator[HttpGoat]:
    with http_goat(model_launch) as goat:
        yield goat


@pytest.fixture(params=["stdio", "http"])
def target(request: pytest.FixtureRequest, model_launch: Launch) -> Launch | HttpGoat:
    return request.getfixturevalue("model_http") if request.param == "http" else model_launch


def thinks(*blocks: dict[str, Any]) -> dict[str, Any]:
    stop = "toolUse" if any(block["type"] == "tool_use" for block in blocks) else "endTurn"
    content: Any = blocks[0] if len(blocks) == 1 else list(blocks)
    return {"role": "assistant", "content": content, "model": "the-clients", "stopReason": stop}


def says(text: str) -> dict[str, Any]:
    return thinks({"type": "text", "text": text})


@every_kind
async def test_the_clients_own_model_answers_a_question_about_a_page(
    target: Launch | HttpGoat,
    model_launch: Launch,
    page_url: str,
    seek_node: SeekNode,
    kind: Kind,
) -> None:
    fetch = call("WebFetch", url=page_url, prompt="What does the goat eat?")

    seen = await visit(kind, target, [fetch], {MODEL: [says("Hay, at noon.")]}, node=seek_node)

    (answer,), (prompt,) = seen.texts, seen.prompts
    assert "Hay, at noon." in answer and page_url in answer
    assert "**hay**" not in answer
    asked = str(prompt["messages"])
    assert "What does the goat eat?" in asked and "The goat eats **hay** at noon." in asked


@every_kind
async def test_a_page_comes_as_it_is_where_the_client_has_no_model_web_004(
    target: Launch | HttpGoat,
    model_launch: Launch,
    page_url: str,
    seek_node: SeekNode,
    kind: Kind,
) -> None:
    fetch = call("WebFetch", url=page_url, prompt="What does the goat eat?")

    seen = await visit(kind, target, [fetch], NOBODY, node=seek_node)

    (text,) = seen.texts
    assert "The goat eats **hay** at noon." in text
    assert text.splitlines()[-1] == "[there is no model to answer the prompt; this is the page]"


@every_kind
async def test_an_agent_is_run_by_the_clients_own_model(
    target: Launch | HttpGoat, model_launch: Launch, seek_node: SeekNode, kind: Kind
) -> None:
    notes = model_launch.workspace / "notes.md"
    reads = {"type": "tool_use", "id": "r1", "name": "Read", "input": {"file_path": str(notes)}}
    lists = {"type": "tool_use", "id": "g1", "name": "Glob", "input": {"pattern": "*.md"}}
    turns = [thinks({"type": "text", "text": "I look."}, reads, lists), says("It eats at noon.")]
    agent = call("Agent", description="Find the hour", prompt="When does the goat eat?")

    seen = await visit(kind, target, [agent], {MODEL: turns}, node=seek_node)

    assert seen.texts[0].splitlines()[0] == "It eats at noon."
    first, second = seen.prompts
    assert {"Read", "Glob", "Bash"} <= {tool["name"] for tool in first["tools"]}
    results = {block["toolUseId"]: block["content"][0]["text"] for block in second["messages"][-1]["content"]}
    assert results == {"r1": "1\t# Notes\n2\t\n3\tThe goat eats at noon.", "g1": str(notes)}


@every_kind
async def test_a_model_whose_user_refuses_is_an_error_of_that_call_alone(
    target: Launch | HttpGoat,
    model_launch: Launch,
    page_url: str,
    seek_node: SeekNode,
    kind: Kind,
) -> None:
    steps = [
        call("Agent", description="Try", prompt="Try."),
        call("WebFetch", url=page_url, prompt="What?"),
        call("Glob", pattern="*.md"),
    ]
    refuses = {"refuse": "the user said no"}

    seen = await visit(kind, target, steps, {MODEL: [refuses, refuses]}, node=seek_node)

    agent, page, glob = seen.texts
    # A client of 2026-07-28 ends the call itself, and never tells the server.
    assert "the user said no" in agent
    assert "the user said no" in page
    if not kind.is_modern:
        assert "[E_MODEL]" in agent and "agent.base_url" in agent
        assert "The goat eats **hay** at noon." in page
    assert glob == str(model_launch.workspace / "notes.md")
