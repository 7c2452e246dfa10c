"""What compression makes of a recording, and what that saves, in tokens (characters / 4)."""

from __future__ import annotations

from goat_mcp.commands.compression.output import compressed_output
from tests.commands.compression.recordings import Recording

CHARS_PER_TOKEN = 4


def compressed(recording: Recording) -> str:
    text = compressed_output(recording.command, recording.text, failed=recording.exit_code != 0)
    assert text is not None, recording.name
    return text.text


def tokens(text: str) -> int:
    return -(-len(text) // CHARS_PER_TOKEN)


def table_row(recording: Recording) -> str:
    """As the table of docs/compression.md has it."""
    before, after = tokens(recording.text), tokens(compressed(recording))
    return f"| `{recording.command}` | {before} | {after} | {1 - after / before:.0%} |"
