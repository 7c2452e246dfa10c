"""What has one process among all replicas: an entry, for one workspace and one principal. And who should own it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from pydantic import TypeAdapter

from goat_mcp.upstreams.config.entry import StdioLaunch


@dataclass(frozen=True)
class ProcessKey:
    """`server` is the entry's part in names of tools, `root` the workspace, `account` whose process it is, both empty
    if there is none. `launch` says how the entry starts it: replicas whose entries differ have processes of their own.
    """

    server: str
    root: str
    account: str
    launch: str

    @classmethod
    def of(cls, server: str, target: StdioLaunch, root: Path | None, account: str) -> Self:
        """`target` is as in the entry, before the workspace is filled in."""
        # Values of variables may be secrets, and differ between machines: their names must do.
        facts = [target.command, target.args, target.cwd, sorted(target.env), str(target.sandbox)]
        launch = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:32]
        return cls(server, str(root or ""), account, launch)

    @property
    def name(self) -> str:
        """Short, and another one for each key."""
        return hashlib.sha256(json.dumps(asdict(self)).encode()).hexdigest()[:40]

    def wire(self) -> dict[str, Any]:
        return asdict(self)


_KEY = TypeAdapter(ProcessKey)


def key_in(value: object) -> ProcessKey:
    """What `ProcessKey.wire` has written. Raises `ValueError`."""
    return _KEY.validate_python(value)


def preferred(key: ProcessKey, replicas: Iterable[str]) -> str | None:
    """Who of these should own it, by rendezvous hashing: if one goes, only what it owned moves. None of none."""
    return max(replicas, key=lambda name: hashlib.sha256(f"{key.name}\0{name}".encode()).digest(), default=None)
