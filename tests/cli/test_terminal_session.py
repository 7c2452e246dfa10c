"""The terminal that tests give to a command shows all that the command writes."""

from __future__ import annotations

from pathlib import Path

from tests.cli.terminal_session import TerminalSession


class _LateOutput(TerminalSession):
    """The command writes and ends after a read has waited in vain: that happens on a busy machine."""

    def _read(self, timeout_s: float) -> bool:
        if self.process.poll() is None:
            self.type(b"\n")
            self.process.wait(30)
            return False
        return super()._read(timeout_s)


def test_what_a_command_writes_last_is_read(tmp_path: Path) -> None:
    with _LateOutput(["sh", "-c", "read _; echo the last line"], cwd=tmp_path, variables={}) as session:
        assert session.end() == 0

        assert "the last line" in session.shown
