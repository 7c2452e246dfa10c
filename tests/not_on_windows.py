"""Test files that cannot be imported on Windows, or have nothing to test there, each with its reason.

A test that could be imported says so itself, with the marker `posix_only`.
"""

from __future__ import annotations

_TERMINAL = "acts as a user at a terminal of POSIX"
_LIMITS = "sets limits of POSIX for its own process, or holds a lock of POSIX"

NOT_ON_WINDOWS: dict[str, str] = {
    "tests/commands/sandbox": "there is no sandbox on Windows",
    "tests/manifests/ssh_bash": "its SSH server needs users and terminals of POSIX",
    "tests/simulated": "Linux takes itself for another system",
    "tests/upstreams/test_hostile_upstreams.py": "measures memory and ends processes as POSIX does",
    **dict.fromkeys(
        (
            "tests/cli/test_audit.py",
            "tests/cli/test_call.py",
            "tests/cli/test_colours.py",
            "tests/cli/test_config.py",
            "tests/cli/test_ctrl_c.py",
            "tests/cli/test_demo.py",
            "tests/cli/test_docs.py",
            "tests/cli/test_doctor.py",
            "tests/cli/test_eject.py",
            "tests/cli/test_every_command.py",
            "tests/cli/test_flags.py",
            "tests/cli/test_import.py",
            "tests/cli/test_install.py",
            "tests/cli/test_list_servers.py",
            "tests/cli/test_overview.py",
            "tests/cli/test_review.py",
            "tests/cli/test_rule_edits.py",
            "tests/cli/test_secret.py",
            "tests/cli/test_servers.py",
            "tests/cli/test_status.py",
            "tests/cli/test_terminal_session.py",
            "tests/cli/test_trust.py",
            "tests/cli/test_why.py",
            "tests/e2e/test_undo_and_review.py",
            "tests/settings/claude/test_in_force.py",
        ),
        _TERMINAL,
    ),
    **dict.fromkeys(
        (
            "tests/calls/audit/test_chain.py",
            "tests/calls/audit/test_log.py",
            "tests/contract/test_file_cases.py",
            "tests/files/search/test_engine.py",
            "tests/files/workspace/test_writing.py",
        ),
        _LIMITS,
    ),
}
