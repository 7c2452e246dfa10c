"""Renewing tokens: one process at a time, nothing lost, nothing deleted by a loser. AUT-2."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from goat_mcp.state.file_lock import file_lock
from goat_mcp.upstreams.oauth.login_contract import AuthServerDown, LoginNeeded
from goat_mcp.upstreams.oauth.login_store import LoginFacts, LoginStore, StoredLogin
from tests.quick_start import script_command
from tests.upstreams.fleet import fleet
from tests.upstreams.oauth.guarded_server import guarded_server, log_in, login_of, logins_of

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

PROCESSES = 8
REPOSITORY = Path(__file__).parents[3]


def change(folder: Path, alter: Callable[[LoginFacts], dict[str, object]]) -> None:
    """Rewrite what is known of the only login."""
    store = LoginStore(logins_of(folder).state)
    (facts,) = store.all()
    store.note(facts.model_copy(update=alter(facts)))


def expire(folder: Path) -> None:
    now_s = time.time()
    change(folder, lambda facts: {"expires_at_s": now_s - 5, "obtained_at_s": now_s - 3600})


def stored(folder: Path) -> StoredLogin:
    store = LoginStore(logins_of(folder).state)
    (facts,) = store.all()
    return store.load(facts)


def calling_process(folder: Path, url: str, go: Path, *oauth: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        script_command(Path(__file__).parent / "calling_process.py", str(folder), url, str(go), *oauth),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )


async def test_eight_processes_renew_a_rotating_token_once_and_all_their_calls_work(tmp_path: Path) -> None:
    """AUT-2."""
    go = tmp_path / "go"
    with guarded_server(tmp_path, refresh_takes_s=0.5) as server:
        await log_in(tmp_path, server)
        expire(tmp_path)
        processes = [calling_process(tmp_path, server.url, go) for _ in range(PROCESSES)]
        try:
            for process in processes:
                assert process.stdout is not None
                assert await anyio.to_thread.run_sync(process.stdout.readline) == "ready\n"
            go.touch()
            ends = [
                await anyio.to_thread.run_sync(lambda p=process: p.communicate(timeout=120)) for process in processes
            ]
        finally:
            for process in processes:
                process.kill()
                process.wait()
        refreshes, reuses, calls = server.count("refresh"), server.count("reuse"), server.count("call")

    assert [out for out, _ in ends] == ["read done\n"] * PROCESSES, ends
    assert (refreshes, reuses, calls) == (1, 0, PROCESSES)


async def test_many_calls_of_one_process_renew_once(tmp_path: Path) -> None:
    """AUT-2."""
    with guarded_server(tmp_path, refresh_takes_s=0.2) as server:
        await log_in(tmp_path, server)
        async with fleet(tmp_path, {"web": server.entry()}, logins=logins_of(tmp_path)) as running:
            expire(tmp_path)  # the token in memory is good; the server says otherwise
            server.control(refuse_all=True, refresh_takes_s=0.2)
            await running.failing("mcp__web__read")
            server.control(refresh_takes_s=0.2)
            answers: list[str] = []

            async def call() -> None:
                answers.append((await running.call("mcp__web__read")).text)

            async with anyio.create_task_group() as group:
                for _ in range(10):
                    group.start_soon(call)
        reuses = server.count("reuse")

    assert answers == ["read done"] * 10
    assert (server.count("refresh") <= 2, reuses) == (True, 0)


async def test_a_loser_adopts_what_the_winner_stored_and_deletes_nothing(tmp_path: Path) -> None:
    """AUT-2: also where the winner knew of no lock, as an older version or another machine."""
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        expire(tmp_path)
        loser, winner = login_of(tmp_path, server.url), login_of(tmp_path, server.url)
        old = stored(tmp_path)
        won = await winner.token()
        lost = await loser.after_refusal(old.secrets.access_token)
        refreshes = server.count("refresh")

    assert won == lost == stored(tmp_path).secrets.access_token
    assert won != old.secrets.access_token
    assert refreshes == 1


async def test_a_refresh_token_that_was_used_elsewhere_ends_the_login_and_keeps_what_is_stored(tmp_path: Path) -> None:
    """AUT-2: it is said once, not asked for again and again."""
    with guarded_server(tmp_path, refresh_error="invalid_grant") as server:
        await log_in(tmp_path, server)
        expire(tmp_path)
        before = stored(tmp_path)
        with pytest.raises(LoginNeeded, match=r"its login has ended: .*invalid_grant"):
            await login_of(tmp_path, server.url).token()
        with pytest.raises(LoginNeeded, match="invalid_grant"):
            await login_of(tmp_path, server.url).token()
        after = stored(tmp_path)
        asked = server.count("refresh")
        server.control()
        await log_in(tmp_path, server)
        token = await login_of(tmp_path, server.url).token()

    assert after.secrets == before.secrets
    assert after.facts.status == "ended"
    assert asked == 1
    assert token == stored(tmp_path).secrets.access_token
    assert stored(tmp_path).facts.status == "valid"


async def test_a_process_that_dies_between_asking_and_storing_is_told_of_and_blocks_nobody(tmp_path: Path) -> None:
    """AUT-2: the new tokens are lost, and the next process says so. The lock of the dead is nobody's."""
    go = tmp_path / "go"
    go.touch()
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        expire(tmp_path)
        server.control(answer_takes_s=60)
        process = calling_process(tmp_path, server.url, go)
        with anyio.fail_after(60):
            while not server.count("refreshed"):  # noqa: ASYNC110  # in another process
                await anyio.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        server.control()
        started_s = time.monotonic()
        with pytest.raises(LoginNeeded) as needed:
            await login_of(tmp_path, server.url).token()
        took_s = time.monotonic() - started_s

    assert "never stored, so they are lost" in needed.value.why
    assert took_s < 20
    assert stored(tmp_path).secrets.refresh_token


async def test_an_authorization_server_that_is_down_ends_no_login(tmp_path: Path) -> None:
    with guarded_server(tmp_path, refresh_error="temporarily_unavailable") as server:
        await log_in(tmp_path, server)
        expire(tmp_path)
        with pytest.raises(AuthServerDown):
            await login_of(tmp_path, server.url).token()
        server.control()
        token = await login_of(tmp_path, server.url).token()

    assert token == stored(tmp_path).secrets.access_token


async def test_a_token_that_still_lives_is_used_while_the_authorization_server_is_down(tmp_path: Path) -> None:
    with guarded_server(tmp_path, refresh_error="temporarily_unavailable") as server:
        await log_in(tmp_path, server)
        now_s = time.time()
        change(tmp_path, lambda facts: {"expires_at_s": now_s + 10, "obtained_at_s": now_s - 3600})
        token = await login_of(tmp_path, server.url).token()
        asked = server.count("refresh")

    assert (token, asked) == (stored(tmp_path).secrets.access_token, 1)


async def test_a_server_that_refuses_every_token_is_not_asked_for_new_ones_without_end(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        change(tmp_path, lambda facts: {"obtained_at_s": facts.obtained_at_s - 100})
        login = login_of(tmp_path, server.url)
        first = await login.after_refusal(await login.token())
        with pytest.raises(LoginNeeded, match="just made"):
            await login.after_refusal(first)
        asked = server.count("refresh")

    assert asked == 1


async def test_a_lock_that_a_living_process_holds_is_waited_for(tmp_path: Path) -> None:
    with guarded_server(tmp_path) as server:
        await log_in(tmp_path, server)
        expire(tmp_path)
        store = LoginStore(logins_of(tmp_path).state)
        tokens: list[str | None] = []
        asked_meanwhile = -1

        async def take() -> None:
            tokens.append(await login_of(tmp_path, server.url).token())

        async with anyio.create_task_group() as group, file_lock(store.lock_file(server.url, "owner"), 1):
            group.start_soon(take)
            with anyio.move_on_after(1.5):  # time enough to ask, for one that does not wait
                while not server.count("refresh"):  # noqa: ASYNC110  # in another process
                    await anyio.sleep(0.02)
            asked_meanwhile = server.count("refresh")
        asked = server.count("refresh")

    assert (asked_meanwhile, asked) == (0, 1)
    assert tokens == [stored(tmp_path).secrets.access_token]
