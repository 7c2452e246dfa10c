"""What cannot run on a simulated Mac, each with its reason: a file, a test, or one case of a test.

A test that asks for what only Linux has says so itself, with the marker `linux_only`; here is what a real Mac runs, or
what asks for a machine that the simulation has not.
"""

from __future__ import annotations

_SANDBOX = "runs a command that nobody has to approve, in a sandbox: `sandbox-exec` is not simulated"

_IF_OF_HOOKS = "test_an_if_is_about_the_parts_of_a_command_and_doubt_runs_the_hook"
_PLAN = "test_what_the_plan_wants_to_run_is_granted_only_where_the_user_ticks_it"

CANNOT_RUN: dict[str, str] = {
    f"tests/calls/hooks/test_configured.py::{_IF_OF_HOOKS}": _SANDBOX,
    f"tests/tools/test_exit_plan_mode.py::{_PLAN}": _SANDBOX,
}

ABSENT = (
    "this kernel has no openat2",
    "this kernel has no Landlock",
    "this kernel's Landlock",
    "no filter of system calls for this machine",
    "no cgroup can be made here: needs root on Linux",
    "no user namespaces here",
    "no bubblewrap",
    "bubblewrap cannot work here",
    "left its session, lost its parent at once and has no marker",
)
"""How the reasons begin of tests that find out by themselves that something is absent which no Mac has."""

NOWHERE = ("NUL cannot be given to bash",)
"""And those of cases that no system can run."""

OTHER_USER = ("root only: ", "not as root: ")
"""How those begin that ask for another user than the one who runs this."""


def listed(test_id: str) -> str | None:
    """The line of the list that names this test; a file names all its tests, a test all its cases."""
    file, _, rest = test_id.partition("@")[0].partition("::")
    names = (file, f"{file}::{rest.partition('[')[0]}", f"{file}::{rest}")
    return next((name for name in names if name in CANNOT_RUN), None)
