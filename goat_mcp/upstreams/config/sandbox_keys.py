"""The keys of an upstream's entry that put its process into a sandbox. What a sandbox is lies in `commands.sandbox`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from goat_mcp.commands.sandbox.options import SandboxMode, SandboxOptions

SANDBOX_KEYS = frozenset({"sandbox", "sandbox_network", "sandbox_read", "sandbox_write", "sandbox_domains"})


class BrokenSandboxKeys(ValueError):
    """One of the keys cannot be used; the text names it and its value."""


def sandbox_options(entry: Mapping[str, Any]) -> SandboxOptions | None:
    """The sandbox that an entry wants; None where it wants none, as most do. Raises `BrokenSandboxKeys`."""
    given = {key: value for key, value in entry.items() if key in SANDBOX_KEYS}
    if not given:
        return None
    try:
        options = SandboxOptions.model_validate(given)
    except ValidationError as invalid:
        first = invalid.errors(include_url=False)[0]
        key = ".".join(map(str, first["loc"]))
        raise BrokenSandboxKeys(f"{key}: {first['msg']}; got {str(first['input'])[:60]!r}") from None
    if options.sandbox is None:
        key = min(given)
        raise BrokenSandboxKeys(f"{key}: says what a sandbox shows, and there is none; write sandbox: auto or required")
    return None if options.sandbox is SandboxMode.OFF else options
