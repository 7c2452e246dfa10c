"""Which calls of an export that may change something only read: its `readOnlyWhen` (design 0013)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from goat_mcp.calls.permissions.patterns import text_pattern


def only_reads(read_only_when: Mapping[str, Sequence[str]], input: Mapping[str, Any]) -> bool:
    """Whether each of the parameters is one of its texts, in which `*` stands for any."""
    return bool(read_only_when) and all(
        any(_is(text, input.get(name)) for text in texts) for name, texts in read_only_when.items()
    )


def _is(text: str, value: object) -> bool:
    return isinstance(value, str) and text_pattern(text)(value) is not None
