"""What a client of some protocol revision can be sent of an upstream's result: one odd member costs itself only.

REL-4; without this the SDK refuses the whole result. Results that are in order pass untouched.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp_types import methods
from pydantic import ValidationError

from goat_mcp.core.result import text_block

_METHOD = "tools/call"


def deliverable(answer: dict[str, Any], version: str) -> dict[str, Any]:
    """`answer`; where `version` does not know it whole, unreadable blocks as their JSON and other members left out."""
    if _is_known(answer, version):
        return answer
    blocks = [
        block if _is_known({"content": [block], "resultType": "complete"}, version) else text_block(json.dumps(block))
        for block in answer["content"]
    ]
    mended: dict[str, Any] = {"content": blocks, "isError": answer["isError"], "resultType": "complete"}
    for name, value in answer.items():
        if name not in mended and _is_known({**mended, name: value}, version):
            mended[name] = value
    return mended


def _is_known(answer: Mapping[str, Any], version: str) -> bool:
    try:
        sent = methods.serialize_server_result(_METHOD, version, answer)
    except ValidationError:
        return False
    # A result that fits no form of a call's answer can be taken for one of another kind, without content.
    return "content" in sent
