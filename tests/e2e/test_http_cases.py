"""The HTTP attacks against a real server: what it refuses, what it keeps of it, and that a good client goes on."""

from __future__ import annotations

import json
import selectors
import socket
import subprocess
import threading
import time
from collections.abc import Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import UNASKED, fill, ours, upstream_file
from tests.e2e.goat import TOKEN, HttpGoat, Launch, http_goat
from tests.e2e.http_wire import (
    Response,
    call,
    call_headers,
    connect,
    exchange,
    handshake,
    head,
    host_of,
    listed_with,
    read_response,
    session_headers,
    tool_call,
)
from tests.e2e.open_files import descriptors, open_files
from tests.e2e.processes import descendants
from tests.repetitions import times
from tests.upstreams.fleet import server

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e]

PING_CLIENT = {"name": "x", "version": "1"}
HEADER_DEADLINE_S = 3.0
BODY_CAP_BYTES = 4 * 1024 * 1024
MIB = 1024 * 1024
SECRETS = ("Read", "Bash", "mcp__", "/workspace", "PATH", "uvicorn", "1.0.0", TOKEN)


@pytest.fixture(scope="module")
def goat(tmp_path_factory: pytest.TempPathFactory) -> Generator[HttpGoat]:
    folder = tmp_path_factory.mktemp("http")
    upstreams = upstream_file(folder / "upstreams.json", good=ours("plain"), stuck=ours("plain", "hangs-in-calls"))
    deadline = ("--set", f"limits.header_deadline_s={HEADER_DEADLINE_S:g}", "--set", "limits.calls_per_s=0")
    launch = Launch(
        folder,
        fill(folder / "workspace"),
        (*UNASKED, "--upstreams", str(upstreams), *deadline),
        {"CANARY": "c4n4ry"},
    )
    with http_goat(launch) as goat:
        listed_with(goat, "mcp__good__echo", "mcp__stuck__echo")
        yield goat
        assert TOKEN not in "".join(goat.said), "the token has been logged"
        assert "Traceback" not in "".join(goat.said)


@pytest.fixture(autouse=True)
def good_client(goat: HttpGoat) -> Generator[None]:
    """After whatever a test did a good request is answered."""
    yield
    assert text_of(call(goat, "mcp__good__echo", {"text": "still here"})) == "still here"


def text_of(response: Response) -> str:
    return response.message["result"]["content"][0]["text"]


def memory_bytes(goat: HttpGoat, field: str = "VmHWM") -> int:
    """The most this process has ever held (VmHWM), or holds (VmRSS)."""
    lines = Path(f"/proc/{goat.process.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"Authorization": None}, 401, id="HT-01"),
        pytest.param({"Authorization": f"Bearer {TOKEN[:-1]}x"}, 401, id="HT-01 another token"),
        pytest.param({"Authorization": f"Basic {TOKEN}"}, 401, id="HT-01 another scheme"),
        pytest.param({"Authorization": "Bearer"}, 401, id="HT-01 nothing in it"),
        pytest.param({"Origin": "http://evil.test"}, 403, id="HT-04"),
        pytest.param({"Host": "{host}/health?x="}, 421, id="HT-07"),
        pytest.param({"Host": "{host}@evil.test"}, 421, id="HT-07 another host behind"),
        pytest.param({"Host": "evil.test", "X-Forwarded-Host": "{host}"}, 421, id="HT-07 forwarded"),
        pytest.param({"Content-Type": "text/plain"}, 415, id="HT-10"),
        pytest.param({"Content-Type": "application/x-www-form-urlencoded"}, 415, id="HT-10 a form"),
        pytest.param({"Content-Type": "text/plain; application/json"}, 415, id="HT-10 both"),
    ],
)
def test_a_request_is_refused_and_told_nothing(goat: HttpGoat, changes: Mapping[str, str | None], status: int) -> None:
    """R-HTTP-1, R-HTTP-2"""
    changes = {name: value and value.format(host=host_of(goat)) for name, value in changes.items()}

    refused = exchange(goat, changes)

    assert refused.status == status
    assert not any(secret in refused.body.decode() for secret in SECRETS)
    assert [name for name in refused.headers if name.startswith("access-control")] == []
    if status == 401:
        missing = exchange(goat, {"Authorization": None})
        assert refused.headers["www-authenticate"].startswith("Bearer")
        assert (refused.body, refused.headers["www-authenticate"]) == (
            missing.body,
            missing.headers["www-authenticate"],
        )


def test_ht_09_a_request_without_a_host_is_refused(goat: HttpGoat) -> None:
    old = exchange(goat, {"Host": None}, start="POST /mcp HTTP/1.0")
    new = exchange(goat, {"Host": None})

    assert (old.status, new.status) == (421, 400)


@pytest.mark.parametrize("origin", ["http://evil.test", "null", "own"])
def test_ht_11_a_preflight_is_granted_nothing(goat: HttpGoat, origin: str) -> None:
    asked = f"http://{host_of(goat)}" if origin == "own" else origin
    headers = {"Origin": asked, "Access-Control-Request-Method": "POST", "Authorization": None}

    answer = exchange(goat, headers, raw=b"", start="OPTIONS /mcp HTTP/1.1")

    assert answer.status in (403, 405)
    assert [name for name in answer.headers if name.startswith("access-control")] == []


@pytest.mark.parametrize("query", [f"token={TOKEN}", f"access_token={TOKEN}", f"Authorization=Bearer%20{TOKEN}"])
def test_ht_12_a_token_in_the_address_is_none(goat: HttpGoat, query: str) -> None:
    """That it is not logged either is looked at when the server ends."""
    got = exchange(goat, {"Authorization": None}, raw=b"", start=f"GET /mcp?{query} HTTP/1.1")
    posted = exchange(goat, {"Authorization": None}, start=f"POST /mcp?{query} HTTP/1.1")

    assert (got.status, posted.status) == (401, 401)


def pour(goat: HttpGoat, request_head: bytes, piece: bytes, at_most_bytes: int) -> tuple[Response, int]:
    """Send a body until the server answers or closes; its answer, and how much it was sent."""
    sent = 0
    with connect(goat) as connection, selectors.DefaultSelector() as watch:
        connection.sendall(request_head)
        watch.register(connection, selectors.EVENT_READ | selectors.EVENT_WRITE)
        while sent < at_most_bytes:
            ((_, events),) = watch.select(30)
            if events & selectors.EVENT_READ:
                break
            try:
                sent += connection.send(piece)
            except (BrokenPipeError, ConnectionResetError):
                break
        return read_response(connection), sent


@pytest.mark.parametrize(
    ("framing", "is_chunked"),
    [
        pytest.param({"Content-Length": "1000000000"}, False, id="HT-13"),
        pytest.param({"Transfer-Encoding": "chunked"}, True, id="HT-14"),
    ],
)
@pytest.mark.parametrize("has_token", [True, False], ids=["token", "no token"])
def test_a_body_without_an_end_is_refused_at_the_cap(
    goat: HttpGoat, framing: Mapping[str, str | None], is_chunked: bool, has_token: bool
) -> None:
    """R-HTTP-4. What is on its way in buffers of the system counts as sent, so some more than the cap may be."""
    exchange(goat)
    before = memory_bytes(goat)
    piece = b"x" * 65536
    framed = f"{len(piece):x}\r\n".encode() + piece + b"\r\n" if is_chunked else piece
    changes = {"Connection": "close", **framing, **({} if has_token else {"Authorization": None})}

    answer, sent = pour(goat, head(goat, changes), framed, 64 * MIB)

    assert answer.status in ((413, 0) if has_token else (401, 0))
    assert sent < 32 * MIB
    assert memory_bytes(goat) - before < 20 * MIB


def test_ht_13_the_refusal_of_a_large_body_can_be_read(goat: HttpGoat) -> None:
    """A client that stops sending at the cap reads why."""
    with connect(goat) as connection:
        connection.sendall(head(goat, {"Connection": "close", "Content-Length": "1000000000"}))
        connection.sendall(b"x" * (BODY_CAP_BYTES + 1))

        assert read_response(connection).status == 413


def test_ht_15_connections_that_drip_their_headers_are_closed_and_delay_nobody(goat: HttpGoat) -> None:
    """R-HTTP-4. On a busy machine the drippers' time may be over before anybody else is answered: then they come again.
    A server that they hold up answers others after it has closed them, each time."""
    answered_meanwhile = False
    for _ in range(10):
        with drippers(goat, 200) as connections:
            first = exchange(goat).status
            answered_meanwhile = not any(is_ended(connection) for connection in connections)
            ends_at_s = time.monotonic() + 60
            while not all(is_ended(connection) for connection in connections):
                assert time.monotonic() < ends_at_s, "they drip on"
                assert exchange(goat).status == 200
        assert first == 200
        if answered_meanwhile:
            break

    assert answered_meanwhile, "nobody is answered until they are gone"


@contextmanager
def drippers(goat: HttpGoat, count: int) -> Generator[list[socket.socket]]:
    """Connections that send a letter of their headers now and then."""
    connections = [connect(goat) for _ in range(count)]
    stop = threading.Event()

    def drip() -> None:
        while not stop.wait(0.3):
            for connection in connections:
                with suppress(OSError):
                    connection.send(b"X")

    for connection in connections:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
        connection.setblocking(False)  # with a time limit `recv` would wait, whatever its flags say
    thread = threading.Thread(target=drip)
    thread.start()
    try:
        yield connections
    finally:
        stop.set()
        thread.join()
        for connection in connections:
            connection.close()


def is_ended(connection: socket.socket) -> bool:
    """Whether the other side has closed it, after an answer or without."""
    try:
        while connection.recv(65536):
            pass
    except BlockingIOError:
        return False
    except OSError:
        return True
    return True


def test_ht_19_a_session_is_never_of_the_clients_choice(goat: HttpGoat) -> None:
    """R-HTTP-3. An unknown one is unknown, with initialize as well; in the stateless era it means nothing."""
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    client: dict[str, Any] = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": PING_CLIENT}
    opening: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}

    statuses = [exchange(goat, session_headers("attacker-fixed"), sent).status for sent in (body, opening)]
    minted = {handshake(goat) for _ in range(5)}
    stateless = exchange(goat, {"Mcp-Session-Id": "attacker-fixed"})

    assert statuses == [404, 404]
    assert len(minted) == 5
    assert all(len(bytes.fromhex(session_id)) == 16 for session_id in minted)
    assert stateless.status == 200 and "mcp-session-id" not in stateless.headers


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_ht_21_equal_request_ids_of_two_clients_never_cross(goat: HttpGoat, era: str) -> None:
    """R-HTTP-3"""
    calls = times(200, in_full_run=1000)

    def run(client: str) -> list[str]:
        headers = session_headers(handshake(goat)) if era == "handshake" else call_headers("mcp__good__echo")

        def one(request_id: int) -> str:
            marker = f"{client}-{request_id}"
            body = tool_call("mcp__good__echo", {"text": marker}, request_id)
            answer = exchange(goat, headers, body)
            assert answer.message["id"] == request_id
            return text_of(answer)

        with ThreadPoolExecutor(8) as several:
            return list(several.map(one, range(1, calls + 1)))

    with ThreadPoolExecutor(2) as both:
        ours_, theirs = both.map(run, ["a", "b"])

    assert ours_ == [f"a-{number}" for number in range(1, calls + 1)]
    assert theirs == [f"b-{number}" for number in range(1, calls + 1)]


def listening(pid: int) -> list[tuple[str, int]]:
    """The TCP addresses a process listens on, as Linux tells them."""
    inodes = open_files(pid)
    if inodes is None:
        pytest.skip("only root may see what a server has open")
    found: list[tuple[str, int]] = []
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and f"socket:[{fields[9]}]" in inodes:
                address, _, port = fields[1].partition(":")
                found.append((address, int(port, 16)))
    return found


def test_ht_24_it_listens_on_loopback_only_and_on_nothing_when_nobody_asks(goat: HttpGoat, launch: Launch) -> None:
    from tests.e2e.wire import Wire

    with Wire(launch.command, launch.environment, launch.workspace) as wire:
        wire.handshake()
        over_stdio = listening(wire.process.pid)
    port = int(host_of(goat).split(":")[1])

    assert over_stdio == []
    assert listening(goat.process.pid) == [("0100007F", port)]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--http", "0.0.0.0:0"), "would listen on every address"),
        (("--http", "[::]:0"), "would listen on every address"),
        (("--http", "192.0.2.1:0", "--no-token"), "no-token"),
    ],
)
def test_ht_24_what_everybody_could_reach_is_refused(launch: Launch, options: tuple[str, ...], said: str) -> None:
    """R-HTTP-1"""
    ended = subprocess.run(
        [*launch.command, *options], env=launch.environment, capture_output=True, text=True, timeout=60, check=False
    )

    assert ended.returncode != 0
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    "path",
    ["/test/connection", "/mcp/test/connection", "/api/upstreams", "/admin", "/servers", "/mcp-rest/test/connection"],
)
@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_ht_25_no_endpoint_starts_a_process(goat: HttpGoat, path: str, method: str) -> None:
    """R-HTTP-5"""
    body: dict[str, Any] = {"command": "id", "args": [], "env": {}, "mcpServers": {"x": {"command": "id"}}}
    before = descendants(goat.process.pid)

    answer = exchange(goat, body=body, start=f"{method} {path} HTTP/1.1")

    assert answer.status == 404
    assert set(descendants(goat.process.pid)) <= set(before)


def test_ht_26_clients_that_hang_up_leave_nothing_running(goat: HttpGoat) -> None:
    """R-HTTP-6. Some of the calls run already, others wait for a place: closing cancels both.

    In the sandbox that commands have over HTTP: each starts while the one before it is being ended.
    """
    aborts, at_a_time = 500, 20
    request = tool_call("mcp__stuck__echo", {"text": "never"})
    content = json.dumps(request).encode()
    sent = head(goat, {**call_headers("mcp__stuck__echo"), "Content-Length": str(len(content))}) + content
    command = "echo >> started; sleep 600"
    running = json.dumps(tool_call("Bash", {"command": command})).encode()
    long_command = head(goat, {**call_headers("Bash"), "Content-Length": str(len(running))}) + running
    started = Path(text_of(call(goat, "Bash", {"command": "pwd"})).splitlines()[0]) / "started"
    exchange(goat)
    before = descriptors(goat.process.pid)
    processes = len(descendants(goat.process.pid))
    ends_at_s = time.monotonic() + 240

    for turn in range(aborts // at_a_time):
        clients = [connect(goat) for _ in range(at_a_time)]
        clients[0].sendall(long_command)
        wait_until(
            lambda: started.exists() and len(started.read_text().splitlines()) > turn,  # noqa: B023 - at once
            min(60.0, ends_at_s - time.monotonic()),
        )
        for client in clients[1:]:
            client.sendall(sent)
        for client in clients:
            client.close()

    wait_until(lambda: len(descendants(goat.process.pid)) <= processes)
    wait_until(lambda: descriptors(goat.process.pid) <= before + 2)
    assert text_of(call(goat, "mcp__good__echo", {"text": "x"})) == "x"


# FLW-2
def test_an_upstream_hears_of_a_client_that_hung_up(tmp_path: Path) -> None:
    log = tmp_path / "log"
    file = upstream_file(tmp_path / "upstreams.json", good=server("good.py", log))
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--upstreams", str(file)))
    content = json.dumps(tool_call("mcp__good__hang", {})).encode()
    with http_goat(launch) as goat:
        call(goat, "mcp__good__mark", {})
        with connect(goat) as client:
            sized = {**call_headers("mcp__good__hang"), "Content-Length": str(len(content))}
            client.sendall(head(goat, sized) + content)
            wait_until(lambda: "hang" in log.read_text())

        wait_until(lambda: "cancelled" in log.read_text())

        assert text_of(call(goat, "mcp__good__mark", {})) == "marked"
    assert log.read_text().splitlines() == ["mark", "hang", "cancelled", "mark"]


def wait_until(holds: Any, at_most_s: float = 60.0) -> None:
    ends_at_s = time.monotonic() + at_most_s
    while not holds():
        assert time.monotonic() < ends_at_s
        time.sleep(0.02)


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/docs",
        "/openapi.json",
        "/metrics",
        "/health",
        "/status",
        "/.well-known/oauth-authorization-server",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/mcp.json",
        "/mcp",
    ],
)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE", "TRACE"])
def test_ht_28_strangers_learn_nothing(goat: HttpGoat, path: str, method: str) -> None:
    """R-HTTP-5"""
    answer = exchange(goat, {"Authorization": None}, raw=b"", start=f"{method} {path} HTTP/1.1")

    told = answer.body.decode() + str(answer.headers)
    assert answer.status in (401, 404, 405)
    assert not any(secret in told for secret in SECRETS)
    assert "server" not in answer.headers


def test_what_is_refused_leaves_nothing_behind(goat: HttpGoat) -> None:
    """R-HTTP-4"""
    refusals: list[Mapping[str, str | None]] = [
        {"Authorization": None},
        {"Host": "evil.test"},
        {"Origin": "http://evil.test"},
        {"Mcp-Session-Id": "unknown", "MCP-Protocol-Version": "2025-11-25", "Mcp-Method": None},
    ]
    for changes in refusals * 25:
        exchange(goat, changes)
    before, open_before = memory_bytes(goat, "VmRSS"), descriptors(goat.process.pid)

    for changes in refusals * (2000 // len(refusals)):
        assert exchange(goat, changes).status in (401, 403, 404, 421)

    assert memory_bytes(goat, "VmRSS") - before < 5 * MIB
    wait_until(lambda: descriptors(goat.process.pid) <= open_before + 2)


def test_ht_29_a_flood_is_told_to_slow_down_and_loses_nothing(tmp_path: Path) -> None:
    """R-LIMIT-1. That another principal is served meanwhile is shown in tests/server/http/test_rate_limiter.py.

    Ten in a burst and five a second: any machine that takes less than half a minute for the flood has some refused.
    """
    launch = Launch(tmp_path, fill(tmp_path / "workspace"), (*UNASKED, "--set", "limits.calls_per_s=5"))
    with http_goat(launch) as goat, ThreadPoolExecutor(64) as flood:
        strangers = [exchange(goat, {"Authorization": None}).status for _ in range(100)]

        def find(number: int) -> Response:
            return call(goat, "Glob", {"pattern": "*.md"}, number)

        answers = list(flood.map(find, range(200)))

    refused = [answer for answer in answers if answer.status != 200]
    served = [answer for answer in answers if answer.status == 200]
    assert strangers == [401] * 100
    assert {answer.status for answer in refused} == {429}
    assert {answer.headers["retry-after"] for answer in refused} == {"1"}
    assert len(served) >= 10, "the burst is served, whatever strangers sent before"
    assert {text_of(answer).split("/")[-1] for answer in served} == {"notes.md"}
