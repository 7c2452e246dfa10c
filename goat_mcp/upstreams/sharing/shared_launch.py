"""What a session hands the broker: a complete launch, and what else it must know. Equal launches share a process.

It holds values of secrets. It travels over the socket and is kept in memory, nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, cast

from pydantic import TypeAdapter


@dataclass(frozen=True)
class SharedLaunch:
    """`environment` is all that the process gets. `account` is whose process it is, empty for the user's own."""

    command: str
    args: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    cwd: str
    account: str = ""


@dataclass(frozen=True)
class Opening:
    """The first line of a session. `control` is the method of the broker's own messages, which only these two know."""

    launch: SharedLaunch
    control: str
    asks: bool = False
    """Whether the session knows that this upstream asks clients."""
    leaves: tuple[int, ...] = ()
    """The numbers of processes that are to be started again: this session uses another one."""

    def wire(self) -> dict[str, Any]:
        return asdict(self)


_OPENING = TypeAdapter(Opening)


def opening_in(frame: object) -> Opening:
    """What `Opening.wire` has written. Raises `ValueError`."""
    return _OPENING.validate_python(frame)


def sorted_environment(environment: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(environment.items()))


def member(params: Mapping[str, Any] | None, name: str) -> dict[str, Any]:
    """An object in a control message; empty if there is none."""
    found: Any = (params or {}).get(name)
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}
