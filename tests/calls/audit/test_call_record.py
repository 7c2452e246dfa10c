"""The record for people: what it holds of a call, for how long, and what it costs the calls (R-AUDIT-2)."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from goat_mcp.calls.audit import AuditLog
from goat_mcp.calls.audit.call_record import DAY_S, MAX_WAITING, CallRecord, RecordOptions
from goat_mcp.calls.audit.recorded_calls import called_most, recorded_calls
from goat_mcp.calls.audit.records import CallFilter
from goat_mcp.calls.audit.shown_arguments import MAX_CHARS, TakenArguments
from goat_mcp.core.context import ToolContext
from goat_mcp.core.redaction import Redactor
from goat_mcp.state.directory import StateDirectory

SECRET = "s3cr3t-canary-4711"
Make = Callable[..., tuple[AuditLog, CallRecord]]


@pytest.fixture
def warnings() -> list[tuple[str, dict[str, Any]]]:
    return []


@pytest.fixture
def make(tmp_path: Path, warnings: list[tuple[str, dict[str, Any]]]) -> Generator[Make]:
    made: list[CallRecord] = []

    def record(options: RecordOptions | None = None) -> tuple[AuditLog, CallRecord]:
        people = CallRecord(
            StateDirectory(tmp_path / "state"),
            options or RecordOptions(),
            redactor=Redactor([SECRET]),
            warn=lambda event, **fields: warnings.append((event, fields)),
            pid=1,
        )
        made.append(people)
        return AuditLog(tmp_path / "state" / "audit.jsonl", people=people), people

    yield record
    for people in made:
        people.close()


def context(call_id: str, client: str = "cursor 1.2") -> ToolContext:
    return ToolContext(call_id=call_id, session_key="stdio", client_name=client)


def one_call(log: AuditLog, call_id: str, tool: str, arguments: dict[str, Any], error_code: str | None = None) -> None:
    ctx = context(call_id)
    log.decision(tool, arguments, ctx, decision="allow", rule="Bash(ls)", by="rule")
    log.outcome(tool, ctx, error_code=error_code, result_chars=7)


def calls(tmp_path: Path, **wanted: Any) -> list[dict[str, Any]]:
    return recorded_calls(tmp_path / "state" / "calls.db", 1000, CallFilter(**wanted))


def test_a_call_is_on_record_with_its_arguments_its_client_and_its_end(tmp_path: Path, make: Make) -> None:
    log, _ = make()

    one_call(log, "a", "mcp__files__move", {"from": "x", "to": ["y", 3]}, error_code="E_TOOL")
    log.close()

    (call,) = calls(tmp_path)
    assert call.pop("ended") >= call.pop("ts")
    assert call.pop("duration_ms") >= 0 and len(call.pop("args_sha256")) == 64
    assert call == {
        "call_id": "a",
        "pid": 1,
        "session": "stdio",
        "principal": "local",
        "client": "cursor 1.2",
        "server": "files",
        "tool": "mcp__files__move",
        "decision": "allow",
        "rule": "Bash(ls)",
        "by": "rule",
        "arguments": {"from": "x", "to": ["y", 3]},
        "args_chars": 29,
        "error_code": "E_TOOL",
        "result_chars": 7,
    }
    files = list((tmp_path / "state").glob("calls.db*"))
    assert files and {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}


def test_secrets_are_taken_out_by_value_by_name_and_by_shape(tmp_path: Path, make: Make) -> None:
    log, _ = make()

    one_call(
        log,
        "a",
        "Bash",
        {
            "command": f"curl -H 'Authorization: Bearer abcdef0123456789' https://x/?q={SECRET}",
            "env": {"API_TOKEN": "plain-word", "LANG": "C"},
            "password": 123456,
            "secrets": {"a": "nested-word"},
            "api_key": ["listed-word"],
            "headers": [{"name": "X-Api-Key", "value": "another-word"}, {"name": "Accept", "value": "text/html"}],
            "long": "x" * 4000 + SECRET * 20 + "y" * 10_000,
        },
    )
    log.close()

    stored = (tmp_path / "state" / "calls.db").read_bytes()
    (call,) = calls(tmp_path)
    for secret in (
        SECRET[:8],
        "abcdef0123456789",
        "plain-word",
        "123456,",
        "another-word",
        "nested-word",
        "listed-word",
    ):
        assert secret.encode() not in stored
    assert call["arguments"]["env"] == {"API_TOKEN": "[redacted]", "LANG": "C"}
    assert [each["value"] for each in call["arguments"]["headers"]] == ["[redacted]", "text/html"]
    assert call["arguments"]["command"].startswith("curl -H 'Authorization: Bearer [redacted]")


def test_each_argument_is_cut_to_two_kilobytes_whatever_it_is(make: Make) -> None:
    deep: Any = "x"
    for _ in range(50):
        deep = [deep]
    given = {
        "content": "word " * 1_000_000,
        "edits": [{"old_string": "a" * 5000, "new_string": "b"}] * 500,
        "deep": deep,
        "\udcff": "\udcff",
    }

    shown = TakenArguments(given).shown(Redactor())

    values = json.loads(shown)
    assert values["content"] == "word " * (MAX_CHARS // 5) + "wor... (5000000 characters)"
    assert len(shown) < 4 * (MAX_CHARS + 100)
    assert set(values) == set(given)


def test_with_hash_no_argument_is_in_the_record(tmp_path: Path, make: Make) -> None:
    log, _ = make(RecordOptions(arguments="hash"))

    one_call(log, "a", "Bash", {"command": "echo private-words"})
    log.close()

    (call,) = calls(tmp_path)
    assert "arguments" not in call and call["args_chars"] == 33
    assert b"private-words" not in (tmp_path / "state" / "calls.db").read_bytes()


def test_R_AUDIT_2_calls_of_many_threads_and_processes_are_all_there(tmp_path: Path, make: Make) -> None:
    logs = [make()[0] for _ in range(2)]
    threads = [
        threading.Thread(target=one_call, args=(logs[number % 2], f"call-{number}", "Read", {"n": number}))
        for number in range(200)
    ]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    for log in logs:
        log.close()

    assert {call["arguments"]["n"] for call in calls(tmp_path)} == set(range(200))
    assert all("ended" in call for call in calls(tmp_path))


def test_a_call_that_ends_after_its_beginning_was_written_has_its_end(tmp_path: Path, make: Make) -> None:
    log, people = make()
    ctx = context("a")

    log.decision("Bash", {}, ctx, decision="allow", rule="r")
    people.close()
    log.outcome("Bash", ctx, error_code="E_EXIT", result_chars=9)
    log.close()

    (call,) = calls(tmp_path)
    assert (call["error_code"], call["result_chars"], "ended" in call) == ("E_EXIT", 9, True)


def test_what_was_decided_last_about_a_call_counts(tmp_path: Path, make: Make) -> None:
    log, people = make()
    ctx = context("a")

    log.decision("Bash", {}, ctx, decision="allow", rule="first")
    people.close()
    log.decision("Bash", {}, ctx, decision="deny", rule="second")
    log.close()

    (call,) = calls(tmp_path)
    assert (call["decision"], call["rule"]) == ("deny", "second")


def test_many_calls_are_few_statements(tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two statements the thread and the event loop change places, which cost each call more than the rest."""
    log, people = make()
    statements: list[str] = []
    write_here = people._database.write_here  # pyright: ignore[reportPrivateUsage]  # statements are seen only here

    def counted(work: Callable[[sqlite3.Connection], None]) -> None:
        def traced(connection: sqlite3.Connection) -> None:
            connection.set_trace_callback(statements.append)
            work(connection)
            connection.set_trace_callback(None)

        write_here(traced)

    monkeypatch.setattr(people._database, "write_here", counted)  # pyright: ignore[reportPrivateUsage]  # as above
    for number in range(120):
        one_call(log, f"call-{number}", "Read", {"n": number})
    log.close()

    assert {call["arguments"]["n"] for call in calls(tmp_path)} == set(range(120))
    assert all(call["result_chars"] == 7 for call in calls(tmp_path))
    assert len(statements) < 30


def test_a_call_that_has_not_ended_is_there_without_an_end(tmp_path: Path, make: Make) -> None:
    log, _ = make()

    log.decision("Bash", {}, context("a"), decision="allow", rule="r")
    log.close()

    (call,) = calls(tmp_path)
    assert "ended" not in call and "error_code" not in call


def test_what_is_older_than_kept_is_removed_and_leaves_nothing_in_the_file(tmp_path: Path, make: Make) -> None:
    log, people = make(RecordOptions(days=30))
    one_call(log, "old", "Bash", {"command": "echo long-ago"})
    one_call(log, "new", "Bash", {"command": "echo today"})
    log.close()
    with closing(sqlite3.connect(tmp_path / "state" / "calls.db")) as connection:
        connection.execute("UPDATE calls SET at_s = ? WHERE call_id = 'old'", (time.time() - 31 * DAY_S,))
        connection.commit()

    people.expire()
    people.close()
    log.close()

    with closing(sqlite3.connect(tmp_path / "state" / "calls.db")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert [call["call_id"] for call in calls(tmp_path)] == ["new"]
    assert b"long-ago" not in (tmp_path / "state" / "calls.db").read_bytes()


def test_expiry_makes_no_file(tmp_path: Path, make: Make) -> None:
    _, people = make()

    people.expire()

    assert not (tmp_path / "state").exists()


def test_calls_go_on_while_the_record_cannot_be_written_and_the_log_says_it_once(
    tmp_path: Path, make: Make, warnings: list[tuple[str, dict[str, Any]]]
) -> None:
    log, people = make()
    blocked = tmp_path / "state" / "calls.db"
    blocked.parent.mkdir()
    blocked.mkdir()

    for number in range(3):
        one_call(log, f"lost-{number}", "Write", {"content": "x"})
        people.close()
    blocked.rmdir()
    one_call(log, "kept", "Write", {"content": "x"})
    log.close()

    assert [call["call_id"] for call in calls(tmp_path)] == ["kept"]
    assert [event for event, _ in warnings] == [
        "the record for people is not written; the chain of hashes is",
        "the record for people lacks entries",
    ]
    assert warnings[1][1]["lost"] == 6


def test_a_disk_that_hangs_costs_entries_and_no_memory_without_bound(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, people = make()
    resumed = threading.Event()

    def hang(work: Any) -> None:
        resumed.wait(20)

    monkeypatch.setattr(people._database, "write_here", hang)  # pyright: ignore[reportPrivateUsage]  # a disk that hangs
    one_call(log, "first", "Read", {})
    for number in range(MAX_WAITING):
        people.ended(context(str(number)), error_code=None, duration_ms=1.0, result_chars=1)

    assert len(people._waiting) <= MAX_WAITING  # pyright: ignore[reportPrivateUsage]  # memory is what counts
    resumed.set()


def test_it_costs_the_event_loop_less_than_a_tenth_of_a_millisecond_per_call(make: Make) -> None:
    _, people = make()
    arguments = {"file_path": "/a/b.txt", "content": "line of text\n" * 10_000, "edits": [{"a": "b"}] * 20}
    ctx, hashed = context("a"), {"args_sha256": "", "args_chars": 0}
    took_s: list[float] = []

    for _ in range(500):
        began_s = time.thread_time()
        people.decided("Write", arguments, ctx, decision="allow", rule="r", by="rule", hashed=hashed)
        people.ended(ctx, error_code=None, duration_ms=1.0, result_chars=10)
        took_s.append(time.thread_time() - began_s)

    assert sorted(took_s)[len(took_s) // 2] < 0.0001


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"server": "files"}, ["b"]),
        ({"tool": "move"}, ["b"]),
        ({"tool": "Bash"}, ["a", "c"]),
        ({"only_denied": True}, ["c"]),
        ({"client": "Visual Studio"}, ["c"]),
        ({"client": "cursor", "tool": "Bash"}, ["a"]),
        ({"call_id": "b"}, ["b"]),
    ],
    ids=str,
)
def test_calls_are_found_by_what_is_known_of_them(
    tmp_path: Path, make: Make, wanted: dict[str, Any], found: list[str]
) -> None:
    log, _ = make()
    one_call(log, "a", "Bash", {})
    one_call(log, "b", "mcp__files__move", {})
    log.decision("Bash", {}, context("c", "visual-studio-code 1"), decision="deny", rule="Bash")
    log.close()

    assert [call["call_id"] for call in calls(tmp_path, **wanted)] == found


def test_D21_tools_of_upstreams_by_how_often_they_were_called_before_a_time(make: Make, tmp_path: Path) -> None:
    log, _ = make()
    tools = ["mcp__a__x", "mcp__b__y", "Read", "mcp__b__y", "mcp__c__z", "Read", "Read"]
    for number, tool in enumerate(tools):
        one_call(log, f"{number}", tool, {})
    for number in range(3):
        log.decision("mcp__a__no", {}, context(f"no {number}"), decision="deny", rule="rule mcp__a__no", by="rule")
    log.close()
    path = tmp_path / "state" / "calls.db"

    assert called_most(path, 10, time.time() + 1) == ["mcp__b__y", "mcp__c__z", "mcp__a__x"]
    assert called_most(path, 1, time.time() + 1) == ["mcp__b__y"]
    assert called_most(path, 10, time.time() - 3600) == []
    assert called_most(tmp_path / "no such file", 10, time.time()) == []
