"""What a user can configure about reading and changing files: the settings `files.*` and `edit.*`."""

from __future__ import annotations

from typing import Literal

from goat_mcp.core.settings_part import SettingsPart


class FileOptions(SettingsPart):
    """Contract: tools.md, "Bytes", "Read state" and Write."""

    read_before_write: Literal["strict", "relaxed", "off"] = "strict"
    fuzzy_match: bool = False
    legacy_encoding: str | None = None
    write_eol: Literal["keep", "exact"] = "keep"
    placeholder_check: Literal["warn", "refuse", "off"] = "warn"


class EditOptions(SettingsPart):
    """`allow_fuzz` false leaves Edit its exact tier only. Source: goa `tools.edit.allow_fuzz_on_edits`."""

    allow_fuzz: bool = True
