"""The connection to a real Redis: it comes up at first use, and again after the server was away."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
import trustme

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.state.redis import connection as module
from goat_mcp.state.redis.address import parsed_address
from goat_mcp.state.redis.connection import MAX_AT_A_TIME, RedisConnection
from tests.free_port import free_port
from tests.redis_server import RedisServer, redis_server

pytestmark = pytest.mark.anyio


async def test_a_value_is_read_as_it_was_written_under_a_key_with_the_prefix(
    server: RedisServer, redis: RedisConnection
) -> None:
    await redis.write("a:b", "é", lasts_s=60)

    assert await redis.read("a", "b") == "é"
    assert await redis.read_all(["no", "a:b"]) == [None, "é"]
    assert "{test}:a:b" in server.ask("KEYS", "*")
    assert 0 < int(server.ask("PTTL", "{test}:a:b")[1:]) <= 60_000


async def test_of_all_who_add_a_key_at_once_one_succeeds(redis: RedisConnection) -> None:
    added: list[bool] = []

    async def add(number: int) -> None:
        added.append(await redis.add("one", str(number), lasts_s=60))

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(add, number)

    assert added.count(True) == 1


async def test_a_script_runs_over_keys_of_one_prefix(redis: RedisConnection) -> None:
    script = "redis.call('SET', KEYS[1], ARGV[1]) return {KEYS[1], ARGV[2]}"

    assert await redis.run_script(script, ["x"], ["1", 2]) == ["{test}:x", "2"]
    assert await redis.read("x") == "1"


async def test_messages_reach_those_who_listen(server: RedisServer, redis: RedisConnection) -> None:
    async with redis.listening("news") as next_message:
        await redis.publish("other", "no")
        await redis.publish("news", "yes")

        assert await next_message() == ("news", "yes")
        assert await next_message() is None


async def test_a_server_that_was_away_is_found_again(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        redis = RedisConnection(parsed_address(server.url), "test")
        await redis.write("key", "value")
        server.stop()

        with pytest.raises(ToolError) as gone:
            await redis.read("key")

        assert gone.value.code == ErrorCode.IO
        assert server.url.removesuffix("/0") in gone.value.message
        assert redis.problem
        server.start()
        assert await redis.read("key") is None
        assert not redis.problem
        await redis.close()


async def test_a_wrong_password_is_an_error_that_shows_none(tmp_path: Path) -> None:
    with redis_server(tmp_path, "--user", "me", "on", ">hunter2", "~*", "+@all", "--user", "default", "off") as server:
        address = server.url.replace("redis://", "redis://me:hunter2@")
        redis = RedisConnection(parsed_address(address), "test")
        assert await redis.ping() > 0
        wrong = RedisConnection(parsed_address(address.replace("hunter2", "other")), "test")

        with pytest.raises(ToolError) as refused:
            await wrong.ping()

        assert "other" not in refused.value.message
        await redis.close()
        await wrong.close()


async def test_a_restart_between_two_commands_costs_none_of_them(tmp_path: Path) -> None:
    with redis_server(tmp_path) as server:
        redis = RedisConnection(parsed_address(server.url), "test")
        await redis.write("key", "value")

        server.stop()
        server.start()
        for _ in range(10):
            await anyio.lowlevel.checkpoint()  # the event loop learns that the connection has ended

        assert await redis.read("key") is None
        await redis.close()


@pytest.mark.posix_only("stops a process by a signal")
async def test_a_redis_that_hangs_is_given_up_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CONNECT_TIMEOUT_S", 0.1)
    monkeypatch.setattr(module, "ANSWER_TIMEOUT_S", 0.1)
    with redis_server(tmp_path) as server:
        redis = RedisConnection(parsed_address(server.url), "test")
        os.kill(server.pid, signal.SIGSTOP)

        with anyio.fail_after(30), pytest.raises(ToolError, match="no answer in time"):
            await redis.ping()

        await redis.close()


async def test_a_command_whose_answer_was_lost_is_not_sent_again() -> None:
    received: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while command := await reader.read(65536):
            if b"INCR" in command:
                received.append(command)
                break
            writer.write(b"+OK\r\n" * command.count(b"*"))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
        port = listening.sockets[0].getsockname()[1]
        redis = RedisConnection(parsed_address(f"redis://127.0.0.1:{port}"), "test")

        with pytest.raises(ToolError):
            await redis.ask(lambda client: client.incr(redis.key("n")))

        assert len(received) == 1
        await redis.close()


async def test_more_commands_at_a_time_than_connections_all_come_through(redis: RedisConnection) -> None:
    numbers: set[int] = set()

    async def count() -> None:
        numbers.add(await redis.ask(lambda client: client.incr(redis.key("n"))))

    async with anyio.create_task_group() as group:
        for _ in range(5 * MAX_AT_A_TIME):
            group.start_soon(count)

    assert numbers == set(range(1, 5 * MAX_AT_A_TIME + 1))


async def test_a_user_that_may_not_is_told_so(tmp_path: Path) -> None:
    user = ("--user", "me", "on", ">hunter2", "~{goat-mcp}:*", "+@all", "--user", "default", "off")
    with redis_server(tmp_path, *user) as server:
        address = parsed_address(server.url.replace("redis://", "redis://me:hunter2@"))
        redis = RedisConnection(address, "other")

        with pytest.raises(ToolError, match=r"the user of state\.url may not do that"):
            await redis.read("key")

        await redis.close()


async def test_a_redis_over_tls_is_trusted_by_its_certificate(tmp_path: Path) -> None:
    authority = trustme.CA()
    certificate = authority.issue_cert("localhost", "127.0.0.1")
    for name, blob in (("ca", authority.cert_pem), ("cert", certificate.cert_chain_pems[0])):
        blob.write_to_path(str(tmp_path / f"{name}.pem"))
    certificate.private_key_pem.write_to_path(str(tmp_path / "key.pem"))
    with redis_server(tmp_path) as server:
        port = free_port()
        files = {"tls-cert-file": "cert.pem", "tls-key-file": "key.pem", "tls-ca-cert-file": "ca.pem"}
        for option, file in files.items():
            server.ask("CONFIG", "SET", option, str(tmp_path / file))
        server.ask("CONFIG", "SET", "tls-auth-clients", "no")
        assert "OK" in server.ask("CONFIG", "SET", "tls-port", str(port))
        trusting = RedisConnection(parsed_address(f"rediss://127.0.0.1:{port}?ca={tmp_path / 'ca.pem'}"), "test")
        wary = RedisConnection(parsed_address(f"rediss://127.0.0.1:{port}"), "test")

        assert await trusting.ping() > 0
        with pytest.raises(ToolError, match="certificate"):
            await wary.ping()

        await trusting.close()
        await wary.close()


def test_without_state_url_nothing_of_redis_is_loaded(tmp_path: Path) -> None:
    code = (
        "import sys; from goat_mcp.gateway.gateway import Gateway; from goat_mcp.settings.settings import Settings; "
        "from goat_mcp.calls.permissions.mode import Approval; Gateway(Settings(), approval=Approval.DENY); "
        "print([name for name in sys.modules if name.split('.')[0] == 'redis' or 'state.redis.' in name])"
    )
    environ = {**os.environ, "GOAT_MCP_STATE_DIR": str(tmp_path / "state")}

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environ, check=True)

    assert done.stdout.strip() == "['goat_mcp.state.redis.shared_state']"
