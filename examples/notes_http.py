"""An example MCP server over streamable HTTP: three made-up notes, and those a client adds.

Notes live in memory and are gone when the server ends. It listens on this machine only.
Start it with `python examples/notes_http.py --port 8731`; it prints its URL on stderr once it listens.
"""

from __future__ import annotations

import argparse
import socket
import sys
from typing import Annotated

import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

HOST = "127.0.0.1"
DEFAULT_PORT = 8731
READS_ONLY = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
ADDS = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)


class Note(BaseModel):
    """One note. Ids count up from 1."""

    id: int
    title: str
    text: str


class Notes(BaseModel):
    """Some notes, oldest first."""

    notes: list[Note]


# Example data, made up.
notes = [
    Note(id=1, title="Shopping", text="Oats, two lemons, a goat bell."),
    Note(id=2, title="Release", text="Read the change log aloud once before publishing."),
    Note(id=3, title="Garden", text="The lemon tree wants water on Mondays."),
]
server = MCPServer("example-notes", version="1.0.0", log_level="ERROR")


@server.tool(title="Search notes", annotations=READS_ONLY)
def search_notes(words: Annotated[str, Field(description="Text to look for; empty lists every note")] = "") -> Notes:
    """Find notes whose title or text holds the given words, ignoring case."""
    wanted = words.casefold()
    return Notes(notes=[note for note in notes if wanted in f"{note.title}\n{note.text}".casefold()])


@server.tool(title="Read note", annotations=READS_ONLY)
def read_note(id: int) -> Note:
    """One note, whole."""
    for note in notes:
        if note.id == id:
            return note
    raise ToolError(f"there is no note {id}; ids go from 1 to {len(notes)}")


@server.tool(title="Add note", annotations=ADDS)
def add_note(title: str, text: str) -> Note:
    """Keep a new note until the server ends."""
    note = Note(id=len(notes) + 1, title=title, text=text)
    notes.append(note)
    return note


def main() -> None:
    """Listen, say where, serve until interrupted."""
    parser = argparse.ArgumentParser(description="Serve made-up notes as MCP tools over HTTP, on this machine only.")
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help=f"0 takes a free one (default: {DEFAULT_PORT})")
    port: int = parser.parse_args().port
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as problem:
        parser.exit(1, f"cannot listen on {HOST}:{port}: {problem.strerror}\n")
    listener.listen()
    print(f"http://{HOST}:{listener.getsockname()[1]}/mcp", file=sys.stderr, flush=True)  # noqa: T201  # its users wait for it
    config = uvicorn.Config(server.streamable_http_app(host=HOST), log_level="error", timeout_graceful_shutdown=1)
    uvicorn.Server(config).run(sockets=[listener])


if __name__ == "__main__":
    main()
