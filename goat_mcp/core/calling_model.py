"""Which language model made a call, if known: our own agents say it, and few clients do.

MCP has no field for it. Codex sends it with each call, in `_meta["x-codex-turn-metadata"]`; any other client may send
`_meta["goat-mcp/model"]`. A client can say anything, so only the wording of a result may depend on it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from goat_mcp.core.context import ToolContext
from goat_mcp.core.model import CallingModel

MODEL_META_KEY = "goat-mcp/model"
_CODEX_META_KEY = "x-codex-turn-metadata"
_MAX_NAME_CHARS = 200


def calling_model(ctx: ToolContext) -> CallingModel | None:
    if ctx.model is not None:
        return ctx.model
    name = _text(ctx.meta.get(MODEL_META_KEY)) or _text(_members(ctx.meta.get(_CODEX_META_KEY)).get("model"))
    return CallingModel((name,)) if name else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) and len(value) <= _MAX_NAME_CHARS else ""


def _members(value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
