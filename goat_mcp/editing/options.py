"""What a user can configure about reading and changing files (`files.*` and `edit.allow_fuzz`)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class FileOptions:
    """Defaults are the safe ones. Contract: tools.md, "Bytes", "Read state", Write and Edit."""

    read_before_write: Literal["strict", "relaxed", "off"] = "strict"
    fuzzy_match: bool = False
    legacy_encoding: str | None = None
    write_eol: Literal["keep", "exact"] = "keep"
    placeholder_check: Literal["warn", "refuse", "off"] = "warn"
    allow_fuzz: bool = True
