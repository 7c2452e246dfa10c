"""What the test server `skilled.py` is to serve: skills made of texts, and lies about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.upstreams.fleet import server


def body(name: str, description: str = "What it is for", text: str = "Do it.\n") -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n{text}"


def entry(files: Mapping[str, str], root: str, **members: Any) -> dict[str, Any]:
    """That of the skill in this folder, as an honest server makes it. `members` replace some of it."""
    name = root.rpartition("/")[2]
    listed = [
        {"uri": uri, "digest": f"sha256:{hashlib.sha256(text.encode()).hexdigest()}", "size": len(text.encode())}
        for uri, text in files.items()
        if uri.startswith(f"{root}/")
    ]
    fields = {"name": name, "description": "What it is for"}
    return {"uri": f"{root}/SKILL.md", "frontmatter": fields, "resources": listed, **members}


class Skilled:
    """One such server: an entry for `mcpServers`, and its state, which may change while it runs."""

    def __init__(self, folder: Path, name: str, files: Mapping[str, str], *roots: str, legacy: bool = False) -> None:
        self._state, self.log = folder / f"{name}.json", folder / f"{name}.log"
        self._args = ["legacy"] if legacy else []
        self.files = dict(files)
        self.state: dict[str, Any] = {"entries": [entry(files, root) for root in roots], "files": self.files}
        self.write()

    def write(self, **members: Any) -> None:
        self.state |= members
        self._state.write_text(json.dumps(self.state))

    def config(self, **members: Any) -> dict[str, Any]:
        return server("skilled.py", self._state, self.log, *self._args, **members)

    def asked(self, method: str) -> Sequence[str]:
        """The URIs of its requests of this method, in order."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [line.partition(" ")[2] for line in lines if line.split(" ")[0] == method]
