"""Where it is written down what the user did with changes. The record itself is `audit`'s."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from goat_mcp.core.context import ToolContext


class ChangeAudit(Protocol):
    def user_action(
        self, what: str, arguments: Mapping[str, Any], ctx: ToolContext, rule: str
    ) -> AbstractContextManager[list[str]]:
        """Written before the block runs and after it; the block adds the error codes of what was refused."""
        ...


class Unrecorded:
    """For changes that are looked at without a gateway or a terminal."""

    def user_action(
        self, what: str, arguments: Mapping[str, Any], ctx: ToolContext, rule: str
    ) -> AbstractContextManager[list[str]]:
        return nullcontext(list[str]())
