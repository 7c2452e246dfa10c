"""What cannot run on a simulated Mac, each with its reason: a file, a test, or one case of a test.

A test that asks for what only Linux has says so itself, with the marker `linux_only`; here is what a real Mac runs, or
what asks for a machine that the simulation has not.
"""

from __future__ import annotations

CANNOT_RUN: dict[str, str] = {}

ABSENT = (
    "this kernel has no openat2",
    "this kernel has no Landlock",
    "no filter of system calls for this machine",
    "needs root on Linux",
)
"""How the reasons begin of tests that find out by themselves that something is absent which no Mac has."""

OTHER_USER = ("root only: ", "not as root: ")
"""How those begin that ask for another user than the one who runs this."""


def listed(test_id: str) -> str | None:
    """The line of the list that names this test; a file names all its tests, a test all its cases."""
    file, _, rest = test_id.partition("@")[0].partition("::")
    names = (file, f"{file}::{rest.partition('[')[0]}", f"{file}::{rest}")
    return next((name for name in names if name in CANNOT_RUN), None)
