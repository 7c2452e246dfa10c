"""Frames that someone wrote by hand, to break the reader or to get past a check (R-SCHEMA-1, 2 and 5)."""

from __future__ import annotations

import json
from collections.abc import Generator
from typing import Any

import pytest

from tests.e2e.goat import HttpGoat, Launch
from tests.e2e.test_http_guard import GOOD, PING, send
from tests.e2e.test_stdout import resident_kb
from tests.e2e.wire import Wire, text_of
from tests.repetitions import times

pytestmark = pytest.mark.e2e

MANY_CANCELS = times(20_000, in_full_run=100_000)
EXTRA = "x" * 100_000


@pytest.fixture(scope="module")
def wire(shared_launch: Launch) -> Generator[Wire]:
    with Wire(shared_launch.command, shared_launch.environment, shared_launch.workspace) as wire:
        wire.handshake()
        yield wire
        assert all(json.loads(line)["jsonrpc"] == "2.0" for line in wire.lines)


def read(limit: str) -> bytes:
    """A call of Read whose `limit` is spliced in as it is."""
    arguments = b'{"file_path":"@notes.md","limit":' + limit.encode() + b"}"
    return b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"Read","arguments":' + arguments + b"}}"


REFUSED_FRAMES = {
    "PR-01": (b"{not json", -32700, None),
    "PR-02": (b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', -32600, 1),
    "PR-04": (b'{"jsonrpc":"2.0","id":1,"method":"no/such"}', -32601, 1),
    "PR-07": (b"[" * 200_000, -32600, None),
    "PR-07-in-arguments": (read("[" * 5_000 + "]" * 5_000), -32600, 1),
    "PR-10": (read("NaN"), -32700, 1),
    "PR-10-infinite": (read("-Infinity"), -32700, 1),
    "PR-10-too-much": (read("1e999"), -32700, 1),
    "PR-11": (b'{"jsonrpc":"2.0","id":' + b"9" * 5_000 + b',"method":"ping"}', -32600, None),
    "PR-11-in-arguments": (read("9" * 5_000), -32600, 1),
    "PR-13": (b"[]", -32600, None),
    "one-name-twice": (read('3,"file_path":"/etc/passwd"'), -32600, 1),
    "half-a-surrogate-pair": (read('"\\ud800"'), -32600, 1),
    "method-in-capitals": (b'{"jsonrpc":"2.0","id":1,"METHOD":"ping"}', -32600, 1),
}


@pytest.mark.parametrize("case", REFUSED_FRAMES)
def test_a_hostile_frame_is_refused_in_few_words_and_the_next_one_is_answered(wire: Wire, case: str) -> None:
    frame, code, request_id = REFUSED_FRAMES[case]

    wire.send_bytes(frame + b"\n")
    refusal = wire.next_message()

    assert (refusal["error"]["code"], refusal.get("id")) == (code, request_id)
    assert len(json.dumps(refusal)) < 1_000
    assert "Traceback" not in json.dumps(refusal)
    assert wire.request("ping")["result"] == {}


def test_pr_20_fields_we_do_not_know_are_refused_in_at_most_a_kilobyte(wire: Wire) -> None:
    result = wire.call("Read", {"file_path": "@notes.md", "__proto__": {"x": 1}, "extra": EXTRA})

    assert result["isError"] is True
    assert "__proto__: unknown field" in text_of(result) and "extra: unknown field" in text_of(result)
    assert len(text_of(result)) <= 1_024


def test_the_case_of_a_field_counts(wire: Wire) -> None:
    """CVE-2026-27896: a policy that reads `file_path` must not meet a tool that reads `FILE_PATH`."""
    result = wire.call("Read", {"FILE_PATH": "@notes.md"})

    assert "FILE_PATH: unknown field" in text_of(result)


def test_pr_12_a_second_request_under_the_same_id_is_refused_and_the_first_answered(wire: Wire) -> None:
    def bash(command: str) -> dict[str, Any]:
        call = {"name": "Bash", "arguments": {"command": command}}
        return {"jsonrpc": "2.0", "id": 4711, "method": "tools/call", "params": call}

    wire.send(bash("sleep 1; echo first"))
    wire.send(bash("echo second > ran; echo second"))
    refused, answered = wire.next_message(), wire.next_message()
    wire.send({"jsonrpc": "2.0", "id": 4711, "method": "ping"})

    assert (refused["id"], refused["error"]["code"]) == (4711, -32600)
    assert (answered["id"], text_of(answered["result"]).strip()) == (4711, "first")
    assert wire.next_message()["result"] == {}
    assert wire.text("Glob", {"pattern": "ran"}) == "No files found"


def test_pr_15_a_revision_nobody_knows_is_answered_with_one_we_speak(shared_launch: Launch) -> None:
    with Wire(shared_launch.command, shared_launch.environment, shared_launch.workspace) as wire:
        client = {"name": "e2e-old", "version": "1"}
        hello: dict[str, Any] = {"protocolVersion": "1999-01-01", "capabilities": {}, "clientInfo": client}
        answer = wire.request("initialize", hello)

    assert answer["result"]["protocolVersion"] == "2025-11-25"


def test_pr_16_over_http_a_revision_nobody_knows_is_refused_with_those_we_speak(shared_http: HttpGoat) -> None:
    meta = {**PING["params"]["_meta"], "io.modelcontextprotocol/protocolVersion": "2099-01-01"}
    body = json.dumps({**PING, "params": {"_meta": meta}}).encode()

    status, answer = send(shared_http, {"MCP-Protocol-Version": "2099-01-01"}, body=body)

    assert (status, json.loads(answer)["error"]["code"]) == (400, -32022)
    assert "2026-07-28" in json.loads(answer)["error"]["data"]["supported"]


@pytest.mark.parametrize(
    "body",
    [b"{not json", b"[" * 200_000, b"[]", b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', b'"\xff"'],
    ids=["PR-01", "PR-07", "PR-13", "PR-02", "no-utf-8"],
)
@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_over_http_a_hostile_body_is_a_bad_request(shared_http: HttpGoat, revision: str, body: bytes) -> None:
    status, answer = send(shared_http, {"MCP-Protocol-Version": revision}, body=body)

    assert status == 400
    assert "Traceback" not in answer and len(answer) < 4_000
    assert send(shared_http, GOOD)[0] == 200


def test_pr_22_a_flood_of_cancels_of_nothing_leaves_memory_and_answers_as_they_were(wire: Wire) -> None:
    before_kb = resident_kb(wire)
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'

    wire.send_bytes(b"".join(cancel % (1_000_000 + number) for number in range(MANY_CANCELS)))
    answer = wire.request("ping", timeout_s=60)

    assert answer["result"] == {}
    assert resident_kb(wire) - before_kb < 32 * 1024
