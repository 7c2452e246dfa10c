"""`goat-mcp auth`: logging in at a terminal, with a real authorization server. AUT-3."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import time
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import anyio
import pytest

from goat_mcp.calls.approvals.record import Status
from goat_mcp.gateway.approvals.user_queue import approval_queue
from goat_mcp.gateway.status.gateway_status import iso
from goat_mcp.gateway.status.process_files import ProcessFiles
from goat_mcp.state.directory import StateDirectory
from tests.quick_start import goat_command
from tests.upstreams.oauth.guarded_server import Guarded, guarded_server, where_it_ends

pytestmark = pytest.mark.e2e


def environment(folder: Path) -> dict[str, str]:
    # No keyring, and a browser that would tell if it was opened.
    return {
        **os.environ,
        "GOAT_MCP_STATE_DIR": str(folder / "state"),
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring",
        "BROWSER": f"touch {folder / 'opened'} %s",
    }


def start(folder: Path, *arguments: str, cwd: Path | None = None) -> subprocess.Popen[str]:
    return subprocess.Popen(
        goat_command("auth", *arguments),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(folder),
        cwd=cwd or folder,
    )


def entries(folder: Path, server: Guarded) -> str:
    file = folder / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"web": server.entry(), "local": {"command": "true"}}}))
    return str(file)


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://\S+/authorize\S+", line):
            return found[0]
    raise AssertionError("no address was printed")


def test_logging_in_with_a_browser_listing_and_logging_out(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        upstreams = entries(tmp_path, server)
        process = start(tmp_path, "login", "web", "--upstreams", upstreams)
        back = urlsplit(where_it_ends(address_of(process)))
        forged = http.client.HTTPConnection(back.netloc, timeout=20)
        forged.request("GET", "/callback?code=forged&state=forged")
        refused = forged.getresponse().status
        honest = http.client.HTTPConnection(back.netloc, timeout=20)
        honest.request("GET", f"{back.path}?{back.query}")
        page = honest.getresponse().read()
        out, err = process.communicate(timeout=60)
        listed = start(tmp_path, "list", "--json").communicate(timeout=60)[0]
        logged_out = start(tmp_path, "logout", "web", "--upstreams", upstreams).communicate(timeout=60)
        revoked = server.count("revoke")
        left = start(tmp_path, "list", "--json").communicate(timeout=60)[0]

    assert (process.returncode, refused) == (0, 400), err
    assert b"You can close this page" in page
    assert "Logged in to web" in out
    (login,) = json.loads(listed)
    assert (login["server"], login["status"], login["issuer"]) == ("web", "valid", server.issuer)
    assert Path(login["kept_in"]).parent == tmp_path / "state" / "oauth"
    assert "canary" not in out + err + listed + "".join(logged_out)
    assert "Logged out of web" in logged_out[0]
    assert (revoked, json.loads(left)) == (1, [])
    assert not (tmp_path / "opened").exists()  # nobody sat at a terminal


def test_a_login_that_a_running_server_waits_for_is_in_the_queue_and_done_by_the_command(tmp_path: Path) -> None:
    state = StateDirectory(tmp_path / "state")
    wants = {"name": "web", "reason_code": "auth_required", "detail": "HTTP 401", "since": iso(time.time() - 60)}
    ProcessFiles(state).write({"pid": os.getpid(), "workspace": [str(tmp_path)], "upstreams": [wants]})
    queue = approval_queue(state)
    with guarded_server(tmp_path) as server:
        upstreams = entries(tmp_path, server)
        (found,) = anyio.run(queue.waiting)
        process = start(tmp_path, "login", "web", "--upstreams", upstreams)
        back = urlsplit(where_it_ends(address_of(process)))
        honest = http.client.HTTPConnection(back.netloc, timeout=20)
        honest.request("GET", f"{back.path}?{back.query}")
        honest.getresponse().read()
        _, err = process.communicate(timeout=60)

    assert process.returncode == 0, err
    decided = queue.store.find(found.id)
    assert (decided.status, decided.decided_by) == (Status.APPROVED, "terminal")
    assert anyio.run(queue.waiting) == []  # although its server has not tried again


def test_who_is_turned_away_at_the_page_reads_why(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        process = start(tmp_path, "login", "web", "--no-browser", "--upstreams", entries(tmp_path, server))
        query = parse_qs(urlsplit(address_of(process)).query)
        pasted = f"{query['redirect_uri'][0]}?error=access_denied&state={query['state'][0]}\n"
        _, err = process.communicate(pasted, timeout=60)

    assert process.returncode == 3, err
    assert "no login to web: the authorization server said no: 'access_denied'" in err
    assert "Traceback" not in err


def test_the_address_that_a_browser_elsewhere_ended_at_can_be_pasted(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        process = start(tmp_path, "login", "web", "--no-browser", "--upstreams", entries(tmp_path, server))
        end = where_it_ends(address_of(process))
        out, err = process.communicate(f"http://127.0.0.1/callback?code=x&state=y\n{end}\n", timeout=60)

    assert process.returncode == 0, err
    assert "Logged in to web" in out
    assert "That is not the address" in err


@pytest.mark.parametrize(
    ("server", "problem"), [("nobody", "no upstream 'nobody'"), ("local", "local is no HTTP server")]
)
def test_what_cannot_be_logged_in_to_is_said(tmp_path: Path, server: str, problem: str) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"local": {"command": "true"}}}))
    process = start(tmp_path, "login", server, "--upstreams", str(file))
    _, err = process.communicate(timeout=60)

    assert process.returncode == 1
    assert problem in err


def test_a_server_that_cannot_be_reached_has_an_exit_code_of_its_own(tmp_path: Path) -> None:
    file = tmp_path / "servers.json"
    file.write_text(json.dumps({"mcpServers": {"gone": {"url": "http://127.0.0.1:9/mcp"}}}))
    process = start(tmp_path, "login", "gone", "--upstreams", str(file))
    _, err = process.communicate(timeout=60)

    assert (process.returncode, "no login to gone now" in err) == (4, True), err


def browse(process: subprocess.Popen[str]) -> tuple[str, str]:
    """What the command says once somebody was at the login page."""
    back = urlsplit(where_it_ends(address_of(process)))
    honest = http.client.HTTPConnection(back.netloc, timeout=20)
    honest.request("GET", f"{back.path}?{back.query}")
    honest.getresponse().read()
    return process.communicate(timeout=60)


def test_an_account_for_each_project_is_made_shown_and_ended_by_itself(tmp_path: Path) -> None:
    """AUT-1: the directory is that of `--workspace`, or the current one."""
    one, two = (tmp_path / name for name in ("one", "two"))
    one.mkdir()
    two.mkdir()
    state = StateDirectory(tmp_path / "state")
    wants = {"name": "web", "reason_code": "auth_required", "detail": "x", "since": iso(time.time() - 60)}
    wants["account"] = "workspace"
    with guarded_server(tmp_path) as server:
        file = tmp_path / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"web": server.entry(oauth={"account": "workspace"})}}))
        ProcessFiles(state).write({"pid": os.getpid(), "workspace": [str(two)], "upstreams": [wants]})
        (waiting,) = anyio.run(approval_queue(state).waiting)
        in_one, _ = browse(start(tmp_path, "login", "web", "--upstreams", str(file), "--workspace", str(one)))
        still_waiting = len(anyio.run(approval_queue(state).waiting))
        in_two, _ = browse(start(tmp_path, "login", "web", "--upstreams", str(file), cwd=two))
        asked_after = anyio.run(approval_queue(state).waiting)
        listed = json.loads(start(tmp_path, "list", "--json").communicate(timeout=60)[0])
        logged_out, _ = start(tmp_path, "logout", "web", "--upstreams", str(file), "--workspace", str(one)).communicate(
            timeout=60
        )
        left = json.loads(start(tmp_path, "list", "--json").communicate(timeout=60)[0])

    assert f"Logged in to web for {one}." in in_one
    assert f"Logged in to web for {two}." in in_two
    assert still_waiting == 1
    assert {entry["workspace"] for entry in listed} == {str(one), str(two)}
    assert f"Logged out of web for {one};" in logged_out
    assert [entry["workspace"] for entry in left] == [str(two)]
    assert f"--workspace {two}" in waiting.request.facts["command"]
    assert asked_after == []
