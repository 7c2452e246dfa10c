"""Approves the approvals that it is given, once a line comes on stdin, and prints what became of each."""

from __future__ import annotations

import json
import sys

import anyio

from goat_mcp.calls.approvals.record import DecidedBefore
from goat_mcp.gateway.approvals.user_queue import approval_queue
from goat_mcp.state.directory import StateDirectory


async def main() -> None:
    queue = approval_queue(StateDirectory.default())
    outcomes: dict[str, str] = {}
    sys.stdin.readline()
    for id in sys.argv[1:]:
        try:
            await queue.approve(id, by="terminal")
            outcomes[id] = "approved"
        except DecidedBefore:
            outcomes[id] = "before"
    print(json.dumps(outcomes))


if __name__ == "__main__":
    anyio.run(main)
