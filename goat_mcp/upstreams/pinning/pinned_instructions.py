"""The instructions of one upstream against their pin (PIN-1, R-UP-6). Nobody is sent them: a change is only told."""

from __future__ import annotations

import hashlib
from typing import Any

from goat_mcp.upstreams.pinning.launch_fingerprint import launch_fingerprint
from goat_mcp.upstreams.pinning.pinned_definitions import definition_hash
from goat_mcp.upstreams.pinning.pins import SeenDefinitions, UpstreamPins

MAX_KEPT_CHARS = 65_536
"""Of longer ones the head is kept, with a hash of the whole."""


def settle_instructions(pins: UpstreamPins, instructions: str) -> None:
    """Pin what is seen for the first time, and note a change. Empty is none. Blocks: for a worker thread."""
    if pins.is_off:
        return
    seen: list[SeenDefinitions] = []
    if instructions:
        definition = _definition(instructions)
        seen = [SeenDefinitions("", definition_hash(definition), {}, definition)]
    pins.hold("instructions", seen)
    pins.settle("instructions", seen, launch_fingerprint(pins.config.target))


def _definition(instructions: str) -> Any:
    if len(instructions) <= MAX_KEPT_CHARS:
        return instructions
    whole = hashlib.sha256(instructions.encode("utf-8", "surrogatepass")).hexdigest()
    return {"head": instructions[:MAX_KEPT_CHARS], "chars": len(instructions), "sha256": whole}
