"""On stdio, stdout carries JSON-RPC and nothing else, whatever comes in."""

from __future__ import annotations

import json
from collections.abc import Generator
from dataclasses import replace

import pytest

from tests.e2e.goat import Launch
from tests.e2e.wire import Wire

pytestmark = [pytest.mark.real_processes, pytest.mark.e2e]

FRAME_BYTES = 1024 * 1024


@pytest.fixture
def wire(launch: Launch) -> Generator[Wire]:
    small = replace(launch, options=("--set", f"limits.frame_bytes={FRAME_BYTES}"))
    with Wire(small.command, small.environment, small.workspace, small.folder / "stderr") as wire:
        wire.handshake()
        yield wire
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in wire.lines)


def test_a_line_of_garbage_is_answered_as_a_parse_error(wire: Wire) -> None:
    wire.send_bytes(b"this is not JSON\n\xff\xfe\x00\n\n")

    refusals = [wire.next_message(), wire.next_message()]

    assert [refusal["error"]["code"] for refusal in refusals] == [-32700, -32700]
    assert [refusal.get("id") for refusal in refusals] == [None, None]
    assert wire.request("ping")["result"] == {}


def test_json_that_is_no_message_is_refused(wire: Wire) -> None:
    batch = b'[{"jsonrpc": "2.0", "id": 7, "method": "ping"}]'  # retired from the protocol in 2025
    wire.send_bytes(b'{"hello": 1}\n"text"\n' + batch + b"\n")

    assert [wire.next_message()["error"]["code"] for _ in range(3)] == [-32600, -32600, -32600]
    assert wire.request("ping")["result"] == {}


def test_a_line_that_never_seems_to_end_is_dropped_and_does_not_fill_memory(wire: Wire) -> None:
    before_kb = resident_kb(wire)
    chunk = b"x" * FRAME_BYTES
    for _ in range(70):
        wire.send_bytes(chunk)
    after_kb = resident_kb(wire)
    wire.send_bytes(b"\n")

    refusal = wire.next_message()

    assert refusal["error"]["code"] == -32600
    assert str(FRAME_BYTES) in refusal["error"]["message"]
    assert after_kb - before_kb < 16 * 1024
    assert wire.request("ping")["result"] == {}


def test_many_requests_at_once_are_each_answered_once(wire: Wire) -> None:
    ids = list(range(1000, 1300))
    wire.send_bytes(b"".join(json.dumps({"jsonrpc": "2.0", "id": id, "method": "ping"}).encode() + b"\n" for id in ids))

    answers = [wire.next_message() for _ in ids]

    assert sorted(answer["id"] for answer in answers) == ids
    assert all(answer["result"] == {} for answer in answers)


def test_a_frame_in_two_pieces_is_one_frame(wire: Wire) -> None:
    wire.send_bytes(b'{"jsonrpc": "2.0", "id": "a-1", ')
    wire.send_bytes(b'"method": "ping"}\r\n')

    assert wire.answer("a-1")["result"] == {}


def test_pr_23_what_a_command_prints_does_not_reach_the_wire(wire: Wire) -> None:
    printed = wire.text("Bash", {"command": 'echo "to stdout"; echo "to stderr" >&2; echo to-fd1 > /dev/fd/1; cat'})

    assert printed.splitlines() == ["to stdout", "to stderr", "to-fd1"]


def test_text_with_every_kind_of_character_comes_back(wire: Wire) -> None:
    odd = "tab\there, \u2028 line separator, \U0001f410, \u0000".replace("\u0000", "")

    assert wire.text("Bash", {"command": f"printf %s '{odd}'"}) == odd


def resident_kb(wire: Wire) -> int:
    from pathlib import Path

    status = Path(f"/proc/{wire.process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])
