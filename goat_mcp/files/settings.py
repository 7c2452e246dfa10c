"""What a user can configure about files: the settings `files.*`, `edit.*` and `search.*`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from goat_mcp.core.settings_part import SettingsPart


class FileOptions(SettingsPart):
    """Contract: tools.md, "Bytes", "Read state" and Write.

    `review_mode` queues changes for a person. `journal_bytes` of old contents are kept for `journal_days`, so that
    changes can be undone; 0 keeps none. `git_stage`: whether files that their repository tracks are staged
    (`git add`) once a tool has written them.
    """

    read_before_write: Literal["strict", "relaxed", "off"] = "strict"
    fuzzy_match: bool = False
    legacy_encoding: str | None = None
    write_eol: Literal["keep", "exact"] = "keep"
    placeholder_check: Literal["warn", "refuse", "off"] = "warn"
    review_mode: bool = False
    git_stage: Literal["off", "on"] = "off"
    journal_bytes: int = Field(default=1024 * 1024 * 1024, ge=0)
    journal_days: int = Field(default=30, ge=1)


class EditOptions(SettingsPart):
    """`allow_fuzz` false leaves Edit its exact tier only. Source: goa `tools.edit.allow_fuzz_on_edits`."""

    allow_fuzz: bool = True


class SearchLimits(SettingsPart):
    """How much an answer shows if its call does not say: files of Glob, lines or files of Grep (0 is all).

    `threads` are ripgrep's; 0 leaves their number to it. Source: goa, `search.threads`.
    """

    glob_limit: int = Field(default=100, ge=1, le=1000)
    grep_head_limit: int = Field(default=250, ge=0)
    threads: int = Field(default=0, ge=0, le=256)
