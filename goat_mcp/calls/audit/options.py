"""What a user can configure about the record of calls: the settings `audit.*`."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from goat_mcp.core.settings_part import SettingsPart


class AuditSettings(SettingsPart):
    """`path` is a file outside all workspaces; without one it is `audit.jsonl` in the state directory.

    A file that would grow over `max_bytes` is kept under a numbered name and a new one begun; `kept_files` of those
    stay. `on_failure` says what becomes of calls that change something or reach out while nothing can be recorded.
    """

    path: Path | None = None
    max_bytes: int = Field(default=64 * 1024 * 1024, ge=4096)
    kept_files: int = Field(default=8, ge=1, le=10_000)
    on_failure: Literal["refuse", "warn"] = "refuse"
