"""What a user can configure about Glob and Grep: the settings `search.*`."""

from __future__ import annotations

from pydantic import Field

from goat_mcp.core.settings_part import SettingsPart


class SearchLimits(SettingsPart):
    """How much an answer shows where its call does not say: files of Glob, lines or files of Grep (0 is all).

    `threads` are ripgrep's; 0 leaves their number to it. Source: goa, `search.threads`.
    """

    glob_limit: int = Field(default=100, ge=1, le=1000)
    grep_head_limit: int = Field(default=250, ge=0)
    threads: int = Field(default=0, ge=0, le=256)
