"""What agent command lines print, and what is understood of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from goat_mcp.agents.command_report import CommandReport, ReportReader

RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "All done.",
    "session_id": "s-1",
    "num_turns": 3,
    "usage": {
        "input_tokens": 10,
        "cache_creation_input_tokens": 200,
        "cache_read_input_tokens": 3000,
        "output_tokens": 40,
    },
}
DONE = CommandReport("All done.", "s-1", 3, 3210, 40)


def said(*blocks: dict[str, Any], id: str, parent: str | None = None) -> dict[str, Any]:
    message = {"id": id, "role": "assistant", "content": list(blocks)}
    return {"type": "assistant", "message": message, "parent_tool_use_id": parent, "session_id": "s-1"}


STREAM = [
    {"type": "system", "subtype": "init", "session_id": "s-1", "tools": ["Read"]},
    said({"type": "text", "text": "I look."}, id="m1"),
    said({"type": "tool_use", "id": "t1", "name": "Read", "input": {"file_path": "/a.py"}}, id="m1"),
    said({"type": "text", "text": "from within"}, id="m9", parent="t7"),
    {"type": "user", "message": {"content": [{"type": "tool_result", "content": "x"}]}},
    said({"type": "text", "text": "Nearly."}, id="m2"),
]


def read(data: bytes, piece_bytes: int = 10_000_000) -> tuple[CommandReport, list[tuple[int, str]]]:
    events: list[tuple[int, str]] = []
    reader = ReportReader(lambda turn, what: events.append((turn, what)))
    for start in range(0, len(data), piece_bytes):
        reader.feed(data[start : start + piece_bytes])
    return reader.end(), events


def lines(*events: Any) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


@pytest.mark.parametrize(
    "data",
    [
        lines(RESULT),
        json.dumps(RESULT).encode(),
        json.dumps(RESULT, indent=2).encode(),
        json.dumps([*STREAM, RESULT]).encode(),
        lines(*STREAM, RESULT),
        b"a word of warning first\n" + lines(*STREAM, RESULT),
    ],
    ids=["one line", "no line end", "indented", "a list", "a stream", "a stream after text"],
)
def test_the_result_in_every_shape_it_has(data: bytes) -> None:
    assert read(data)[0] == DONE


@pytest.mark.parametrize("piece_bytes", [1, 7, 4096])
def test_a_stream_is_understood_as_it_comes(piece_bytes: int) -> None:
    report, events = read(lines(*STREAM, RESULT), piece_bytes)

    assert report == DONE
    assert events == [(1, "thinking"), (1, "Read /a.py"), (2, "thinking")]


def test_a_stream_that_ends_in_the_middle_says_how_far_it_was() -> None:
    assert read(lines(*STREAM))[0] == CommandReport("Nearly.", "s-1", 2, is_whole=False)


def test_text_is_taken_as_it_is() -> None:
    assert read("Ärger:\n  two\n\n{not json\n".encode())[0] == CommandReport("Ärger:\n  two\n\n{not json", turns=1)
    assert read(b"")[0] == CommandReport()


def test_a_json_document_that_is_no_result_is_text() -> None:
    assert read(b'{"findings": [1, 2]}')[0] == CommandReport('{"findings": [1, 2]}', turns=1)


def test_an_answer_by_another_name_is_one() -> None:
    assert read(b'{\n"response": "Hi", "session_id": "g"\n}')[0] == CommandReport("Hi", "g", 1)


@pytest.mark.parametrize(
    ("result", "failure"),
    [
        ({"is_error": True, "result": "Invalid API key"}, "Invalid API key"),
        ({"subtype": "error_during_execution", "errors": ["it broke", {"a": 1}]}, 'it broke; {"a": 1}'),
        ({"subtype": "error_max_budget_usd"}, "error_max_budget_usd"),
        ({"is_error": True}, "it does not say why"),
    ],
)
def test_a_failure_is_told_in_the_programs_words(result: dict[str, Any], failure: str) -> None:
    assert read(lines(*STREAM, {"type": "result", **result}))[0].failure == failure


def test_turns_that_ran_out_are_no_failure() -> None:
    report = read(lines(*STREAM, {"type": "result", "subtype": "error_max_turns", "is_error": True, "num_turns": 2}))[0]

    assert (report.out_of_turns, report.failure, report.text, report.turns) == (True, "", "Nearly.", 2)


@pytest.mark.parametrize(
    "event",
    [
        {"type": "assistant"},
        {"type": "assistant", "message": 1},
        {"type": "assistant", "message": {"content": ["x", {"type": "tool_use"}]}},
        {"type": "result", "result": 7, "usage": [], "num_turns": -1, "session_id": 3},
    ],
)
def test_odd_events_break_nothing(event: dict[str, Any]) -> None:
    assert read(lines(event, RESULT))[0].text == "All done."


def test_a_line_without_end_is_let_go() -> None:
    report, _ = read(b'{"type": "user", "x": "' + b"y" * (40 * 1024 * 1024) + b'"}\n' + lines(RESULT), 1024 * 1024)

    assert report == DONE


def test_text_is_kept_within_bounds() -> None:
    assert len(read(b"line of text\n" * 200_000, 65536)[0].text) <= 1_000_000
