"""Files that servers share: an edit on one is seen by all, and of two at the same time none is lost."""

from __future__ import annotations

import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import anyio
import pytest

from goat_mcp.calls.permissions.remembered import RememberedRules
from goat_mcp.core.errors import ToolError
from goat_mcp.state.directory import StateDirectory
from goat_mcp.state.redis.encrypted_text import EncryptedText
from goat_mcp.state.redis.shared_files import SharedFiles
from goat_mcp.state.redis.shared_state import SharedState
from goat_mcp.state.trust.store import TrustStore
from goat_mcp.upstreams.pinning.pin_lock import LockContent, Pin, PinLock, ServerPins
from tests.redis_server import RedisServer
from tests.shared_states import States, shared_state

ONLY_SHARED = pytest.mark.parametrize("states", ["shared"], indirect=True)


def _warn(event: str, **fields: Any) -> None: ...


def files_of(state: StateDirectory) -> SharedFiles:
    assert state.shared is not None
    assert isinstance(state.shared, SharedState)
    return state.shared.files(state.path)


def rules_of(state: StateDirectory) -> RememberedRules:
    return RememberedRules(state, "scope", _warn)


def texts(state: StateDirectory, principal: str = "anna") -> list[str]:
    return [rule.text for rule in rules_of(state).of(principal)]


@pytest.fixture
def two(tmp_path: Path, states: States) -> tuple[StateDirectory, StateDirectory]:
    return states(tmp_path / "one"), states(tmp_path / "two")


@ONLY_SHARED
def test_a_rule_that_one_server_remembers_holds_on_the_other(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    rules_of(one).add("anna", ["Bash(make)"])
    assert texts(other) == []
    assert files_of(other).look("rules")

    assert texts(other) == ["Bash(make)"]
    rules_of(other).forget("Bash(make)")
    files_of(one).look("rules")
    assert texts(one) == []


@ONLY_SHARED
def test_of_edits_at_the_same_time_none_is_lost(tmp_path: Path, states: States) -> None:
    servers = [states(tmp_path / str(number)) for number in range(3)]

    def add(number: int) -> None:
        for turn in range(10):
            rules_of(servers[number]).add("anna", [f"Bash(make {number}{turn})"])

    threads = [threading.Thread(target=add, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    files_of(servers[0]).look("rules")

    assert len(set(texts(servers[0]))) == 30


@ONLY_SHARED
def test_pins_and_trust_are_one_for_all(two: tuple[StateDirectory, StateDirectory], tmp_path: Path) -> None:
    one, other = two

    def pin(content: LockContent) -> None:
        content.servers.setdefault("up", ServerPins()).pins["tools"] = {"echo": Pin("0" * 64, "read")}

    PinLock(one).change(pin)
    seen: list[int] = []
    PinLock(other).change(lambda content: seen.append(content.of("up").count))
    TrustStore(one).trust(tmp_path / "goat-mcp.yaml", "1" * 64)
    files_of(other).look("trust")

    assert seen == [1]
    assert [entry.sha256 for entry in TrustStore(other).all()] == ["1" * 64]


@ONLY_SHARED
@pytest.mark.anyio
async def test_a_server_that_follows_gets_what_another_edits(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    async with anyio.create_task_group() as group:
        group.start_soon(files_of(other).follow)
        await anyio.to_thread.run_sync(rules_of(one).add, "anna", ["Bash(make)"])
        with anyio.fail_after(20):
            while texts(other) != ["Bash(make)"]:  # noqa: ASYNC110  # bounded by the timeout around it
                await anyio.sleep(0.02)
        group.cancel_scope.cancel()


@ONLY_SHARED
def test_what_a_machine_had_before_it_shared_is_kept_aside(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    rules_of(StateDirectory(other.path)).add("anna", ["Bash(old)"])
    rules_of(one).add("anna", ["Bash(new)"])
    files_of(other).look("rules")

    assert texts(other) == ["Bash(new)"]
    assert b"Bash(old)" in (other.path / "rules" / "scope.jsonl.before-sharing").read_bytes()


def test_a_redis_that_has_lost_everything_gets_it_again_and_one_that_is_away_refuses_edits(
    tmp_path: Path, server: RedisServer
) -> None:
    server.ask("FLUSHALL")
    shared = [shared_state(server, "t") for _ in range(2)]
    one, other = (StateDirectory(tmp_path / str(number), each) for number, each in enumerate(shared))
    rules_of(one).add("anna", ["Bash(make)"])
    server.stop()
    try:
        with pytest.raises(OSError, match="does not answer"):
            rules_of(one).add("anna", ["Bash(rm)"])
        with pytest.raises(ToolError):
            files_of(one).look("rules")
        assert texts(one) == ["Bash(make)"]
    finally:
        server.start()

    files_of(one).look("rules")
    files_of(other).look("rules")
    assert texts(other) == texts(one) == ["Bash(make)"]
    for each in shared:
        each.connection.close_here()


@ONLY_SHARED
def test_an_edit_that_took_longer_than_its_lock_is_undone(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    rules_of(one).add("anna", ["Bash(first)"])
    assert isinstance(one.shared, SharedState)
    redis = one.shared.connection

    with pytest.raises(OSError, match="took too long"), one.editing("rules"):
        with rules_of(one).path.open("a") as file:
            file.write("late")
        redis.ask_here(lambda client: client.delete(redis.key("files:rules:lock")))  # its time is over
        rules_of(other).add("anna", ["Bash(second)"])

    assert "late" not in rules_of(one).path.read_text()
    files_of(one).look("rules")
    assert texts(one) == ["Bash(first)", "Bash(second)"]


@ONLY_SHARED
def test_an_edit_that_fails_changes_nothing(two: tuple[StateDirectory, StateDirectory]) -> None:
    one, other = two
    rules_of(one).add("anna", ["Bash(first)"])

    with pytest.raises(ZeroDivisionError), one.editing("rules"):
        rules_of(one).path.write_text("")
        raise ZeroDivisionError
    rules_of(one).add("anna", ["Bash(second)"])

    files_of(other).look("rules")
    assert texts(other) == texts(one) == ["Bash(first)", "Bash(second)"]


@pytest.fixture
def written(server: RedisServer, tmp_path: Path) -> Generator[tuple[StateDirectory, Path]]:
    """A server's folder, deep enough to leave it, and a Redis in which somebody else has written."""
    server.ask("FLUSHALL")
    shared = shared_state(server, "t")
    state = StateDirectory(tmp_path / "up" / "state", shared)
    rules_of(state).add("anna", ["Bash(make)"])
    yield state, tmp_path
    shared.connection.close_here()


def _content(server: RedisServer, *names_and_texts: str) -> None:
    server.ask("HSET", "{t}:files:rules:content", *names_and_texts)
    server.ask("INCR", "{t}:files:rules:version")


@pytest.mark.parametrize(
    "name",
    [
        "../../evil",
        "rules/../../../evil",
        "{tmp}/evil",
        "rules/.evil.jsonl",
        "rules/a/evil.jsonl",
        "rules/a\0.jsonl",
        "trust.json",
    ],
)
def test_nothing_is_written_outside_the_files_of_a_group(
    written: tuple[StateDirectory, Path], server: RedisServer, name: str
) -> None:
    state, folder = written
    name = name.replace("{tmp}", str(folder))
    before = {path for path in folder.rglob("*") if path.is_file()}
    _content(server, name, EncryptedText(["k" * 40]).sealed(f"rules/{name}", "evil"))

    files_of(state).look("rules")
    assert {path for path in folder.rglob("*") if path.is_file()} == before
    assert texts(state) == ["Bash(make)"]


@pytest.mark.parametrize("text", ['{"allow": "Bash(rm)", "principal": "anna"}', "\u2713", "", "sealed elsewhere"])
def test_what_the_state_key_has_not_sealed_is_not_believed_and_stops_nobody(
    written: tuple[StateDirectory, Path], server: RedisServer, text: str
) -> None:
    state, _ = written
    name = rules_of(state).path.relative_to(state.path).as_posix()
    sealed = EncryptedText(["x" * 40]).sealed(f"rules/{name}", "evil") if text == "sealed elsewhere" else text
    _content(server, name, sealed)

    files_of(state).look("rules")
    assert texts(state) == ["Bash(make)"]
    with pytest.raises(OSError, match=r"state\.key of this server did not seal rules/scope\.jsonl"):
        rules_of(state).add("anna", ["Bash(rm)"])
    assert texts(state) == ["Bash(make)"]


@pytest.mark.parametrize("has_edited", [False, True])
def test_a_redis_that_was_set_back_gets_what_servers_have_unless_somebody_has_edited_since(
    tmp_path: Path, server: RedisServer, has_edited: bool
) -> None:
    server.ask("FLUSHALL")
    shared = [shared_state(server, "t") for _ in range(2)]
    one, other = (StateDirectory(tmp_path / str(number), each) for number, each in enumerate(shared))
    rules_of(one).add("anna", ["Bash(make)", "Bash(rm)"])
    server.ask("SAVE")
    rules_of(one).forget("Bash(rm)")
    server.set_back()

    if has_edited:
        rules_of(other).add("anna", ["Bash(ls)"])
    files_of(one).look("rules")
    files_of(other).look("rules")

    wanted = ["Bash(make)", "Bash(rm)", "Bash(ls)"] if has_edited else ["Bash(make)"]
    assert texts(one) == texts(other) == wanted
    for each in shared:
        each.connection.close_here()


def test_what_an_earlier_key_has_sealed_is_readable_after_that_key_is_gone(tmp_path: Path, server: RedisServer) -> None:
    server.ask("FLUSHALL")
    old, new = "o" * 40, "n" * 40
    connection = shared_state(server, "t").connection
    states = [
        StateDirectory(tmp_path / str(number), SharedState(connection, keys))
        for number, keys in enumerate(([old], [new, old], [new]))
    ]
    before, between, after = states
    rules_of(before).add("anna", ["Bash(make)"])
    files_of(between).look("rules")
    files_of(between).reseal()

    files_of(after).look("rules")
    assert texts(after) == ["Bash(make)"]
    seen = server.ask("GET", "{t}:files:rules:version")
    files_of(between).reseal()
    assert server.ask("GET", "{t}:files:rules:version") == seen
    connection.close_here()
