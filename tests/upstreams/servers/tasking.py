"""A server of 2026-07-28 with tasks, as a test wants them: `python tasking.py LOG`. Standard library only.

`work` answers with a task if the request declares the extension, and with a text otherwise; `must` refuses then. What
`tasks/get` says next is the argument `states`, a list of states; the last one stays. Each request is a line of LOG.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

LOG = Path(sys.argv[1])
EXTENSION = "io.modelcontextprotocol/tasks"
COMPLETE = {"resultType": "complete"}
LISTED = {**COMPLETE, "ttlMs": 0, "cacheScope": "private"}
TIMES = {"createdAt": "2026-01-02T03:04:05Z", "lastUpdatedAt": "2026-01-02T03:04:06Z", "ttlMs": 77_000}
TASKS: dict[str, list[dict[str, Any]]] = {}


def answer(asked: dict[str, Any], result: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)


def refuse(asked: dict[str, Any], code: int, message: str, data: Any = None) -> None:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}), flush=True)


def call(asked: dict[str, Any]) -> None:
    params = asked["params"]
    arguments = params.get("arguments", {})
    declared = params["_meta"]["io.modelcontextprotocol/clientCapabilities"].get("extensions", {})
    if EXTENSION in declared:
        task_id = arguments.get("id", f"their-{len(TASKS) + 1}")
        TASKS[task_id] = list(arguments.get("states", [{"status": "working"}]))
        first = {"taskId": task_id, "status": "working", **TIMES, "pollIntervalMs": 100}
        answer(asked, {"resultType": "task", **first, **arguments.get("first", {})})
    elif params["name"] == "must":
        refuse(asked, -32021, "needs tasks", {"requiredCapabilities": {"extensions": {EXTENSION: {}}}})
    else:
        answer(asked, {**COMPLETE, "content": [{"type": "text", "text": "at once"}]})


def of_task(asked: dict[str, Any]) -> None:
    task_id = asked["params"]["taskId"]
    states = TASKS.get(task_id)
    if states is None:
        refuse(asked, -32602, "no such task")
    elif asked["method"] == "tasks/get":
        state = states.pop(0) if len(states) > 1 else states[0]
        if state.get("status") == "dies":
            os._exit(1)
        answer(asked, {**COMPLETE, "taskId": task_id, **TIMES, **state})
    elif asked["method"] == "tasks/cancel":
        TASKS[task_id] = [{"status": "cancelled"}]
        answer(asked, dict(COMPLETE))
    else:
        answer(asked, dict(COMPLETE))


for line in sys.stdin:
    asked: dict[str, Any] = json.loads(line)
    with LOG.open("a") as log:
        log.write(json.dumps({key: asked[key] for key in ("method", "params") if key in asked}) + "\n")
    match asked.get("method"):
        case "server/discover":
            about = {"serverInfo": {"name": "tasking", "version": "1"}}
            capabilities: dict[str, Any] = {"tools": {}, "extensions": {EXTENSION: {}}}
            answer(asked, {**LISTED, **about, "supportedVersions": ["2026-07-28"], "capabilities": capabilities})
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("work", "must")]
            answer(asked, {**LISTED, "tools": tools})
        case "tools/call":
            call(asked)
        case "tasks/get" | "tasks/update" | "tasks/cancel":
            of_task(asked)
        case _ if "id" in asked:
            refuse(asked, -32601, "Method not found")
        case _:
            pass
