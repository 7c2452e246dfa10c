"""A store of documents in folders."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from bench.tasks.worlds.world import ToolWords, World, long_text

_TEXTS = {
    "handbook/travel.txt": "Trips over 500 euros need the approval of dee. Trains before planes.",
    "handbook/security.txt": "Report a lost laptop to security@example.org within an hour.",
    "handbook/leave.txt": "Ask for leave two weeks before. The contact is ana.",
    "minutes/2026-02-02.txt": "Decided: the release is on 5 March. ACTION cem: write the notes.",
    "minutes/2026-02-09.txt": "Decided: no new features. ACTION bo: fix the export. ACTION ana: call the customer.",
    "minutes/2026-02-16.txt": "Decided: a training in March. ACTION dee: book a room.",
    "drafts/launch.txt": "DRAFT The new version is faster.",
    "drafts/prices.txt": "DRAFT The price stays.",
    "archive/old.txt": "Nothing here.",
}
_LARGE_CHARS = 48_000


class Documents(World):
    """A store of documents in folders."""

    name = "documents"
    words = (
        ToolWords("list_documents", ("which documents are in a folder", "list documents")),
        ToolWords("read_document", ("read the text of a document", "read document")),
        ToolWords("write_document", ("write a document", "write document text")),
        ToolWords("move_document", ("move or rename a document", "move document")),
    )

    def __init__(self) -> None:
        self._documents: dict[str, str] = {}
        self.reset(False)

    @property
    def tools(self) -> Sequence[Callable[..., Any]]:
        return (self.list_documents, self.read_document, self.write_document, self.move_document)

    @property
    def state(self) -> Mapping[str, Any]:
        return {"documents": self._documents}

    def reset(self, is_large: bool) -> None:
        self._documents.clear()
        for index, (path, text) in enumerate(_TEXTS.items()):
            tail = "\n" + long_text(index, _LARGE_CHARS) if is_large else ""
            self._documents[path] = text + tail

    def list_documents(
        self,
        folder: Annotated[str, Field(description="Folder, as handbook; empty for all.")] = "",
    ) -> dict[str, Any]:
        """List the documents of a folder of the document store: path and size in characters."""
        paths = sorted(path for path in self._documents if path.startswith(f"{folder}/" if folder else ""))
        return {"documents": [{"path": path, "chars": len(self._documents[path])} for path in paths]}

    def read_document(self, path: Annotated[str, Field(description="Path, as handbook/travel.txt.")]) -> dict[str, Any]:
        """Read the whole text of one document of the document store."""
        return {"path": path, "text": self._known(path)}

    def write_document(
        self,
        path: Annotated[str, Field(description="Path, as drafts/launch.txt.", min_length=1)],
        text: Annotated[str, Field(description="The whole new text.")],
    ) -> dict[str, Any]:
        """Write a document of the document store; one that exists is replaced."""
        self._documents[path] = text
        return {"path": path, "chars": len(text)}

    def move_document(
        self,
        path: Annotated[str, Field(description="Path of the document.")],
        to: Annotated[str, Field(description="Its new path.", min_length=1)],
    ) -> dict[str, Any]:
        """Move a document of the document store to another path, or rename it."""
        text = self._known(path)
        if to in self._documents:
            raise ToolError(f"{to} exists")
        self._documents[to] = text
        del self._documents[path]
        return {"path": to}

    def _known(self, path: str) -> str:
        if path not in self._documents:
            raise ToolError(f"there is no document {path}")
        return self._documents[path]
