"""Logins of upstreams that several servers share: one renews at a time, and Redis never holds a token in clear."""

from __future__ import annotations

import secrets
from pathlib import Path

import anyio
import pytest

from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.file_lock import LockTimeout
from goat_mcp.state.redis.encrypted_text import EncryptedText
from goat_mcp.upstreams.oauth.login_store import GROUP, LoginFacts, LoginSecrets, LoginStore, StoredLogin
from tests.redis_server import RedisServer
from tests.shared_states import shared_state

pytestmark = pytest.mark.anyio
URL = "https://up.example/mcp"
FACTS = LoginFacts(resource=URL, issuer="https://as.example", client_id="c", principal="anna", server="up")
LOGIN = StoredLogin(facts=FACTS, secrets=LoginSecrets(generation=0, access_token="token-not-for-others"))


@pytest.fixture
def servers(one_redis: RedisServer, tmp_path: Path) -> list[LoginStore]:
    prefix = secrets.token_hex(8)
    states = [StateDirectory(tmp_path / str(number), shared_state(one_redis, prefix)) for number in range(2)]
    return [LoginStore(state) for state in states]


def _renewed(store: LoginStore) -> StoredLogin:
    found = store.find(URL, "anna", client_id="c")
    login = LOGIN if found is None else store.load(found)
    generation = login.secrets.generation + 1
    return StoredLogin(
        facts=login.facts.model_copy(update={"generation": generation}),
        secrets=login.secrets.model_copy(update={"generation": generation}),
    )


async def test_servers_that_renew_at_the_same_time_take_turns_and_see_what_the_other_stored(
    servers: list[LoginStore],
) -> None:
    at_once, most = 0, 0

    async def renew(store: LoginStore) -> None:
        nonlocal at_once, most
        for _ in range(5):
            async with store.alone(URL, "anna", 60):
                at_once += 1
                most = max(most, at_once)
                await anyio.to_thread.run_sync(lambda: store.put(_renewed(store)))
                at_once -= 1

    async with anyio.create_task_group() as group:
        for store in servers:
            group.start_soon(renew, store)
    async with servers[0].alone(URL, "anna", 60):
        found = servers[0].find(URL, "anna", client_id="c")

    assert most == 1
    assert found is not None and found.generation == 10


async def test_no_token_lies_in_redis_in_clear(servers: list[LoginStore], one_redis: RedisServer) -> None:
    await anyio.to_thread.run_sync(servers[0].put, LOGIN)
    async with servers[1].alone(URL, "anna", 60):
        found = servers[1].find(URL, "anna", client_id="c")

    assert found is not None
    assert servers[1].load(found).secrets.access_token == "token-not-for-others"
    keys = [key for key in one_redis.ask("KEYS", f"*files:{GROUP}:content").splitlines() if key.startswith("{")]
    assert keys
    assert all("token-not-for-others" not in one_redis.ask("HVALS", key) for key in keys)


async def test_a_forgotten_login_is_forgotten_everywhere(servers: list[LoginStore]) -> None:
    one, other = servers
    facts = await anyio.to_thread.run_sync(one.put, LOGIN)
    async with other.alone(URL, "anna", 60):
        assert other.find(URL, "anna", client_id="c") == facts
    await anyio.to_thread.run_sync(one.forget, facts)

    async with other.alone(URL, "anna", 60):
        assert other.find(URL, "anna", client_id="c") is None


async def test_nobody_renews_without_the_shared_state(
    servers: list[LoginStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> bool:
        raise OSError("away")

    from redis.asyncio import Redis

    monkeypatch.setattr(Redis, "execute_command", away)
    with pytest.raises(LockTimeout, match="does not answer"):
        async with servers[0].alone(URL, "anna", 1):
            raise AssertionError("is alone without knowing")


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_text_is_read_with_the_key_before_and_under_its_own_name_only(name: str) -> None:
    old, new = "o" * 40, "n" * 40
    sealed = EncryptedText([old]).sealed("a", "secret")

    assert EncryptedText([new, old]).opened(name, sealed) == ("secret" if name == "a" else None)
    assert EncryptedText([new]).opened(name, sealed) is None


async def test_who_waits_too_long_for_another_server_is_told(servers: list[LoginStore]) -> None:
    async with servers[0].alone(URL, "anna", 60):
        with pytest.raises(LockTimeout, match="another server has been at login"):
            async with servers[1].alone(URL, "anna", 0.2):
                pass
