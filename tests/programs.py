"""The programs that tests start by name, and what brings each to a fresh machine."""

from __future__ import annotations

SYSTEM = "the system"
"""Part of the smallest Debian, or asked for by the README: git, make and Python."""
ENVIRONMENT = "the environment"
"""Installed beside this Python by `make setup`. Tests put it on the PATH with the fixture `ripgrep_on_path`."""
SURROUNDINGS = "make surroundings"
"""Installed by it if the machine permits. Tests skip themselves, with a reason, if it is missing."""
SKIPPED = "nobody"
"""Never installed. Tests skip themselves, with a reason, if it is missing."""
NO_PROGRAM = "no program"
"""A name that tests use because no such program exists, or because bash itself knows it."""

PROGRAMS = {
    **dict.fromkeys(
        ("bash", "cat", "cp", "date", "echo", "flock", "grep", "id", "ls", "mount", "printf", "ps", "pwd"), SYSTEM
    ),
    **dict.fromkeys(("sed", "sh", "sleep", "touch", "true", "tty", "umount", "unshare", "wc"), SYSTEM),
    **dict.fromkeys(("git", "make"), SYSTEM),
    "rg": ENVIRONMENT,
    **dict.fromkeys(("bwrap", "chromium", "haproxy", "nginx", "redis-server", "ssh", "ssh-keygen"), SURROUNDINGS),
    **dict.fromkeys(("curl", "jq", "node", "npm", "pip", "valkey-server", "zsh"), SKIPPED),
    **dict.fromkeys((":", "exit", "read", "wait", "help", "/no/such/program", "show", "tool"), NO_PROGRAM),
}
