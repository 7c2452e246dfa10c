"""Bad input gets an error that names the value and the next step, and the call after it works."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.faulty_messages import FAULTY
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire, text_of

pytestmark = pytest.mark.e2e

READ_TEXT = "1\t# Notes\n2\t\n3\tThe goat eats at noon."


@pytest.fixture(scope="module")
def shared_wire(shared_launch: Launch) -> Generator[Wire]:
    with Wire(shared_launch.command, shared_launch.environment, shared_launch.workspace) as wire:
        wire.handshake()
        yield wire


@dataclass(frozen=True)
class Refused:
    """A call, the code of its error, and what the error's text must hold; `@` stands for the workspace."""

    tool: str
    arguments: dict[str, Any]
    code: str
    says: tuple[str, ...]


CASES = {
    "unknown field": Refused("Read", {"file_path": "@/notes.md", "limt": 5}, "E_INPUT", ("limt", "limit")),
    "wrong type": Refused("Read", {"file_path": "@/notes.md", "limit": "many"}, "E_INPUT", ("limit", "many")),
    "missing field": Refused("Grep", {}, "E_INPUT", ("pattern",)),
    "two problems at once": Refused("Grep", {"patern": "x", "head_limit": []}, "E_INPUT", ("patern", "head_limit")),
    "relative path": Refused("Read", {"file_path": "notes.md"}, "E_PATH_RELATIVE", ("notes.md", "@/notes.md")),
    "path outside": Refused("Read", {"file_path": "/etc/passwd"}, "E_PATH_OUTSIDE", ("/etc/passwd", "@")),
    "path that climbs out": Refused("Write", {"file_path": "@/../x", "content": ""}, "E_PATH_OUTSIDE", ("x",)),
    "missing file": Refused("Read", {"file_path": "@/note.md"}, "E_NOT_FOUND", ("@/note.md", "@/notes.md")),
    "directory": Refused("Read", {"file_path": "@/src"}, "E_DIRECTORY", ("@/src", "Glob")),
    "broken pattern": Refused("Grep", {"pattern": "("}, "E_PATTERN", ("(",)),
    "no match": Refused(
        "Edit", {"file_path": "@/notes.md", "old_string": "zebra", "new_string": "x"}, "E_NO_MATCH", ("@/notes.md",)
    ),
    "failing command": Refused("Bash", {"command": "echo why; exit 7"}, "E_EXIT", ("why", "Exit code 7")),
    "unknown task": Refused("TaskOutput", {"task_id": "b0gus"}, "E_TASK_UNKNOWN", ("b0gus",)),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_the_error_names_the_value_and_the_next_call_works(
    shared_wire: Wire, shared_launch: Launch, case: Refused
) -> None:
    workspace = str(shared_launch.workspace)
    arguments = {
        name: value.replace("@", workspace) if isinstance(value, str) else value
        for name, value in case.arguments.items()
    }
    before = shared_wire.text("Read", {"file_path": f"{workspace}/notes.md"})

    result = shared_wire.call(case.tool, arguments)

    assert result["isError"] is True
    text = text_of(result)
    assert [said for said in case.says if said.replace("@", workspace) not in text] == [], text
    error = (result.get("structuredContent") or result["_meta"]["goat-mcp/facts"])["error"]
    assert error["code"] == case.code
    assert error["message"]
    assert error["helpUrl"] == f"goat://errors/{case.code}"
    assert "Traceback" not in text
    assert before == shared_wire.text("Read", {"file_path": f"{workspace}/notes.md"}) == READ_TEXT


def test_an_unknown_tool_is_a_protocol_error_with_near_names(shared_wire: Wire) -> None:
    answer = shared_wire.request("tools/call", {"name": "Raed", "arguments": {}})

    assert answer["error"]["code"] == -32602
    assert "tool not found: Raed" in answer["error"]["message"]
    assert "Read" in answer["error"]["message"]
    assert shared_wire.text("Bash", {"command": "echo still here"}) == "still here"


def test_an_unknown_method_is_a_protocol_error(shared_wire: Wire) -> None:
    answer = shared_wire.request("tools/destroy")

    assert answer["error"]["code"] == -32601
    assert shared_wire.text("Bash", {"command": "echo still here"}) == "still here"


def test_a_file_nobody_read_is_not_overwritten(shared_wire: Wire, shared_launch: Launch) -> None:
    fresh = shared_launch.workspace / "unread.txt"
    fresh.write_text("precious\n")

    result = shared_wire.call("Write", {"file_path": str(fresh), "content": "gone\n"})

    assert result["isError"] is True
    assert "[E_NOT_READ]" in text_of(result)
    assert fresh.read_text() == "precious\n"


@FAULTY
def test_a_line_that_is_not_sound_json_is_answered_and_the_next_one_works(
    shared_wire: Wire, line: bytes, code: int, request_id: str | None
) -> None:
    shared_wire.send_bytes(line + b"\n")

    assert shared_wire.answer(request_id)["error"]["code"] == code
    assert shared_wire.text("Bash", {"command": "echo still here"}) == "still here"
