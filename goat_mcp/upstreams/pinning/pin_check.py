"""What `goat-mcp lock --check` finds of one upstream: the lock as it is against what the upstream offers now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from goat_mcp.upstreams.pinning.pin_lock import LockContent, ServerPins
from goat_mcp.upstreams.pinning.pins import lock_name


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
        if kind in ("prompt", "template") and old.launch and kind not in old.pins:
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
