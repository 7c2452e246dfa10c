"""How often a person is asked in an ordinary session over HTTP, and what: docs/approvals.md has the table."""

from __future__ import annotations

import http.server
import shutil
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.context import ClientRequestContext
from mcp_types import ElicitRequestParams, ElicitResult

from tests.e2e.conftest import fill, ours, upstream_file
from tests.e2e.goat import REPOSITORY, Launch, connected, http_goat, listed_with

pytestmark = [pytest.mark.e2e, pytest.mark.anyio]

_WIDEST_FIRST = ("allow_workspace", "allow_server_reads", "allow_session", "allow_once")


class _Page(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>Goats</h1><p>They eat at noon.</p>")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def page() -> Generator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def project(folder: Path) -> Path:
    workspace = fill(folder / "workspace")
    (workspace / "test_greeting.py").write_text("def test_it():\n    assert 1 + 1 == 2\n")
    subprocess.run(["git", "init", "-q", str(workspace)], check=True)
    return workspace


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="without a sandbox commands are asked about one by one")
async def test_a_person_is_asked_three_times_and_the_page_says_so(tmp_path: Path) -> None:
    workspace = project(tmp_path)
    upstreams = upstream_file(tmp_path / "servers.json", plain=ours("plain"))
    questions: list[tuple[str, str]] = []
    rows: list[tuple[str, str]] = []

    async def answer(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
        schema: Any = params.model_dump(by_alias=True, mode="json")["requestedSchema"]
        field: dict[str, Any] | None = schema["properties"].get("decision")
        if field is None:
            return ElicitResult(action="accept", content={"q1": "noon"})
        choices: list[dict[str, str]] = field["oneOf"]
        offered = {one["const"]: one["title"] for one in choices}
        choice = next(value for value in _WIDEST_FIRST if value in offered)
        questions.append((params.message, offered[choice]))
        return ElicitResult(action="accept", content={"decision": choice})

    with page() as web:
        python = f"{sys.executable} -m pytest -q -p no:cacheprovider"
        options = (
            *("--upstreams", str(upstreams)),
            *("--set", f'web.allow_hosts=["{web}"]'),
            *("--set", f'sandbox_read=["{sys.prefix}", "{sys.base_prefix}"]'),
        )
        note = str(workspace / "notes.md")
        calls: list[tuple[str, str, dict[str, Any]]] = [
            ("Read a file", "Read", {"file_path": note}),
            ("Edit it", "Edit", {"file_path": note, "old_string": "noon", "new_string": "one"}),
            ("Run the tests", "Bash", {"command": f"{python} test_greeting.py"}),
            ("Run them again", "Bash", {"command": f"{python} --maxfail=1"}),
            ("Read from another server", "mcp__plain__pid", {}),
            ("Read from it again", "mcp__plain__echo", {"text": "goat"}),
            ("Read from it a third time", "mcp__plain__echo", {"text": "noon"}),
            ("Look at the changes", "Bash", {"command": "git status --short"}),
            ("Write a new file", "Write", {"file_path": str(workspace / "new.md"), "content": "# New\n"}),
            ("Fetch a page", "WebFetch", {"url": f"http://{web}/goats", "prompt": "When do they eat?"}),
            ("Ask the user", "AskUserQuestion", {"questions": [_QUESTION]}),
        ]
        with http_goat(Launch(tmp_path, workspace, options)) as goat:
            async with connected(goat, "2026-07-28", elicitation_callback=answer) as client:
                await listed_with(client, "mcp__plain__echo")
                for what, tool, arguments in calls:
                    asked_before = len(questions)
                    result = await client.call_tool(tool, arguments)
                    assert not result.is_error, (what, result)
                    rows.append((what, questions[-1][1] if len(questions) > asked_before else "-"))

    assert len(questions) == 3, [question[0].splitlines()[0] for question in questions]
    for message, _ in questions:
        assert message.startswith("Allow ") and "Risk: " in message and "Client: " in message
    assert table(rows, workspace, web) in (REPOSITORY / "docs/approvals.md").read_text()


_QUESTION = {
    "question": "When do the goats eat?",
    "header": "Time",
    "options": [{"label": "noon", "description": "At 12"}, {"label": "one", "description": "At 1"}],
    "multiSelect": False,
}


def table(rows: list[tuple[str, str]], workspace: Path, web: str) -> str:
    """As the page has it: with places that are the same everywhere."""
    lines = [f"| {number} | {what} | {choice} |" for number, (what, choice) in enumerate(rows, 1)]
    text = "\n".join(("| call | what it does | chosen if a person is asked |", "| --- | --- | --- |", *lines))
    return (
        text.replace(str(workspace), "/home/you/project")
        .replace(web, "example.org")
        .replace("127.0.0.1", "example.org")
    )
