"""What a command prints to its two outputs, each by itself. That both together are kept is `output_capture`'s."""

from __future__ import annotations

from goat_mcp.processes.output_capture import CreateFile, OutputCapture


class SeparateStreams:
    """Given to a command when it is started, and read when it has ended or goes on without its caller."""

    def __init__(self, create_file: CreateFile) -> None:
        self.stdout = OutputCapture(create_file)
        self.stderr = OutputCapture(create_file)

    def close(self) -> None:
        self.stdout.close()
        self.stderr.close()
