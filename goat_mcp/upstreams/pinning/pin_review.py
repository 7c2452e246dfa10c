"""What waits in `goat.lock`, for commands: compared with what is pinned, checked for suspicious texts, approved.

Asking the person is the command's business. `goat-mcp lock --check` compares the lock with what upstreams offer now.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX, InvalidName, clean_server_name
from goat_mcp.upstreams.listing.suspicious_texts import why_suspicious
from goat_mcp.upstreams.pinning.pin_lock import LockContent, Pin, PinLock, PinnedDefinitions, ServerPins
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
    return list(difflib.unified_diff(*both_sides(one, definitions), "pinned", "now", lineterm="", n=2))


def both_sides(one: Waiting, definitions: PinnedDefinitions) -> tuple[list[str], list[str]]:
    """What is pinned and what waits, each line by line in visible ASCII. Nothing was pinned: no lines."""
    if one.kind == LAUNCH:
        return ([one.before] if one.before else []), [one.after]
    kept = definitions.some(one.server, {one.before, one.after} - {""})
    return _lines(kept.get(one.before), one.before), _lines(kept.get(one.after), one.after)


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


@dataclass(frozen=True)
class Comparison:
    """`problem` says why it could not be asked; `is_off` that it is not pinned at all. All names are as in commands."""

    name: str
    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    launch_changed: bool = False
    problem: str = ""
    is_off: bool = False

    @property
    def differs(self) -> bool:
        """Something is there that nobody approved or saw. That something is gone harms nobody."""
        return bool(self.changed or self.added or self.launch_changed)

    @property
    def verdict(self) -> str:
        if self.is_off:
            return "not pinned (pin: off)"
        if self.problem:
            return f"not compared: {self.problem}"
        return "differs" if self.differs else "as pinned"

    def lines(self) -> list[str]:
        """What differs, a line each."""
        launch = ["it is launched in another way than when it was pinned"] if self.launch_changed else []
        return [
            *launch,
            *(f"changed: {name}" for name in self.changed),
            *(f"not pinned: {name}" for name in self.added),
            *(f"gone: {name}" for name in self.gone),
        ]

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "verdict": self.verdict,
            "changed": self.changed,
            "added": self.added,
            "gone": self.gone,
            "launch_changed": self.launch_changed,
            "problem": self.problem,
        }


def compared(
    name: str, server: str, before: LockContent, after: ServerPins, seen: dict[str, dict[str, str]]
) -> Comparison:
    """`after` is what the lock would hold, `seen` what is offered now: hash by name, by kind."""
    old = before.of(server)
    changed: list[str] = []
    added: list[str] = []
    gone: list[str] = []
    for kind, named in seen.items():
        if kind in ("prompt", "template", "skill") and old.launch and kind not in old.pins:
            # Listed only once somebody asks for it, which nobody had when the rest was pinned.
            continue
        for native, sha256 in named.items():
            pin = old.pin(kind, native)
            if pin is None:
                added.append(lock_name(server, kind, native))
            elif pin.sha256 != sha256:
                changed.append(lock_name(server, kind, native))
        gone += [lock_name(server, kind, native) for native in old.pins.get(kind, {}) if native not in named]
    launch_changed = bool(old.launch and after.waiting_launch)
    return Comparison(name, tuple(changed), tuple(added), tuple(gone), launch_changed)


@dataclass(frozen=True)
class Suspicious:
    """One definition. `about` is as it waits, or would."""

    about: Waiting
    why: tuple[str, ...]
    waits: bool

    def __str__(self) -> str:
        return f"{self.about.target}: its definition {'; '.join(self.why)}"


def suspicious_in(
    content: LockContent, definitions: PinnedDefinitions, servers: Collection[str] | None = None
) -> list[Suspicious]:
    """Those of these servers, or of all, by server. Takes a quarter of a millisecond for each definition."""
    found: list[Suspicious] = []
    for server, pins in sorted(content.servers.items()):
        if servers is not None and server not in servers:
            continue
        kept = definitions.some(server, pins.hashes())
        for waits, kinds in ((True, pins.waiting), (False, pins.pins)):
            for kind, named in sorted(kinds.items()):
                for name, pin in sorted(named.items()):
                    if pin.sha256 in kept and (why := why_suspicious(kept[pin.sha256], server)):
                        found.append(Suspicious(Waiting(server, kind, name, "", pin.sha256, pin.risk), why, waits))
    return found
