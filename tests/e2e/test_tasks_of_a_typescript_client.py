"""Tasks end to end with a client that others wrote: the TypeScript SDK with its package for SEP-2663. # ERA-7"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.task_targets import TASK_TARGETS
from tests.e2e.node_side import FOLDER, Node

pytestmark = [pytest.mark.e2e, pytest.mark.matrix]
CALLS: list[dict[str, Any]] = [
    {"name": "greet", "arguments": {"name": "Alice"}},
    {"name": "slow_compute", "arguments": {"seconds": 1, "label": "it"}},
    {"name": "confirm_delete", "arguments": {"filename": "a.txt"}},
    {"name": "multi_input", "arguments": {}},
    {"name": "test_tool_with_task", "arguments": {}},
    {"name": "failing_job", "arguments": {}},
    {"name": "protocol_error_job", "arguments": {}},
]
TEXTS = ("Hello, Alice!", "computed it", "deleted a.txt", "both were answered", "Hello, Alice!", "the job failed")


@pytest.mark.parametrize("target", ["tasks of goat-mcp", "HTTP upstream", "stdio upstream"])
def test_a_typescript_client_runs_tasks_through_us(node: Node, target: str, tmp_path: Path) -> None:
    with TASK_TARGETS[target](tmp_path) as url:
        job = json.dumps({"url": url, "calls": CALLS})
        said = json.loads(node.run_script(FOLDER / "client_tasks.mjs", job))

    *answered, broke = said["outcomes"]
    assert [one["kind"] for one in said["outcomes"]] == ["immediate", *["task"] * 6]
    assert [one["status"] for one in answered] == ["completed"] * 6
    assert tuple(one["result"]["content"][0]["text"] for one in answered) == TEXTS
    assert answered[-1]["result"]["isError"] is True
    assert (broke["status"], broke["failed"]["code"]) == ("failed", -32603)
    deliveries = [one["delivery"] for one in said["asked"]]
    assert deliveries == ["task-update"] * 3 + ["request-retry"]
