"""What `start_command` needs to know of a confinement: how a program's start changes. Confining is done elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


def _nothing_to_do() -> tuple[str, ...]:
    return ()


@dataclass(frozen=True, kw_only=True)
class Launch:
    """How to start a confined program.

    Attributes:
        arguments, environment, directory, pass_fds: for `Popen`; `pass_fds` holds the job's and `own_fds`.
        own_fds: close these in our process as soon as the program was started, or could not be.
        has_process_namespace: ending the first process ends all others, and that first process is no part of the
            program: it must not get the TERM meant for the program.
        finish: call when the last process is gone, off the event loop; says what it had to put right.
    """

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: str
    pass_fds: tuple[int, ...] = ()
    own_fds: tuple[int, ...] = ()
    has_process_namespace: bool = False
    finish: Callable[[], tuple[str, ...]] = _nothing_to_do

    @property
    def leaves_nothing(self) -> bool:
        """Whether there is nothing to finish."""
        return self.finish is _nothing_to_do


class Confined(Protocol):
    """One command's confinement, everything about it decided but its arguments."""

    @property
    def name(self) -> str: ...

    @property
    def has_process_namespace(self) -> bool: ...

    def launch(
        self,
        arguments: Sequence[str],
        *,
        environment: Mapping[str, str],
        marker: Mapping[str, str],
        pass_fds: Sequence[int] = (),
    ) -> Launch:
        """How to start the program. Raises `OSError` if a path that it may reach cannot be opened."""
        ...
