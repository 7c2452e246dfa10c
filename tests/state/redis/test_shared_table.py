"""A table that servers share: the same SQL as over a file, and of two who change it at once one goes again."""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from typing import Any

import pytest

from goat_mcp.core.errors import ToolError
from goat_mcp.state.redis.connection import RedisConnection
from goat_mcp.state.redis.encrypted_text import EncryptedText
from goat_mcp.state.redis.shared_table import SharedTable
from tests.redis_server import RedisServer
from tests.shared_states import shared_state

SCHEMA = (
    "CREATE TABLE IF NOT EXISTS notes (a TEXT NOT NULL, b INTEGER NOT NULL, text TEXT, PRIMARY KEY (a, b))",
    "CREATE INDEX IF NOT EXISTS notes_by_text ON notes (text)",
)
ENCRYPTED = EncryptedText(["k" * 40])
SETTLING = "UPDATE notes SET text = text || '?'"
ROWS = "{test}:table:notes:rows"


@pytest.fixture
def tables(server: RedisServer) -> Generator[Callable[[], SharedTable]]:
    server.ask("FLUSHALL")
    made: list[SharedTable] = []
    connections: list[RedisConnection] = []

    def table() -> SharedTable:
        connections.append(shared_state(server, "test").connection)
        made.append(SharedTable(connections[-1], "notes", SCHEMA, ENCRYPTED))
        return made[-1]

    yield table
    for one in made:
        one.close()
    for connection in connections:
        connection.close_here()


def put(table: SharedTable, a: str, b: int, text: str | None) -> None:
    table.write_here(lambda copy: copy.execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?)", (a, b, text)))


def rows(table: SharedTable) -> list[Any]:
    return table.read_here(lambda copy: copy.execute("SELECT a, b, text FROM notes ORDER BY a, b").fetchall())


def test_what_one_server_changes_the_others_see(tables: Callable[[], SharedTable]) -> None:
    one, other = tables(), tables()
    put(one, "é", 1, "x")
    put(one, "é", 2, None)
    assert rows(other) == [("é", 1, "x"), ("é", 2, None)]

    put(other, "é", 1, "y")
    other.write_here(lambda copy: copy.execute("DELETE FROM notes WHERE b = 2"))
    assert rows(one) == rows(tables()) == [("é", 1, "y")]


def test_work_that_fails_changes_nothing(tables: Callable[[], SharedTable]) -> None:
    table = tables()

    def fail(copy: Any) -> None:
        copy.execute("INSERT INTO notes VALUES ('a', 1, 'x')")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        table.write_here(fail)

    assert rows(table) == rows(tables()) == []


def test_who_was_slower_works_again_over_what_is_there_now(tables: Callable[[], SharedTable]) -> None:
    one, other = tables(), tables()
    put(one, "a", 1, "0")
    seen: list[str] = []

    def add(copy: Any) -> None:
        (text,) = copy.execute("SELECT text FROM notes").fetchone()
        seen.append(text)
        if len(seen) == 1:
            put(other, "a", 1, "5")
        copy.execute("UPDATE notes SET text = ?", (str(int(text) + 1),))

    one.write_here(add)

    assert seen == ["0", "5"]
    assert rows(other) == [("a", 1, "6")]


def test_of_many_servers_that_count_at_once_no_count_is_lost(tables: Callable[[], SharedTable]) -> None:
    put(tables(), "a", 1, "0")

    def count(table: SharedTable) -> None:
        for _ in range(20):
            table.write_here(lambda copy: copy.execute("UPDATE notes SET text = text + 1"), wait_s=30)

    threads = [threading.Thread(target=count, args=(tables(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert rows(tables()) == [("a", 1, "80")]


def test_a_redis_that_has_lost_everything_is_an_empty_table(
    server: RedisServer, tables: Callable[[], SharedTable]
) -> None:
    table = tables()
    put(table, "a", 1, "x")
    before = table.mark()
    server.ask("FLUSHALL")

    assert rows(table) == []
    put(table, "b", 1, "y")
    assert rows(tables()) == rows(table) == [("b", 1, "y")]
    assert table.mark() != before


def test_a_copy_that_has_missed_much_is_made_anew(
    tables: Callable[[], SharedTable], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("goat_mcp.state.redis.shared_table.MAX_BEHIND", 3)
    one, other = tables(), tables()
    put(one, "gone", 1, "x")
    assert rows(other) == [("gone", 1, "x")]
    one.write_here(lambda copy: copy.execute("DELETE FROM notes"))
    for number in range(8):
        put(one, "a", 1, str(number))

    assert rows(other) == [("a", 1, "7")]


def test_without_redis_nothing_is_read_or_changed(server: RedisServer, tables: Callable[[], SharedTable]) -> None:
    table = tables()
    put(table, "a", 1, "x")
    server.stop()
    try:
        with pytest.raises(ToolError):
            rows(table)
        with pytest.raises(ToolError):
            put(table, "a", 1, "y")
    finally:
        server.start()
    assert rows(table) == []


def test_a_redis_that_was_set_back_is_what_counts_and_its_loss_is_settled_once(
    server: RedisServer, tables: Callable[[], SharedTable]
) -> None:
    first = tables()
    put(first, "open", 1, "granted")
    server.ask("SAVE")
    put(first, "open", 2, "lost")
    assert rows(first) == [("open", 1, "granted"), ("open", 2, "lost")]
    server.set_back()
    settling = [
        SharedTable(shared_state(server, "test").connection, "notes", SCHEMA, ENCRYPTED, [SETTLING]) for _ in range(3)
    ]

    for table in settling:
        assert rows(table) == [("open", 1, "granted?")]
    put(settling[0], "open", 3, "new")
    assert rows(first) == rows(settling[2]) == [("open", 1, "granted?"), ("open", 3, "new")]


def test_a_change_of_a_redis_that_was_set_back_meanwhile_is_made_again(
    server: RedisServer, tables: Callable[[], SharedTable]
) -> None:
    """The version is the one that the copy has, and still others may have changed it before."""
    one = tables()
    put(one, "a", 1, "x")
    server.ask("SAVE")
    seen: list[int] = []

    def work(copy: Any) -> None:
        if not seen:
            server.set_back()
        seen.append(1)
        copy.execute("UPDATE notes SET text = 'y'")

    one.write_here(work)

    assert rows(tables()) == [("a", 1, "y")]
    assert len(seen) == 2


@pytest.mark.parametrize("row", ["junk", "[]", "7", '{"a": "a"}', '{"a": {}, "b": 1}'])
def test_what_is_no_row_is_left_out(server: RedisServer, tables: Callable[[], SharedTable], row: str) -> None:
    put(tables(), "a", 1, "x")
    put(tables(), "a", 2, "y")
    sealed = ENCRYPTED.sealed('notes:["a",1]', row)
    server.ask("HSET", ROWS, '["a",1]', sealed, "junk", sealed)

    assert rows(tables()) == [("a", 2, "y")]


def test_who_can_write_in_redis_but_has_no_key_cannot_make_a_row(
    server: RedisServer, tables: Callable[[], SharedTable]
) -> None:
    put(tables(), "a", 1, "secret")
    real = server.ask("HGET", ROWS, '["a",1]').strip()
    plain = '{"a": "b", "b": 1, "text": "granted"}'
    foreign = EncryptedText(["f" * 40]).sealed('notes:["b",2]', '{"a": "b", "b": 2, "text": "granted"}')

    server.ask("HSET", ROWS, '["b",1]', plain, '["b",2]', foreign, '["b",3]', real)

    assert real
    assert "secret" not in real
    assert rows(tables()) == [("a", 1, "secret")]


def test_a_server_with_a_new_key_reads_what_the_previous_one_sealed(
    tables: Callable[[], SharedTable], server: RedisServer
) -> None:
    put(tables(), "a", 1, "x")
    both, new = EncryptedText(["n" * 40, "k" * 40]), EncryptedText(["n" * 40])
    connection = shared_state(server, "test").connection
    renewed, other = (SharedTable(connection, "notes", SCHEMA, one) for one in (both, new))

    assert rows(renewed) == [("a", 1, "x")]
    put(renewed, "a", 2, "y")
    assert rows(other) == [("a", 2, "y")]
    for table in (renewed, other):
        table.close()
    connection.close_here()


def test_many_calls_that_wait_look_at_one_mark(server: RedisServer, tables: Callable[[], SharedTable]) -> None:
    table = tables()
    put(table, "a", 1, "x")
    first = table.mark()
    asked = server.commands()

    assert {table.mark() for _ in range(50)} == {first}
    assert server.commands() - asked < 50
