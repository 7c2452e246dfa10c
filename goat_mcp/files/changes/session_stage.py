"""Which staged change a session goes on from, by file. The changes themselves lie in the queue, for every process."""

from __future__ import annotations

import hashlib
from pathlib import Path

from goat_mcp.core.errors import ErrorCode, ToolError
from goat_mcp.files.changes.change import Author, Content
from goat_mcp.files.changes.review import Review
from goat_mcp.files.changes.staged import StagedChange


class SessionStage:
    """What the sessions of this process have staged and nobody has decided about yet."""

    def __init__(self, review: Review) -> None:
        self.review = review
        self._ids: dict[tuple[str, Path], str] = {}

    def of(self, session: str) -> list[StagedChange]:
        """All of a session that nobody has decided about yet."""
        # A copy: other threads stage, too.
        paths = [path for owner, path in list(self._ids) if owner == session]
        return [staged for path in paths if (staged := self.find(session, path)) is not None]

    def has(self, session: str) -> bool:
        return any(owner == session for owner, _ in list(self._ids))

    def find(self, session: str, path: Path) -> StagedChange | None:
        id = self._ids.get((session, path))
        found = None if id is None else self.review.queue.find(id)
        if id is not None and found is None:
            self._ids.pop((session, path), None)
        return found

    def stage(
        self, author: Author, path: Path, former: StagedChange | None, base: Content | None, data: bytes | None
    ) -> StagedChange | None:
        """The change that waits now, in the place of `former`; None where the file would be what it is on disk. With no
        `data` the file is to go.

        Raises `ToolError(IO)`.
        """
        after = None if data is None else hashlib.sha256(data).hexdigest()
        is_back = after == (None if base is None else base.sha256)
        queue, key = self.review.queue, (author.session, path)
        try:
            staged = None if is_back else queue.add(author, path, base, data)
            if former is not None:
                queue.remove(former.id)
        except OSError as problem:
            raise ToolError(
                ErrorCode.IO,
                f"the change of {path} could not be staged: {(problem.strerror or str(problem)).lower()}",
                "Nothing was written. Tell the user: the state directory needs room and must be writable.",
            ) from None
        if staged is None:
            self._ids.pop(key, None)
        else:
            self._ids[key] = staged.id
        for changed in filter(None, (staged, former)):
            self.review.announce(changed.id, changed.author.principal)
        return staged
