"""Settings of scripts over tools: `code.*`."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.core.settings_part import SettingsPart


class CodeOptions(SettingsPart):
    """Limits of one script of `run_script`.

    `timeout_s` counts while the script itself computes: the time in which it waits for tools and people is theirs.
    """

    timeout_s: float = Field(default=60.0, gt=0, le=3_600)
    memory_mb: int = Field(default=128, ge=1, le=4_096)
    max_calls: int = Field(default=500, ge=1, le=100_000)
