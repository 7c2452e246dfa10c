"""What a user can configure about commands: the settings `bash.*`."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.core.settings_part import Names, SettingsPart


class BashOptions(SettingsPart):
    """`auto_background_after_s` 0 means: never, and 120 s end a command.

    `blocked` are commands that never run, e.g. `rm` or `git push`; where `allowed` names any, no other runs. Neither
    lets anything pass unasked. Source: goa, `BlockedCommands`, `AllowedCommands`.
    """

    blocked: Names = ()
    allowed: Names = ()
    auto_background_after_s: float = Field(default=45.0, ge=0, le=3600)
