"""What a tool's definition costs a model: the one estimate behind `list --tokens` and the token budget."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

_CHARS_PER_TOKEN = 4


def token_cost(entry: Mapping[str, Any]) -> int:
    """Tokens of one `tools/list` entry: characters of its compact JSON / 4 (tools contract, "Budget")."""
    return -(-len(json.dumps(entry, separators=(",", ":"), ensure_ascii=False)) // _CHARS_PER_TOKEN)


def cost_more_than(entries: Iterable[Mapping[str, Any]], budget: int) -> bool:
    """Whether all of them together cost more. Looks no further than it has to."""
    spent = 0
    for entry in entries:
        spent += token_cost(entry)
        if spent > budget:
            return True
    return False
