"""What the resident process has loaded is what its sessions need."""

from __future__ import annotations

import pytest

from tests.cli.resident.own_home import Home, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.real_processes]

_RECORDING = """
run = it._run
def recorded():
    before = set(sys.modules)
    try:
        run()
    finally:
        with open(os.environ["HOME"] + "/new", "w") as file:
            file.write(" ".join(sorted(set(sys.modules) - before)))
        os.rename(os.environ["HOME"] + "/new", os.environ["HOME"] + "/imported")
it._run = recorded
"""
_IN_A_SESSION = {"goat_mcp.core.error_pages"}
"""What is loaded in each session only: pages that errors refer to."""


def test_a_session_of_plain_calls_imports_nothing_more(one_home: Home) -> None:
    file = one_home.folder / "ws" / "a.txt"
    file.parent.mkdir()
    file.write_text("one\n")
    imported = one_home.folder / "imported"
    calls = {
        "Read": {"file_path": str(file)},
        "Edit": {"file_path": str(file), "old_string": "one", "new_string": "two"},
        "Write": {"file_path": str(file.with_name("b.txt")), "content": "three\n"},
        "Bash": {"command": "echo four"},
        "Grep": {"pattern": "two"},
        "Glob": {"pattern": "*"},
    }
    with one_home.resident(before=_RECORDING), one_home.fork() as session:
        assert set(calls) <= set(session.listed_with(*calls))
        for name, arguments in calls.items():
            session.text(name, arguments)
        imported.unlink(missing_ok=True)  # of an earlier try
        assert session.process.stdin is not None
        session.process.stdin.close()
        wait_until(imported.exists)

    assert set(imported.read_text().split()) <= _IN_A_SESSION
