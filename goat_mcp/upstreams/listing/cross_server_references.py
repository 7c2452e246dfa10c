"""Texts in which an upstream speaks of another server's tools: the mark of one that wants to steer their use (R-UP-7).

They are reported and change nothing: what a text says never moves a decision.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from goat_mcp.core.names import SEPARATOR, UPSTREAM_PREFIX

_CANONICAL = re.compile(rf"\b{UPSTREAM_PREFIX}([A-Za-z0-9-]+(?:_[A-Za-z0-9-]+)*){SEPARATOR}[A-Za-z0-9_-]+")
MAX_MENTIONS = 20


def cross_server_references(server: str, entries: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    """`tool: mcp__other__name` for each mention in the entries of `server`, at most `MAX_MENTIONS`."""
    found: dict[str, None] = {}
    for entry in entries:
        texts = json.dumps([entry.get(part) for part in ("title", "description", "inputSchema")])
        if UPSTREAM_PREFIX not in texts:
            continue
        for mention in _CANONICAL.finditer(texts):
            if mention[1] != server:
                found[f"{entry.get('name')}: {mention[0]}"] = None
                if len(found) == MAX_MENTIONS:
                    return tuple(found)
    return tuple(found)
