"""What waits in `goat.lock`, compared with what is pinned, and its approval. Asking the person is the command's."""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, InvalidName, clean_server_name
from goat_mcp.upstreams.pinning.pin_lock import LockContent, Pin, PinLock
from goat_mcp.upstreams.pinning.pinned_definitions import PinnedDefinitions
from goat_mcp.upstreams.pinning.pins import lock_name

LAUNCH = "launch"


class ChangedMeanwhile(Exception):
    """What was shown is no longer what waits."""


@dataclass(frozen=True)
class Waiting:
    """One definition, or the launch of an upstream, that waits. `before` is empty where nothing was pinned."""

    server: str
    kind: str
    name: str
    before: str
    after: str
    risk: str = ""

    @property
    def target(self) -> str:
        """How the commands call it."""
        return lock_name(self.server, self.kind, self.name)


def waiting_in(content: LockContent) -> list[Waiting]:
    """Everything that waits, by upstream."""
    found: list[Waiting] = []
    for server, pins in sorted(content.servers.items()):
        if pins.waiting_launch:
            found.append(Waiting(server, LAUNCH, "", pins.launch, pins.waiting_launch))
        for kind, named in sorted(pins.waiting.items()):
            for name, pin in sorted(named.items()):
                before = pins.pin(kind, name) or Pin("")
                found.append(Waiting(server, kind, name, before.sha256, pin.sha256, pin.risk))
    return found


def meant_by(target: str, waiting: Iterable[Waiting]) -> list[Waiting]:
    """Those a person means by an upstream's name, as configured or as in names of tools, by a tool's canonical name or
    by `kind:server:name`."""
    waiting = list(waiting)
    meant = [
        one
        for one in waiting
        if target in (one.server, one.target, f"{UPSTREAM_PREFIX}{one.server}", f"{one.kind}:{one.server}")
        or (one.kind == "tool" and target == f"{UPSTREAM_PREFIX}{one.server}{SEPARATOR}{one.name}")
    ]
    if meant or target.startswith(UPSTREAM_PREFIX):
        return meant
    try:
        server = clean_server_name(target)
    except InvalidName:
        return []
    return [one for one in waiting if one.server == server]


def agreement(chosen: Sequence[Waiting]) -> str:
    """One hash for all that is about to be approved, so that nothing else is."""
    facts = sorted([one.server, one.kind, one.name, one.before, one.after] for one in chosen)
    return hashlib.sha256(json.dumps(facts).encode("ascii")).hexdigest()


def difference(one: Waiting, definitions: PinnedDefinitions) -> list[str]:
    """A unified diff, line by line, in visible ASCII: nothing in it can act on a terminal or hide from a reader."""
    if one.kind == LAUNCH:
        return [f"-{one.before or 'never launched before'}", f"+{one.after}"]
    kept = definitions.some(one.server, {one.before, one.after} - {""})
    before, after = (_lines(kept.get(sha256), sha256) for sha256 in (one.before, one.after))
    return list(difflib.unified_diff(before, after, "pinned", "now", lineterm="", n=2))


def approve(lock: PinLock, chosen: Sequence[Waiting], *, everything: bool = False) -> None:
    """Pin exactly what was shown. `everything`: a lock that was damaged is trusted again.

    Raises `ChangedMeanwhile` with nothing approved, and `OSError`.
    """

    def edit(content: LockContent) -> None:
        still: Collection[Waiting] = set(waiting_in(content))
        if not all(one in still for one in chosen):
            raise ChangedMeanwhile
        for one in chosen:
            pins = content.servers[one.server]
            if one.kind == LAUNCH:
                pins.launch, pins.waiting_launch = one.after, ""
            else:
                pins.pins.setdefault(one.kind, {})[one.name] = pins.waiting[one.kind].pop(one.name)
        if everything:
            content.distrust = ""

    lock.change(edit)


def _lines(definition: Any, sha256: str) -> list[str]:
    if not sha256:
        return []
    if definition is None:
        return [f"(this definition is no longer at hand; its SHA-256 is {sha256})"]
    if isinstance(definition, str):
        return [json.dumps(line).replace("\x7f", "\\u007f") for line in definition.split("\n")]
    return json.dumps(definition, indent=2, sort_keys=True).replace("\x7f", "\\u007f").splitlines()
