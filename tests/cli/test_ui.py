"""`goat-mcp ui`: a link to the page that works once, in a process of its own or in that of a running server."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from click.testing import CliRunner

from goat_mcp.cli.main import app
from goat_mcp.core import posix
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.processes.process_guard import MARKER_VARIABLE
from goat_mcp.state.directory import StateDirectory
from tests.free_port import free_port
from tests.quick_start import goat_command

pytestmark = pytest.mark.e2e

ENDS_WITHIN_S = 5.0
WITHIN_S = 30.0


def environment(folder: Path, variables: Mapping[str, str] | None = None) -> dict[str, str]:
    home = {"HOME": str(folder), "GOAT_MCP_STATE_DIR": str(folder / "state")}
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT") if name in os.environ}
    return {**kept, **home, **(variables or {})}


@contextmanager
def started(folder: Path, *words: str, variables: Mapping[str, str] | None = None) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        goat_command(*words),
        cwd=folder,
        env=environment(folder, variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def link_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())["url"]


def until(happened: Callable[[], bool]) -> None:
    end_s = time.monotonic() + WITHIN_S
    while not happened():
        assert time.monotonic() < end_s
        time.sleep(0.05)


@contextmanager
def browser(link: str) -> Generator[httpx.Client]:
    """One that has opened the link."""
    origin = f"http://{urlsplit(link).netloc}"
    with httpx.Client(base_url=origin, timeout=WITHIN_S) as client:
        assert client.get(link).status_code == 200
        yield client


def page_of(folder: Path) -> str:
    running = ProcessFiles(StateDirectory(folder / "state")).running()
    return next((one["page"] for one in running), "")


@contextmanager
def served(folder: Path, *words: str) -> Generator[tuple[subprocess.Popen[str], int]]:
    """`serve --http` with a status that others can read."""
    port = free_port()
    address = f"127.0.0.1:{port}"
    with started(folder, "serve", "--http", address, "--workspace", str(folder), *words) as server:
        until(lambda: bool(ProcessFiles(StateDirectory(folder / "state")).running()))
        yield server, port


@pytest.mark.posix_only("ends it with a signal")
def test_the_link_opens_the_page_once_and_ctrl_c_ends_it(tmp_path: Path) -> None:
    with started(tmp_path, "ui", "--no-open", "--json") as process:
        link = link_of(process)
        with browser(link) as client, client.stream("GET", "/ui/events") as stream:
            assert stream.status_code == 200
            assert client.get("/ui").status_code == 200
            assert httpx.get(link).status_code == 403
            assert httpx.get(f"{client.base_url}/ui").status_code == 401

            process.send_signal(signal.SIGINT)

            assert process.wait(ENDS_WITHIN_S) == 0
        assert process.stderr is not None
        assert process.stderr.read() == ""


def test_a_person_reads_the_link_and_how_it_ends(tmp_path: Path) -> None:
    with started(tmp_path, "ui", "--no-open") as process:
        assert process.stdout is not None and process.stderr is not None
        link = process.stdout.readline().strip()
        said = process.stderr.readline()

        assert "Ctrl-C" in said
        with browser(link) as client:
            assert client.get("/ui").status_code == 200


def test_the_port_is_the_one_that_is_named(tmp_path: Path) -> None:
    port = free_port()
    with started(tmp_path, "ui", "--no-open", "--json", "--port", str(port)) as process:
        assert urlsplit(link_of(process)).netloc == f"127.0.0.1:{port}"


@pytest.mark.posix_only("its browser is a script")
def test_a_browser_is_started_with_the_link_as_one_argument(tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    program = tmp_path / "browser"
    program.write_text(f"#!{sys.executable}\nimport sys\nopen({str(opened)!r}, 'w').write('|'.join(sys.argv[1:]))\n")
    program.chmod(0o755)
    with started(tmp_path, "ui", "--json", variables={"BROWSER": str(program)}) as process:
        link = link_of(process)
        until(lambda: opened.exists() and bool(opened.read_text()))

        assert opened.read_text() == link
        # Other users see arguments of programs: the link is of no use to them.
        (kept,) = (tmp_path / "state" / "ui_logins").iterdir()
        assert json.loads(kept.read_bytes())["user"] == posix.getuid()
        with browser(link) as client:
            assert client.get("/ui").status_code == 200


@pytest.mark.posix_only("ends it with a signal")
def test_a_running_server_has_the_page_and_the_command_opens_it(tmp_path: Path) -> None:
    with served(tmp_path) as (server, port):
        until(lambda: bool(page_of(tmp_path)))
        with started(tmp_path, "ui", "--no-open", "--json") as command:
            link = link_of(command)
            assert command.wait(WITHIN_S) == 0

        assert urlsplit(link).netloc == f"127.0.0.1:{port}"
        with started(tmp_path, "status") as status:
            assert f"page: http://127.0.0.1:{port}/ui (goat-mcp ui opens it)" in status.communicate()[0]
        with browser(link) as client, client.stream("GET", "/ui/events") as stream:
            assert stream.status_code == 200
            assert client.get("/ui").status_code == 200
            assert client.get("/mcp").status_code == 401  # the cookie opens the page alone

            server.send_signal(signal.SIGTERM)

            assert server.wait(ENDS_WITHIN_S) == 0


def test_the_token_of_mcp_opens_no_page(tmp_path: Path) -> None:
    with served(tmp_path) as (_, port):
        token = (tmp_path / "state" / "http" / "token").read_text().strip()
        for path in ("/ui", "/ui/events"):
            answer = httpx.get(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {token}"})
            assert answer.status_code == 401


def test_a_server_without_the_page_serves_none_and_the_command_serves_its_own(tmp_path: Path) -> None:
    with served(tmp_path, "--set", "ui.enabled=false") as (_, port):
        assert httpx.get(f"http://127.0.0.1:{port}/ui").status_code == 404
        with started(tmp_path, "ui", "--no-open", "--json") as command:
            assert urlsplit(link_of(command)).port != port


def test_a_page_for_this_machine_alone_comes_before_one_that_others_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = ["http://192.0.2.1:8765/ui", "", "http://127.0.0.1:8766/ui"]
    monkeypatch.setenv("GOAT_MCP_STATE_DIR", str(tmp_path))
    for shown, expected in ((pages, "127.0.0.1:8766"), (pages[:2], "192.0.2.1:8765")):
        documents = [{"pid": 1, "page": page} for page in shown]
        monkeypatch.setattr("goat_mcp.cli.ui.running", documents.copy)

        result = CliRunner().invoke(app, ["ui", "--no-open", "--json"], prog_name="goat-mcp")

        link: str = json.loads(result.output)["url"]
        assert urlsplit(link).netloc == expected


def test_a_command_that_a_model_runs_is_refused(tmp_path: Path) -> None:
    with started(tmp_path, "ui", "--no-open", "--json", variables={MARKER_VARIABLE: "a.b"}) as process:
        out, err = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 1
    assert out == ""
    assert json.loads(err)["error"]["code"] == "E_PERMISSION"
    assert not (tmp_path / "state" / "ui_logins").exists()


def test_a_port_that_is_taken_is_named(tmp_path: Path) -> None:
    with served(tmp_path) as (_, port), started(tmp_path, "ui", "--no-open", "--port", str(port)) as process:
        _, err = process.communicate(timeout=WITHIN_S)

    assert process.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port}" in err
