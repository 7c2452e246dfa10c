"""What cannot run on a simulated Mac, each with its reason: a file, a test, or one case of a test.

A test that asks for what only Linux has says so itself, with the marker `linux_only`; here is what a real Mac runs, or
what asks for a machine that the simulation has not.
"""

from __future__ import annotations

_SANDBOX = "runs a command that nobody has to approve, in a sandbox: `sandbox-exec` is not simulated"
_IN_A_SANDBOX = {
    "tests/calls/hooks/test_configured.py": ("test_an_if_is_about_the_parts_of_a_command_and_doubt_runs_the_hook",),
    "tests/tools/test_exit_plan_mode.py": ("test_what_the_plan_wants_to_run_is_granted_only_where_the_user_ticks_it",),
    "tests/cli/test_call.py": (
        "test_a_background_task_is_waited_for",
        "test_a_background_task_is_waited_for_where_the_catalog_cannot_show_it",
        "test_a_background_task_that_fails_is_status_5",
        "test_nobody_at_the_terminal_means_no",
        "test_a_terminal_shows_what_a_call_waits_for",
    ),
    "tests/cli/test_ctrl_c.py": (
        "test_one_ctrl_c_ends_serve_during_a_call_and_with_servers_that_do_not_start",
        "test_one_ctrl_c_ends_http_during_a_call_and_with_servers_that_do_not_start",
        "test_ctrl_c_during_a_call_ends_it",
    ),
    "tests/cli/test_rule_edits.py": ("test_a_call_is_tested_without_running_it",),
    "tests/cli/test_why.py": ("test_the_rule_that_decides_is_named_with_its_line",),
}

_FULL_DISK = "tests/files/workspace/test_writing.py::test_a_full_disk_keeps_a_file_that_is_written_in_place"

CANNOT_RUN: dict[str, str] = {
    **{f"{file}::{test}": _SANDBOX for file, tests in _IN_A_SANDBOX.items() for test in tests},
    "tests/processes/test_windows_bash.py": "stands for Windows, with processes as Linux shows them",
    _FULL_DISK: "without posix_fallocate a full disk is noticed while it is written, and the old bytes are put back",
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
