"""What deny rules keep from Read is not there for sandboxed commands either. bash-012"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.sandbox.boxes import git, needs_bubblewrap
from tests.e2e.conftest import UNASKED
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire, text_of

pytestmark = [pytest.mark.e2e]

DENY = 'permissions.deny=["Read(./secrets/**)", "Read(.env)", "Read(./one/key)", "Read(./linked)"]'
SEEK = "grep -rhs CANARY . ; cat `echo secr`ets/a harmless; mv one two; ls one; echo end"


def output(tmp_path: Path, sandbox: str) -> tuple[str, Path]:
    workspace = tmp_path / "workspace"
    for name in ("secrets/a", "secrets/.vscode/b", "deep/er/.env", "one/key", "target", "open"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text(f"CANARY {name}\n")
    (workspace / "linked").symlink_to("target")
    (workspace / "harmless").symlink_to("secrets/a")
    launch = Launch(tmp_path, workspace, (*UNASKED, "--set", f"sandbox={sandbox}", "--set", DENY))
    with Wire(launch.command, launch.environment, workspace, tmp_path / "stderr") as wire:
        wire.handshake()
        # As a script of the workspace: what a command names itself is refused before it runs.
        (workspace / "seek.sh").write_text(SEEK)
        return text_of(wire.call("Bash", {"command": "bash seek.sh"})), workspace


@needs_bubblewrap
def test_a_command_changes_nothing_that_rules_keep_from_being_changed_or_read(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    git(tmp_path, "init", "-q", str(workspace / "src/nested"))
    # What is protected below a folder that a rule covers opens nothing beside it.
    for name in ("secrets/a", "src/b", "src/sub/.envrc", "src/sub/b", "src/nested/b", "docs/c", "one.lock"):
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("old\n")
    # As a script of the workspace: what a command names itself is refused before it runs.
    below = ("src/sub/b", "src/sub/n", "src/sub/.envrc", "src/nested/b", "src/nested/n", "src/nested/.git/HEAD")
    writes = ("secrets/a", "secrets/n", "src/b", "src/n", "docs/n", "one.lock", *below)
    (workspace / "write.sh").write_text("".join(f"(echo new > {name}) 2>/dev/null\n" for name in writes))
    deny = 'permissions.deny=["Read(./secrets/**)", "Edit(./src/**)", "Write(*.lock)"]'
    launch = Launch(tmp_path, workspace, (*UNASKED, "--set", "sandbox=required", "--set", deny))

    with Wire(launch.command, launch.environment, workspace, tmp_path / "stderr") as wire:
        wire.handshake()
        text = text_of(wire.call("Bash", {"command": "bash write.sh; cat docs/n"}))

    assert text.startswith("new")
    kept = {str(path.relative_to(workspace)): path.read_text() for path in workspace.rglob("*") if path.is_file()}
    del kept["write.sh"]
    assert {name for name, said in kept.items() if said == "new\n"} == {"docs/n"}


@needs_bubblewrap
def test_a_command_reads_nothing_that_rules_deny(tmp_path: Path) -> None:
    text, workspace = output(tmp_path, "required")

    assert sorted(line for line in text.splitlines() if line.startswith("CANARY")) == ["CANARY open"]
    assert "end" in text
    assert (workspace / "one/key").read_text() == "CANARY one/key\n"
    assert (workspace / "secrets/a").read_text() == "CANARY secrets/a\n"


def test_without_a_sandbox_a_program_reads_it_as_the_page_says(tmp_path: Path) -> None:
    text, _ = output(tmp_path, "off")

    assert "CANARY secrets/a" in text
    assert "without a sandbox, commands can read such files" in Path("docs/sandbox.md").read_text()
