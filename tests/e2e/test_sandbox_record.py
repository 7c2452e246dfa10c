"""An audit record outside the state directory is closed to sandboxed commands, whatever the settings let them write."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands.sandbox.boxes import names, needs_bubblewrap
from tests.e2e.conftest import UNASKED
from tests.e2e.goat import Launch
from tests.e2e.wire import Wire, text_of

pytestmark = [pytest.mark.e2e, needs_bubblewrap]


def test_a_command_neither_reads_nor_changes_nor_forges_the_record(tmp_path: Path) -> None:
    # R-AUDIT-1
    workspace, records = tmp_path / "workspace", tmp_path / "records"
    for folder in (workspace, records):
        folder.mkdir()
    (records / "audit.000001.jsonl").write_text("CANARY\n")
    record = records / "audit.jsonl"
    set_values = ("sandbox=required", f"audit.path={record}", f'sandbox_write=["{tmp_path}", "{records}"]')
    launch = Launch(tmp_path, workspace, (*UNASKED, *(word for value in set_values for word in ("--set", value))))
    script = (
        f"cd {records}; cat *; rm -f *; echo forged >> audit.jsonl; echo forged > audit.000002.jsonl\n"
        f"mv {records} {records}2; echo new > {tmp_path}/new; echo end"
    )

    with Wire(launch.command, launch.environment, workspace, tmp_path / "stderr") as wire:
        wire.handshake()
        text = text_of(wire.call("Bash", {"command": script}))

    assert "CANARY" not in text
    assert '"seq"' not in text
    assert "end" in text
    assert (tmp_path / "new").read_text() == "new\n"
    assert (records / "audit.000001.jsonl").read_text() == "CANARY\n"
    assert names(records) == ["audit.000001.jsonl", "audit.jsonl"]
    assert record.read_text().count('"seq"') >= 2
