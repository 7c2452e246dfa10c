"""A server with skills that does as a file says, read anew for each request: `python skilled.py STATE LOG [legacy]`.

STATE is JSON: `capability` (of the extension; null for none), `entries`, `unlisted`, `files` by URI, `directories` by
URI, `size` of a page. LOG gets a line for each request: its method and URI. Standard library only.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

STATE, LOG = Path(sys.argv[1]), Path(sys.argv[2])
IS_MODERN = "legacy" not in sys.argv
EXTENSION = "io.modelcontextprotocol/skills"
FRESH = {"ttlMs": 60_000, "cacheScope": "private"}


class Refused(Exception):
    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def capabilities(state: Any) -> dict[str, Any]:
    declared = state.get("capability", {"directoryRead": True})
    return {"tools": {}, "resources": {}, **({} if declared is None else {"extensions": {EXTENSION: declared}})}


def answer(method: str, params: Any) -> Any:
    state = json.loads(STATE.read_text())
    uri = params.get("uri", "")
    with LOG.open("a") as log:
        log.write(f"{method} {uri}".strip() + "\n")
    info = {"serverInfo": {"name": "skilled", "version": "1"}, "capabilities": capabilities(state)}
    match method:
        case "server/discover" if IS_MODERN:
            return {**FRESH, "supportedVersions": ["2026-07-28"], **info}
        case "initialize":
            return {"protocolVersion": "2025-11-25", **info}
        case "tools/list":
            return {**FRESH, "tools": [{"name": "ping", "inputSchema": {"type": "object"}}]}
        case "resources/list":
            return {**FRESH, "resources": [{"uri": one, "name": one} for one in state.get("resources", [])]}
        case "resources/templates/list":
            return {**FRESH, "resourceTemplates": []}
        case "skills/list":
            start, size = int(params.get("cursor", "0")), state.get("size", 100)
            more = {"nextCursor": str(start + size)} if start + size < len(state["entries"]) else {}
            ttl = {"ttlMs": state.get("ttl", 0), "cacheScope": "private"}
            return {**ttl, "skills": state["entries"][start : start + size], **more}
        case "skills/get":
            for entry in [*state["entries"], *state.get("unlisted", [])]:
                if entry["uri"] == uri:
                    return {**FRESH, "skill": entry}
            raise Refused(-32602, "no such skill")
        case "resources/directory/read" if uri in state.get("directories", {}):
            return {"resources": state["directories"][uri]}
        case "resources/read" if uri in state["files"]:
            content = {"uri": uri, "mimeType": "text/markdown", "text": state["files"][uri]}
            return {**FRESH, "contents": state.get("contents", {}).get(uri, [content])}
        case "resources/read" | "resources/directory/read":
            raise Refused(-32602, "not there")
        case _:
            raise Refused(-32601, "Method not found")


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message or "method" not in message:
            continue
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        try:
            result = answer(message["method"], message.get("params") or {})
            reply["result"] = {"resultType": "complete", **result} if IS_MODERN else result
        except Refused as refused:
            reply["error"] = {"code": refused.code, "message": str(refused)}
        print(json.dumps(reply), flush=True)


if __name__ == "__main__":
    main()
